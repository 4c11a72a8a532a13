#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One process of very many sleeping threads: how late ticks get while it is found, placed, released and put back.

Lateness is by the daemon's own clock. The target: no tick is more than 100 ms late, whatever the number of threads, and the bus
is answered meanwhile.
"""

import os
import pathlib
import signal
import subprocess
import time

from benchlib import Daemon, Output, child, parser_of, policy_of

POLICY = policy_of("threads")

DEADLINE_SEC = 600


class Watch:
    """Asks for the status again and again, and records the longest time to an answer."""

    def __init__(self, daemon: Daemon):
        self.daemon = daemon
        self.longest = 0.0

    def until(self, what: str, is_so) -> float:
        begin = time.monotonic()
        while not is_so():
            asked = time.monotonic()
            status = self.daemon.ctl_json("status")
            self.longest = max(self.longest, time.monotonic() - asked)
            if time.monotonic() > begin + DEADLINE_SEC:
                raise SystemExit(f"waited {DEADLINE_SEC} s for: {what}; {status}")
            time.sleep(0.02)
        return time.monotonic() - begin


def n_threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0


def n_with(pid: int, cpus: set[int]) -> int:
    n = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            n += os.sched_getaffinity(int(tid)) == cpus
        except ProcessLookupError:
            continue
    return n


def late(out: Output, case: str, daemon: Daemon, when: str) -> None:
    """Late by the clock, which other programs can cause as well, and by the CPU time of one turn, which they cannot."""
    status = daemon.ctl_json("status")
    out.figure(case, "tick_late_max", "us", status["tick_late_max_usec"], 100000, 1, "  " + when)
    if "tick_cpu_max_usec" in status:
        out.figure(case, "tick_cpu_max", "us", status["tick_cpu_max_usec"], 100000, 1, "  " + when)


def main() -> None:
    parser = parser_of("threads", __doc__)
    parser.add_argument("--threads", type=int, default=25000)
    args = parser.parse_args()
    build, full = args.build.resolve(), os.sched_getaffinity(0)
    out = Output("threads", args.json)
    case = str(args.threads)
    options = ["--rehearse=2"] if not pathlib.Path("/sys/devices/system/node/node1").exists() else []
    spinner = [str(build / "tests/workloads/spinner"), "--asleep", "--threads", str(args.threads)]
    with child(spinner, env=dict(os.environ, NUMAPLACE_BENCH="threads")) as process:
        while n_threads(process.pid) <= args.threads and process.poll() is None:
            time.sleep(0.1)
        if process.poll() is not None:
            raise SystemExit("the process could not start so many threads")
        with Daemon(build, POLICY, options) as daemon:
            watch = Watch(daemon)
            took = watch.until("every thread to be at home", lambda: n_with(process.pid, full) == 0)
            out.figure(case, "placed", "s", took, None, 1)
            late(out, case, daemon, "found and placed")
            begin, tick = time.monotonic(), daemon.ctl_json("status")["tick"]
            watch.until("ten more ticks", lambda: daemon.ctl_json("status")["tick"] >= tick + 10)
            out.figure(case, "ticks_in", "s", time.monotonic() - begin, None, 1, "  ten of them afterwards")
            begin = time.monotonic()
            released = subprocess.Popen([str(build / "src/ctl/numaplacectl"), f"--socket={daemon.directory / 'bus'}",
                                         "release", str(process.pid)])
            watch.until("the release to be answered", lambda: released.poll() is not None)
            out.figure(case, "released", "s", time.monotonic() - begin, None, 1, f"  {n_with(process.pid, full)} have all CPUs")
            late(out, case, daemon, "and released")
            subprocess.run([str(build / "src/ctl/numaplacectl"), f"--socket={daemon.directory / 'bus'}",
                            "resume", str(process.pid)], check=True)
            watch.until("every thread to be at home again", lambda: n_with(process.pid, full) == 0)
            status = daemon.ctl_json("status")
            late(out, case, daemon, "and placed again")
            out.figure(case, "answer_max", "s", watch.longest, None, 1)
            out.figure(case, "rss", "bytes", status["rss_bytes"], None, 1)
            begin = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            daemon.process.wait(DEADLINE_SEC)
            out.figure(case, "stop", "s", time.monotonic() - begin, None, 1,
                       f"  {n_with(process.pid, full)} threads have all CPUs again")


if __name__ == "__main__":
    main()
