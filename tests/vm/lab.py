#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The VM lab: runs cases in multi-node guests. `./dev lab` is this program; README.md tells how to write a case.

usage: lab.py build [SUITE..] | package [SUITE..] | run CASE.. | bench placement | shell [MACHINE] | list
Exit status of run: 0 passed, 1 something failed, 77 everything was skipped, or the lab cannot run here (with CI=true that
is a failure).
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import sys
import tempfile
import threading

from labkit import SUITES, USUAL_SUITES, LabError, Unavailable, bench_placement, case, guest, image, machine, note, package, tour

SKIP = 77


def cmd_build(args) -> int:
    """Side by side: each waits for the network or the disk half of the time."""
    suites = args.suites or USUAL_SUITES
    with concurrent.futures.ThreadPoolExecutor(len(suites) + 1) as pool:
        emulator = pool.submit(guest.version)
        for built in pool.map(image.ensure, suites):
            print(built.root)
        emulator.result()
    return 0


def cmd_package(args) -> int:
    for suite in args.suites or USUAL_SUITES:
        debs = package.ensure(suite)
        print(package.lintian(suite))
        print(*debs, sep="\n")
    return 0


def cmd_list(args) -> int:
    for name in case.names():
        found = case.load(name)
        print(f"{name:24} {' '.join(found.suites):16} {found.description}")
    print("machines:", *machine.names())
    return 0


def report(result: tour.Result) -> list[str]:
    name = f"{result.suite}/{result.name}"
    lines = [f"{result.verdict}: {name} ({result.points} tests, {result.seconds:.1f} s)",
             *(f"  skipped: {line}" for line in result.skipped)]
    if result.problems:
        lines += [*(f"  {line}" for line in result.problems), f"  the end of the console ({result.guest_logs / 'console'}):",
                  *(f"  | {line}" for line in result.console_tail)]
    return lines


class Runner:
    """Runs tours, several at a time. The output of each is printed in one piece, unless only one runs at a time."""

    def __init__(self, build: pathlib.Path, jobs: int):
        self.build, self.jobs = build, jobs
        self.printing = threading.Lock()

    def say(self, lines: list[str]) -> None:
        with self.printing:
            print(*lines, sep="\n", flush=True)

    def run(self, one: tour.Tour) -> list[tour.Result]:
        """An error in one tour must not keep the others from running."""
        said: list[str] = []

        def on_line(line: str) -> None:
            if self.jobs == 1:
                self.say([f"  {line}"])
            else:
                said.append(f"  {line}")

        self.say([f"-- {one.title}"])
        try:
            results = tour.run(one, self.build, on_line)
        except Unavailable:
            raise
        except (LabError, OSError) as error:
            logs = self.build / "lab"
            results = [tour.Result(found.name, one.suite, logs, logs, problems=[str(error)]) for found in one.cases]
        self.say([*([f"-- {one.title}: said"] if said else []), *said, *(line for result in results for line in report(result))])
        return results

    def run_all(self, tours: list[tour.Tour]) -> list[tour.Result]:
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return [result for results in pool.map(self.run, tours) for result in results]


def cmd_run(args) -> int:
    directory = args.cases_dir
    wanted = case.names(directory) if args.cases == ["all"] else args.cases
    tours = tour.plan([case.load(name, directory) for name in wanted], args.suite, args.machine)
    jobs = min(args.jobs or len(os.sched_getaffinity(0)), len(tours) or 1)
    results = Runner(args.build, jobs).run_all(tours)
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in ("passed", "failed", "skipped")}
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if counts["failed"] or not results:
        return 1
    return 0 if counts["passed"] else SKIP


def cmd_shell(args) -> int:
    """A root shell on a machine; Ctrl-D powers it off. It uses the host's clock, except when memory has prices."""
    found = case.Case("shell", "a shell", [args.machine], [args.suite], "", kernel_args=args.kernel_args, parallel=args.cost,
                      cost=args.cost)
    with tempfile.TemporaryDirectory(prefix="lab-shell-") as name:
        work = pathlib.Path(name)
        vm = tour.prepare(tour.Tour(args.suite, args.machine, (found,)), args.build.resolve(), work, work)
        vm.by_host = True
        argv = vm.argv(interactive=True)
        note("booting; the shell's end powers the guest off")
        # QEMU puts the terminal into raw mode, so Ctrl-C reaches the guest.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return os.spawnvp(os.P_WAIT, argv[0], argv)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab.py", description="Runs cases in multi-node guests.")
    verbs = parser.add_subparsers(dest="verb", required=True)

    build = verbs.add_parser("build", help="build the images")
    build.add_argument("suites", nargs="*", metavar="SUITE", choices=[*SUITES, []])
    build.set_defaults(call=cmd_build)

    packages = verbs.add_parser("package", help="build the Debian packages in a clean root, and check them with lintian")
    packages.add_argument("suites", nargs="*", metavar="SUITE", choices=[*USUAL_SUITES, []])
    packages.set_defaults(call=cmd_package)

    run = verbs.add_parser("run", help="run cases, or all")
    run.add_argument("cases", nargs="+", metavar="CASE")
    run.add_argument("--suite", action="append", choices=SUITES, help="only this suite")
    run.add_argument("--machine", action="append", help="another machine than the case's")
    run.add_argument("--jobs", type=int, default=0, help="guests at a time (one for each CPU)")
    run.add_argument("--cases-dir", type=pathlib.Path, default=case.VM / "cases")
    run.set_defaults(call=cmd_run)

    shell = verbs.add_parser("shell", help="a root shell in a guest")
    shell.add_argument("machine", nargs="?", default="2x2")
    shell.add_argument("--suite", choices=SUITES, default=SUITES[0])
    shell.add_argument("--kernel-args", default="")
    shell.add_argument("--cost", action="store_true", help="with the cost plugin")
    shell.set_defaults(call=cmd_shell)

    bench = verbs.add_parser("bench", help="run a benchmark in guests")
    bench.add_argument("name", choices=["placement"])
    bench_placement.add_arguments(bench)
    bench.set_defaults(call=bench_placement.main)

    for verb in (run, shell, bench):
        verb.add_argument("--build", type=pathlib.Path, required=True, help="a build directory with -Dvm=true")
    verbs.add_parser("list", help="list cases and machines").set_defaults(call=cmd_list)
    return parser.parse_args()


def terminated(*_) -> None:
    guest.stop.set()
    sys.exit(1)


def main() -> int:
    args = parse_arguments()
    # For cleaning up: a guest is ended where it was started.
    signal.signal(signal.SIGTERM, terminated)
    try:
        return args.call(args)
    except Unavailable as error:
        print(f"SKIP: the VM lab cannot run here: {error}", flush=True)
        if os.environ.get("CI") == "true":
            print("CI=true: a lab that cannot run is a failure", flush=True)
            return 1
        return SKIP
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        guest.stop.set()
        return 130


if __name__ == "__main__":
    sys.exit(main())
