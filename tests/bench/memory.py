#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon's memory: with many threads managed for a while, and while processes come and go.

  threads   one process of N sleeping-and-working threads, managed for --minutes; the target is 16 MiB + 400 bytes each
  forks     processes that fork and exit until --forks have gone by; the resident set must not grow with them
"""

import os
import pathlib
import sys
import time

from benchlib import Daemon, Output, child, nodes_of, parser_of, policy_of

POLICY = policy_of("memory")

# The managed threads want more CPUs than there may be. They are not what is measured, so they run at lower priority
# than the daemon.
NICE = 19

BASE_BYTES = 16 << 20
THREAD_BYTES = 400


def threads_case(build: pathlib.Path, out: Output, n: int, minutes: float, options: list[str]) -> None:
    env = dict(os.environ, NUMAPLACE_BENCH="memory")
    with Daemon(build, POLICY, options) as daemon:
        with child([str(build / "tests/workloads/spinner"), "--threads", str(n), "--duty-usec", "50",
                    "--period-usec", "1000000"], env=env, preexec_fn=lambda: os.nice(NICE)):
            end = time.monotonic() + 60 * minutes
            peak = managed = 0
            while time.monotonic() < end:
                time.sleep(2)
                peak = max(peak, daemon.rss_bytes())
                managed = max(managed, sum(w["tasks"] for w in daemon.ctl_json("workloads")))
            out.figure("threads", "managed", "threads", managed, None, 1)
            out.figure("threads", "rss_peak", "bytes", peak, BASE_BYTES + THREAD_BYTES * managed, 1)


def forks_case(build: pathlib.Path, out: Output, n: int, options: list[str]) -> None:
    env = dict(os.environ, NUMAPLACE_BENCH="memory")
    counter = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"numaplace-forks-{os.getpid()}"
    with Daemon(build, POLICY, options) as daemon:
        with child([str(build / "tests/workloads/forker"), "--processes", "200", "--counter-file", str(counter)], env=env,
                   preexec_fn=lambda: os.nice(NICE)) as forker:
            quarter = None
            while True:
                time.sleep(0.2)
                if forker.poll() is not None:
                    sys.exit(f"./dev bench memory: the forker ended with status {forker.returncode}")
                forked = int.from_bytes(counter.read_bytes()[:8], "little") if counter.exists() else 0
                if quarter is None and forked >= n // 4:
                    quarter = daemon.rss_bytes()
                if forked >= n:
                    break
            end = daemon.rss_bytes()
        out.figure("forks", "forked", "processes", forked, None, 1)
        out.figure("forks", "rss_end", "bytes", end, quarter, 1, "  baseline: after a quarter of them")
    counter.unlink(missing_ok=True)


def main() -> None:
    parser = parser_of("memory", __doc__)
    parser.add_argument("--threads", type=int, default=10000)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--forks", type=int, default=100000)
    parser.add_argument("--case", choices=("threads", "forks", "all"), default="all")
    args = parser.parse_args()
    build = args.build.resolve()
    out = Output("memory", args.json)
    options, _ = nodes_of("memory")
    if args.case in ("threads", "all"):
        threads_case(build, out, args.threads, args.minutes, options)
    if args.case in ("forks", "all"):
        forks_case(build, out, args.forks, options)


if __name__ == "__main__":
    main()
