#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fuzz campaign: every target with libFuzzer, by turns, until they have been executed so many times together.

A trial is one target for a number of executions: as many as it has lately done in a minute. What a trial finds new is kept for the next in
build-fuzz/corpus, and what crashes or hangs in build-fuzz/artifacts.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time

import progress

FIRST, TRIAL_SEC = 500, 60
# An input that takes longer hangs, if its own CPU time exceeds this as well.
TIMEOUT_SEC = 10
TIMEOUT_STATUS = 70  # of libFuzzer
# Targets write files; they must not wait for a slow disk.
FILES = "/dev/shm" if os.access("/dev/shm", os.W_OK) else os.environ.get("TMPDIR", "/tmp")
SUPPRESSIONS = progress.SOURCE / "tests" / "fuzz" / "lsan.supp"
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)


class Fuzzing:
    def __init__(self, args, done: progress.Progress):
        self.args, self.done = args, done
        self.directory = args.build.resolve()
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.running: set[subprocess.Popen] = set()

    def targets(self) -> list[str]:
        found = sorted(path.name.removeprefix("fuzz-") for path in (self.directory / "tests" / "fuzz").glob("fuzz-*")
                       if path.is_file() and os.access(path, os.X_OK))
        unknown = set(self.args.targets) - set(found)
        if unknown or not found:
            sys.exit(f"fuzz: no target {' '.join(sorted(unknown))}: expected some of {' '.join(found)}")
        return self.args.targets or found

    def executed(self) -> int:
        return sum(result["executions"] for result in self.done.results.values())

    def runs(self, target: str, number: int) -> int:
        last = self.done.results.get(f"{target}/{number - 1}")
        return max(FIRST, int(last["executions"] / max(last["sec"], 0.1) * TRIAL_SEC)) if last else FIRST

    def trial(self, target: str, number: int) -> dict:
        """Seeds follow from the number, so that a trial does not repeat an interrupted one before it."""
        corpus, artifacts = self.directory / "corpus" / target, self.directory / "artifacts"
        for made in (corpus, artifacts):
            made.mkdir(parents=True, exist_ok=True)
        argv = [str(self.directory / "tests" / "fuzz" / f"fuzz-{target}"), f"-runs={self.runs(target, number)}", f"-seed={number + 1}",
                f"-timeout={TIMEOUT_SEC}", "-rss_limit_mb=2048", "-print_final_stats=1",
                f"-artifact_prefix={artifacts}/{target}-", str(corpus), str(progress.SOURCE / "tests" / "fuzz" / "corpus" / target)]
        begin = time.monotonic()
        status, said = self.run(argv)
        found = EXECUTED.search(said)
        lost = status != 0 and not (status == TIMEOUT_STATUS and self.is_quick(argv[0], said))
        return {"trial": f"{target}/{number}", "target": target, "executions": int(found[1]) if found else 0,
                "sec": round(time.monotonic() - begin, 1), "lost": said.splitlines()[-40:] if lost else []}

    def run(self, argv, **popen) -> tuple[int, str]:
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                              env=dict(os.environ, TMPDIR=FILES, LSAN_OPTIONS=f"suppressions={SUPPRESSIONS}"), **popen) as process:
            with self.lock:
                self.running.add(process)
            said = process.communicate()[1]
            with self.lock:
                self.running.remove(process)
        return process.returncode, said

    def is_quick(self, program: str, said: str) -> bool:
        """Checks whether that input alone exceeds the limit of CPU time, because libFuzzer's limit includes time used
        by others."""
        artifact = re.search(r"Test unit written to (\S+)", said)
        limits = (resource.RLIMIT_CPU, (TIMEOUT_SEC, TIMEOUT_SEC))
        return bool(artifact) and self.run([program, "-timeout=0", artifact[1]], preexec_fn=lambda: resource.setrlimit(*limits))[0] == 0

    def work(self, turns) -> None:
        """A worker: runs trials until there were enough executions, or something was found."""
        while not self.stop.is_set():
            with self.lock:
                if self.executed() >= self.args.executions:
                    return
                target, number = next(turns)
            if f"{target}/{number}" in self.done.results:
                continue
            result = self.trial(target, number)
            if self.stop.is_set():
                return  # the trial was interrupted
            with self.lock:
                self.done.add(result)
            if self.args.json or result["lost"]:
                print(json.dumps(result), flush=True)
            if result["lost"]:
                self.stop.set()

    def end(self) -> None:
        self.stop.set()
        with self.lock:
            for process in self.running:
                process.kill()


def turns(targets: list[str]):
    number = 0
    while True:
        for target in targets:
            yield target, number
        number += 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev campaign fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these")
    parser.add_argument("--executions", type=int, default=10**9, metavar="N", help="of all together (default: a billion)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="targets at a time (default: 2)")
    parser.add_argument("--again", action="store_true", help="forget what an interrupted campaign has done; the corpora stay")
    parser.add_argument("--json", action="store_true", help="print each trial's result as a line of JSON")
    args = parser.parse_args()
    done = progress.Progress("fuzz", {"targets": args.targets}, args.again)
    fuzzing = Fuzzing(args, done)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order = turns(fuzzing.targets())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for future in [pool.submit(fuzzing.work, order) for _ in range(args.jobs)]:
                future.result()
        except KeyboardInterrupt:
            fuzzing.end()
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return 130
    by_target: dict[str, int] = {}
    for result in done.results.values():
        by_target[result["target"]] = by_target.get(result["target"], 0) + result["executions"]
    n_lost = sum(bool(result["lost"]) for result in done.results.values())
    print(json.dumps({"executions": fuzzing.executed(), "by_target": by_target, "lost": n_lost}))
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())
