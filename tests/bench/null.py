#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The null test: programs numaplace cannot help must not notice that it manages them.

hackbench's tasks run for a tenth of a millisecond at a time: their placement is the kernel's, and the claim here is to
do no harm. Each case is run with and without the daemon managing it, interleaved, the order of a pair alternating;
the figure is the median of the pairs' time ratios, with / without.
"""

import os
import pathlib
import subprocess
import time

from benchlib import Daemon, Output, median, n_cpus, nodes_of, parser_of, policy_of, spread


def run_once(argv: list[str]) -> float:
    env = dict(os.environ, NUMAPLACE_BENCH="null")
    start = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.monotonic() - start


def calibrated(argv: list[str], amount: int, seconds: float) -> list[str]:
    """The program with an amount of work that takes about that long on this machine now. Only ratios count, and what
    takes seconds on one machine takes half an hour for all runs on a small and busy one."""
    while True:
        took = run_once([*argv, str(amount)])
        if took >= seconds / 4:
            return [*argv, str(max(1, round(amount * seconds / took)))]
        amount *= 2


def main() -> None:
    parser = parser_of("null", __doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--groups", default="2,4,8", help="hackbench groups, one case each")
    parser.add_argument("--seconds", type=float, default=2, help="what one run is to take")
    args = parser.parse_args()
    build = args.build.resolve()
    out = Output("null", args.json)

    options, nodes = nodes_of("null")
    policy = policy_of("null", nodes)
    cases = [(f"hackbench-{g}", ["hackbench", "-s", "512", "-g", g, "-l"], 100) for g in args.groups.split(",")]
    cases.append(("cpu-bound", [str(build / "tests/workloads/spinner"), "--threads", str(2 * n_cpus()), "--work"], 100000000))

    for name, program, least in cases:
        argv = calibrated(program, least, args.seconds)
        out.note(" ".join([pathlib.Path(argv[0]).name, *argv[1:]]))
        ratios, with_all, without_all, cpu = [], [], [], []
        for pair in range(args.pairs):
            times = {}
            for managed in ((True, False) if pair % 2 else (False, True)):
                if managed:
                    with Daemon(build, policy, options) as daemon:
                        before = daemon.cpu_nsec()
                        times[managed] = run_once(argv)
                        cpu.append((daemon.cpu_nsec() - before) / 1e9 / times[managed])
                else:
                    times[managed] = run_once(argv)
            ratios.append(times[True] / times[False])
            with_all.append(times[True])
            without_all.append(times[False])
        out.figure(name, "paired_time_ratio", "ratio", median(ratios), 1.0, args.pairs, spread(ratios))
        out.figure(name, "wall_time", "s", median(with_all), median(without_all), args.pairs)
        out.figure(name, "daemon_cpu", "percent", 100 * median(cpu), None, args.pairs)


if __name__ == "__main__":
    main()
