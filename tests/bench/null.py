#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The null test: programs numaplace cannot help must not notice that it manages them.

hackbench's tasks run for a tenth of a millisecond at a time: their placement is the kernel's, and the claim here is to
do no harm. Each case is run with and without the daemon managing it, interleaved, the order of a pair alternating;
the figure is the median of the pairs' time ratios, with / without.
"""

import argparse
import os
import pathlib
import subprocess
import time

from benchlib import Daemon, Output, median, n_cpus, spread

POLICY = """[Match]
Environment=NUMAPLACE_BENCH=null

[Workload]
MinAgeSec=0

[Placement]
Mode=fixed
Nodes={nodes}
"""


def run_once(argv: list[str]) -> float:
    env = dict(os.environ, NUMAPLACE_BENCH="null")
    start = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench null", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--groups", default="2,4,8", help="hackbench groups, one case each")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    build = args.build.resolve()
    out = Output("null", args.json)

    online = pathlib.Path("/sys/devices/system/node/online")
    real_nodes = online.read_text(encoding="ascii").strip() if online.exists() else "0"
    rehearse = real_nodes == "0" and n_cpus() >= 2
    options = ["--rehearse=2"] if rehearse else []
    policy = POLICY.format(nodes="0,1" if rehearse else real_nodes)

    # Loops are chosen so that a run takes some seconds on a small machine; only ratios count.
    cases = [(f"hackbench-{g}", ["hackbench", "-s", "512", "-g", g, "-l", str(16000 // int(g))])
             for g in args.groups.split(",")]
    cases.append(("cpu-bound", [str(build / "tests/workloads/spinner"), "--threads", str(2 * n_cpus()),
                                "--work", "6000000000"]))

    for name, argv in cases:
        run_once(argv)  # warm-up
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
