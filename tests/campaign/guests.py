# SPDX-License-Identifier: LGPL-2.1-or-later
"""Campaigns whose trials run in guests, several in each. Results are kept (progress.py)."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import dataclass

import progress

sys.path.insert(0, str(progress.SOURCE / "tests" / "vm"))
from labkit import LabError, Unavailable, guest, tour
from labkit.case import Case


@dataclass(frozen=True)
class Portion:
    """What one guest does, or this machine if there is no `suite`: `command`, a program of this directory with
    arguments, prints a line of JSON for each of these trials, with the trial's name as "trial"."""

    trials: tuple
    suite: str
    machine: str
    command: str
    parallel: bool = False  # its CPUs run at the same time
    limit_sec: int = 3600


def parser(name: str, doc: str) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog=f"./dev campaign {name}", description=doc.splitlines()[0])
    found.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    found.add_argument("--jobs", type=int, default=2, metavar="N", help="guests at a time (default: 2)")
    found.add_argument("--again", action="store_true", help="forget what an interrupted campaign has done")
    found.add_argument("--json", action="store_true", help="print each trial's result as a line of JSON")
    return found


def make(portion: Portion, build: pathlib.Path) -> list[dict]:
    """The results of its trials. Trials that the guest did not reach are lost."""
    lines, problems = (in_guest if portion.suite else here)(portion, build)
    place = {"suite": portion.suite, "machine": portion.machine} if portion.suite else {}
    found = {result["trial"]: {**result, **place} for result in map(json.loads, lines)}
    for trial in portion.trials:
        found.setdefault(trial, {"trial": trial, **place, "lost": problems or ["no result"]})
    # For example, something left behind after all trials succeeded.
    if problems and not any(result["lost"] for result in found.values()):
        found[portion.trials[-1]]["lost"] = problems
    return list(found.values())


def in_guest(portion: Portion, build: pathlib.Path) -> tuple[list[str], list[str]]:
    case = Case(f"campaign-{portion.trials[0]}", "a portion of a campaign", [portion.machine], [portion.suite],
                f"python3 campaign/{portion.command}\n", limit_sec=portion.limit_sec, parallel=portion.parallel)
    ended = tour.run(tour.Tour(portion.suite, portion.machine, (case,)), build)[0]
    return ended.results, ended.problems and [*ended.problems, *ended.console_tail]


def here(portion: Portion, build: pathlib.Path) -> tuple[list[str], list[str]]:
    programs = {"NUMAPLACED": "src/daemon/numaplaced", "NUMAPLACECTL": "src/ctl/numaplacectl", "NUMAPLACE_SPINNER": "tests/workloads/spinner",
                "NUMAPLACE_FORKER": "tests/workloads/forker", "NUMAPLACE_BUS_STORM": "tests/integration/bus-storm",
                "NUMAPLACE_HANG": "tests/integration/hang", "NUMAPLACE_KILL_AT_LIBRARY": "tests/campaign/kill-at.so"}
    env = dict(os.environ, NUMAPLACE_SOURCE=str(progress.SOURCE), **{name: str(build / path) for name, path in programs.items()})
    program, *arguments = portion.command.split()
    run = subprocess.run([sys.executable, str(progress.SOURCE / "tests" / "campaign" / program), *arguments], env=env, text=True,
                         stdin=subprocess.DEVNULL, capture_output=True, check=False)
    problems = [f"ended with status {run.returncode}", *run.stderr.splitlines()[-20:]] if run.returncode else []
    return [line for line in run.stdout.splitlines() if line.startswith("{")], problems


def gave_up(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if isinstance(error, Unavailable):
        print(f"the lab cannot run here: {error}", file=sys.stderr)
        return 77
    if isinstance(error, LabError):
        print(f"lab: {error}", file=sys.stderr)
        return 1
    raise error


def run(args, done: progress.Progress, portions: list[Portion], total) -> int:
    """Runs the missing trials of these portions. `total(results)`: the line of JSON at the end. Returns the exit
    status."""
    missing = [portion for portion in portions if any(trial not in done.results for trial in portion.trials)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for future in concurrent.futures.as_completed([pool.submit(make, portion, args.build.resolve()) for portion in missing]):
                for result in future.result():
                    done.add(result)
                    if args.json or result["lost"]:
                        print(json.dumps(result), flush=True)
                print(f"{len(done.results)} trials done", file=sys.stderr, flush=True)
        except BaseException as error:
            guest.stop.set()
            pool.shutdown(cancel_futures=True)
            return gave_up(error)
    results = [done.results[trial] for portion in portions for trial in portion.trials]
    n_lost = sum(bool(result["lost"]) for result in results)
    print(json.dumps({"trials": len(results), **total(results), "lost": n_lost}))
    return 1 if n_lost else 0
