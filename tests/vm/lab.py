#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The VM lab: runs cases in multi-node guests. `./dev lab` is this program; README.md tells how to write a case.

usage: lab.py build [SUITE..] | package [SUITE..] | run CASE.. | bench placement | shell [MACHINE] | list
Exit status of run: 0 passed, 1 something failed, 77 everything was skipped, or the lab cannot run here (with CI=true that
is a failure).
"""

import argparse
import os
import pathlib
import signal
import sys
import tempfile

from labkit import SUITES, LabError, Unavailable, bench_placement, case, guest, image, machine, note, package

SKIP = 77


def cmd_build(args) -> int:
    guest.version()
    for suite in args.suites or SUITES:
        print(image.ensure(suite).root)
    return 0


def cmd_package(args) -> int:
    for suite in args.suites or SUITES:
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


def report(result: case.Result) -> None:
    print(f"{result.verdict}: {result.suite}/{result.name} ({result.points} tests, {result.seconds:.1f} s)", flush=True)
    for line in result.skipped:
        print(f"  skipped: {line}")
    if result.problems:
        for line in result.problems:
            print(f"  {line}")
        print(f"  the end of the console ({result.logs / 'console'}):")
        for line in result.console_tail:
            print(f"  | {line}")
    sys.stdout.flush()


def run_one(found: case.Case, machine_name: str, suite: str, args) -> case.Result:
    """What is wrong with one case must not keep the others from running."""
    print(f"-- {suite}/{found.name} on {machine_name}", flush=True)
    try:
        return case.run(found, machine_name, suite, args.build, on_line=lambda line: print(f"  {line}", flush=True))
    except Unavailable:
        raise
    except (LabError, OSError) as error:
        return case.Result(found.name, suite, args.build / "lab", problems=[str(error)])


def cmd_run(args) -> int:
    directory = args.cases_dir
    wanted = case.names(directory) if args.cases == ["all"] else args.cases
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for found in [case.load(name, directory) for name in wanted]:
        suites = [suite for suite in found.suites if suite in (args.suite or SUITES)]
        for suite in suites:
            for machine_name in args.machine or found.machines:
                result = run_one(found, machine_name, suite, args)
                report(result)
                counts[result.verdict] += 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if counts["failed"] or not sum(counts.values()):
        return 1
    return 0 if counts["passed"] else SKIP


def cmd_shell(args) -> int:
    """A root shell on a machine; Ctrl-D powers it off."""
    found = case.Case("shell", "a shell", [args.machine], [args.suite], "", kernel_args=args.kernel_args, cost=args.cost)
    with tempfile.TemporaryDirectory(prefix="lab-shell-") as name:
        work = pathlib.Path(name)
        vm = case.prepare(found, args.machine, args.suite, args.build.resolve(), work, work)
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
    packages.add_argument("suites", nargs="*", metavar="SUITE", choices=[*SUITES, []])
    packages.set_defaults(call=cmd_package)

    run = verbs.add_parser("run", help="run cases, or all")
    run.add_argument("cases", nargs="+", metavar="CASE")
    run.add_argument("--suite", action="append", choices=SUITES, help="only this suite")
    run.add_argument("--machine", action="append", help="another machine than the case's")
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


def main() -> int:
    args = parse_arguments()
    # So that cleaning up is done: a guest is ended where it was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
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
        return 130


if __name__ == "__main__":
    sys.exit(main())
