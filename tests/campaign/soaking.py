#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets processes come and go for hours beside one daemon, where their numbers are soon used again, and looks what grows.

usage: soaking.py [--seed N] [--minutes N] [--trial NAME]

Each step bears, ends, pins or asks something. Whoever is not managed has its mask after each step, or an action went to a wrong process.
Once a minute the daemon's memory, descriptors, journal and log are noted. In the end none of them grows, and everything goes back.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import kills
import lib

# Fast enough to fill the lists of moves and refusals, which takes some 18,000 steps, before the first quarter ends.
STEP_SEC, MINUTE_SEC = 0.05, 60
# Few enough PIDs that each is reused after some minutes.
PID_MAX = 1500
POPULATION = 16


class Soak:
    def __init__(self, seed: int, directory: pathlib.Path):
        self.rng, self.directory = random.Random(seed), directory
        self.everything = lib.own_cpus()
        self.managed: list[kills.Process] = []
        self.innocents: list[tuple[kills.Process, set[int]]] = []
        self.heirs: list[int] = []
        self.samples: list[dict] = []
        self.n_wrong = self.n_steps = 0
        (directory / "policy.d").mkdir()
        (directory / "numaplaced.conf").touch()
        (directory / "policy.d" / "50-soak.policy").write_text(
            "[Match]\nComm=np-soak\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=1\nMinResidencySec=0\n", encoding="ascii")
        argv = [lib.DAEMON, f"--runtime-dir={directory / 'run'}", f"--config={directory / 'numaplaced.conf'}",
                f"--policy-dir={directory / 'policy.d'}", *(["--rehearse=2"] if lib.one_node() else [])]
        self.log = directory / "log"
        with open(self.log, "wb") as log:
            self.daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while self.daemon.poll() is None and b": ready (" not in self.log.read_bytes():
            time.sleep(0.1)

    def ctl(self, *args: str) -> None:
        subprocess.run([lib.CTL, f"--socket={self.directory / 'run' / 'bus'}", *args], capture_output=True, check=False)

    def step(self) -> None:
        rng = self.rng
        what = rng.choice(("come", "come", "go", "innocent", "innocent goes", "thread", "heir", "heirs go", "ask", "reload", "release"))
        if what == "come" and len(self.managed) < POPULATION:
            self.managed.append(kills.Process("np-soak", self.everything))
        elif what == "go" and self.managed:
            self.managed.pop(rng.randrange(len(self.managed))).end()
        elif what == "innocent" and len(self.innocents) < POPULATION:
            cpus = set(rng.sample(self.everything, rng.randint(1, len(self.everything))))
            self.innocents.append((kills.Process("np-innocent", cpus), cpus))
        elif what == "innocent goes" and self.innocents:
            self.innocents.pop(rng.randrange(len(self.innocents)))[0].end()
        elif what == "thread" and self.managed:
            rng.choice(self.managed).ask("t")
        elif what == "heir" and self.managed and len(self.heirs) < POPULATION:
            self.heirs.append(rng.choice(self.managed).ask(rng.choice("od")))
        elif what == "heirs go":
            self.end_heirs()
        elif what == "ask":
            self.ctl(*rng.choice((("status",), ("workloads",), ("moves",), ("explain", str(rng.randint(1, PID_MAX))))))
        elif what == "reload" and rng.random() < 0.1:
            self.daemon.send_signal(signal.SIGHUP)
        elif what == "release" and self.managed and rng.random() < 0.3:
            self.ctl("release", str(rng.choice(self.managed).pid))
        self.n_steps += 1
        self.n_wrong += sum(os.sched_getaffinity(process.pid) != cpus for process, cpus in self.innocents)

    def end_heirs(self) -> None:
        for pid in self.heirs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.heirs = []

    def sample(self) -> None:
        proc = pathlib.Path("/proc", str(self.daemon.pid))
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text(encoding="ascii").splitlines() if ":\t" in line)
        self.samples.append({"rss_kb": int(status["VmRSS"].split()[0]), "descriptors": len(os.listdir(proc / "fd")),
                             "journal_bytes": (self.directory / "run" / "journal").stat().st_size,
                             "log_lines": self.log.read_bytes().count(b"\n")})

    def grown(self) -> list[str]:
        """What grew from the second quarter to the last. The first is for warming up."""
        quarter = len(self.samples) // 4
        found = []
        for name, share, slack in (("rss_kb", 1.02, 256), ("descriptors", 1.0, 8), ("journal_bytes", 1.5, 8192)):
            before, after = ([sample[name] for sample in self.samples[a:a + quarter]] for a in (quarter, 3 * quarter))
            if statistics.median(after) > statistics.median(before) * share + slack:
                found.append(f"{name}: {statistics.median(before)}, later {statistics.median(after)}")
        lines = [sample["log_lines"] for sample in self.samples]
        first, second = lines[len(lines) // 2] - lines[0], lines[-1] - lines[len(lines) // 2]
        if second > 1.5 * first + 50:
            found.append(f"log lines: {first} in the first half, {second} in the second")
        return found

    def run(self, minutes: int) -> dict:
        for _ in range(minutes):
            until = time.monotonic() + MINUTE_SEC
            while time.monotonic() < until and self.daemon.poll() is None:
                self.step()
                time.sleep(self.rng.uniform(0, 2 * STEP_SEC))
            if self.daemon.poll() is not None:
                break
            self.sample()
        lost = self.grown() if self.daemon.poll() is None else []
        self.daemon.send_signal(signal.SIGTERM)
        status = self.daemon.wait()
        if status != 0:
            lost.append(f"status {status}: {self.log.read_text(errors='replace')[-2000:]}")
        if self.n_wrong:
            lost.append(f"{self.n_wrong} masks of others were not theirs")
        for pid in [*(process.pid for process in self.managed), *self.heirs]:
            if os.sched_getaffinity(pid) != set(self.everything):
                lost.append(f"{pid} has not its mask of before")
        self.end_heirs()
        for process in [*self.managed, *(process for process, _ in self.innocents)]:
            process.end()
        return {"minutes": len(self.samples), "steps": self.n_steps, "wrong": self.n_wrong,
                "samples": [list(sample.values()) for sample in self.samples], "lost": lost}


@contextlib.contextmanager
def few_numbers():
    path = pathlib.Path("/proc/sys/kernel/pid_max")
    before = path.read_text(encoding="ascii")
    path.write_text(str(PID_MAX), encoding="ascii")
    try:
        yield
    finally:
        path.write_text(before, encoding="ascii")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what all chance follows from (default: 1)")
    parser.add_argument("--minutes", type=int, default=120, metavar="N", help="how long, by this machine's clock (default: 120)")
    parser.add_argument("--trial", default="soak", metavar="NAME", help="what the result is called")
    args = parser.parse_args()
    if args.minutes < 4:
        parser.error("--minutes: expected at least 4, of which quarters are compared")
    warnings.simplefilter("ignore")
    lib.need_placing()
    print("1..1", flush=True)
    with few_numbers(), tempfile.TemporaryDirectory(prefix="np-soak-") as name:
        os.chmod(name, 0o755)
        result = {"trial": args.trial, **Soak(args.seed, pathlib.Path(name)).run(args.minutes)}
    print(json.dumps(result), flush=True)
    print(f"{'not ok' if result['lost'] else 'ok'} 1 - {args.minutes} minutes leave nothing behind, and nothing grows", flush=True)
    return 1 if result["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
