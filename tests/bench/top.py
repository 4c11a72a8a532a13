#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `numaplacectl top` costs on a terminal, beside a daemon that rehearses a machine of 1,024 CPUs, with a process in each workload.

The aim is 2 % of a CPU at one look a second, also while the terminal is resized every other second.
"""

import contextlib
import os
import pathlib
import sys
import time

from benchlib import HANG_SEC, Daemon, Output, child, parser_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import terminal  # noqa: E402  beside the tests that use it

POLICY = """[Match]
Environment=NUMAPLACE_BENCH=top{number}

[Workload]
MinAgeSec=0
"""

MACHINE = "pack:16 [numa] l3:4 core:8 pu:2"
SIZES = [(24, 80), (60, 200)]


def cpu_sec(pid: int) -> float:
    """CPU time of a process including its ended threads, in steps of a tick, which are small compared with the
    measured time."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(top: terminal.Terminal, seconds: float, resized: bool) -> float:
    """CPU time of top per second, excluding the time to write its output."""
    before, start, n = cpu_sec(top.pid), time.monotonic(), 0
    while time.monotonic() < start + seconds:
        n += 1
        if resized:
            top.resize(*SIZES[n % 2])
        top.drain(2)
    return (cpu_sec(top.pid) - before) / (time.monotonic() - start)


def main() -> None:
    parser = parser_of("top", __doc__)
    parser.add_argument("--workloads", default="0,1,500", help="how many, one case each")
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    build = args.build.resolve()
    out = Output("top", args.json)
    for n in map(int, args.workloads.split(",")):
        with contextlib.ExitStack() as stack:
            daemon = Daemon(build, None, ["--dry-run", f"--synthetic={MACHINE}"])
            for i in range(n):
                policy = daemon.directory / "policy.d" / f"50-top{i}.policy"
                policy.write_text(POLICY.format(number=i), encoding="ascii")
                stack.enter_context(child(["sleep", "infinity"], env=dict(os.environ, NUMAPLACE_BENCH=f"top{i}")))
            stack.enter_context(daemon)
            deadline = time.monotonic() + HANG_SEC
            while (seen := sum(w["processes"] for w in daemon.ctl_json("workloads"))) < n:
                if time.monotonic() > deadline:
                    sys.exit(f"only {seen} of {n} processes are seen")
                time.sleep(1)
            argv = [str(build / "src/ctl/numaplacectl"), f"--socket={daemon.directory / 'bus'}", "top"]
            for rows, columns, resized in [(*SIZES[0], False), (*SIZES[1], False), (*SIZES[0], True)]:
                with terminal.Terminal(argv, rows, columns) as top:
                    top.drain(3)
                    cost = watch(top, args.seconds, resized)
                    top.press("q")
                    top.end()
                size = "resized" if resized else f"{columns}x{rows}"
                out.figure(f"{n}-{size}", "cpu", "percent", 100 * cost, None, 1)


if __name__ == "__main__":
    main()
