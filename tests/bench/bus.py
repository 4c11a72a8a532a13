#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A storm of clients on the private socket while a workload waits for CPUs: how late ticks get, and what memory is left behind.

Every client listens to all signals and asks for the status again and again. The targets: every client is served, no tick is later
than its interval, so that no two are more than twice the interval apart, and the resident set is back within 5 % of what it was.
"""

import json
import os
import subprocess
import time

from benchlib import HANG_SEC, Daemon, Output, child, n_cpus, nodes_of, parser_of, policy_of

POLICY = policy_of("bus") + "[Steal]\nSteal=yes\nScope=machine\n"


def settled_rss(daemon: Daemon) -> int:
    """The resident set when it has not changed for three seconds."""
    last, same = daemon.rss_bytes(), 0
    while same < 3:
        time.sleep(1)
        now = daemon.rss_bytes()
        last, same = now, same + 1 if now == last else 0
    return last


def main() -> None:
    parser = parser_of("bus", __doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=10000, help="calls per second of all clients together")
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    build = args.build.resolve()
    out = Output("bus", args.json)
    options, _ = nodes_of("bus")
    spinner = [str(build / "tests/workloads/spinner"), "--threads", str(n_cpus() // 2 + 1)]
    with Daemon(build, POLICY, options) as daemon, child(spinner, env=dict(os.environ, NUMAPLACE_BENCH="bus")):
        # The first storm fills the allocator's caches, which every later storm uses.
        storm = [str(build / "tests/integration/bus-storm"), str(args.clients), str(args.rate)]
        subprocess.run([*storm, "2", f"unix:path={daemon.directory / 'bus'}"], check=True, stdout=subprocess.DEVNULL,
                       timeout=HANG_SEC)
        before, rss = daemon.ctl_json("status"), settled_rss(daemon)
        run = subprocess.run([*storm, str(args.seconds), f"unix:path={daemon.directory / 'bus'}"], check=True,
                             stdout=subprocess.PIPE, text=True, timeout=args.seconds + HANG_SEC)
        said, status = json.loads(run.stdout), daemon.ctl_json("status")
        after = settled_rss(daemon)
    ticks = status["tick"] - before["tick"]
    fast = status["fast_tick_setting_usec"]
    out.figure("storm", "clients", "served", said["served"], args.clients, 1, f"  {said['turned_away']} turned away")
    out.figure("storm", "replies", "calls", said["replies"], args.rate * args.seconds, 1,
               f"  {said['held']} not asked, {said['pending']} never answered")
    out.figure("storm", "ticks", "ticks", ticks, None, 1)
    out.figure("storm", "tick_late_max", "us", status["tick_late_max_usec"], fast, 1, "  baseline: FastTickSec=")
    out.figure("storm", "tick_apart_max", "FastTickSec", (fast + status["tick_late_max_usec"]) / fast, 2, 1)
    out.figure("storm", "cpu", "permille", status["cpu_permille"], status["max_cpu_permille"], 1, "  ticks only; MaxCPU=")
    out.figure("storm", "rss_end", "bytes", after, rss, 1)


if __name__ == "__main__":
    main()
