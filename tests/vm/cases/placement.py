# SPDX-License-Identifier: LGPL-2.1-or-later
"""A round of the placement benchmark: runs the pairs of workload and system that the lab names, one after the other,
and prints a JSON line for each.

usage: placement.py JSON   a list of {"workload", "system", "window", "scale", "memory", "bytes", "order", "cache_aware"}; `bytes`
                           is the size of the array or heap, or empty; `order` that of the lines of a block or page;
                           `cache_aware` whether the kernel schedules so: 0, 1, or empty, as it is
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import series
from programs import PROGRAMS
from systems import SYSTEMS, TUNABLES

CACHE_AWARE = pathlib.Path("/sys/kernel/debug/sched/llc_balancing/enabled")
# Figures of a run that are reported besides those of the whole guest.
FIGURES = ("seconds", "operations", "local_end", "local90_s", "local95_s", "rate_after_3s", "rate_after_5s", "relocal90_s",
           "recovered_s", "stall_worst_s", "stalls")
# For workloads that would take long to touch their memory.
WARM_BYTES = {"stall": "64M", "stall-pair": "64M"}
# Scale of the work, for the second in which a placer can do all it has to do.
WARM_SCALE = {"sequential": 1, "random": 0.1}
# For workloads that run for a fixed time, which is 20 s with 1.
WARM_SCALE_TIMED = 0.15
TIMED = ("uneven", "uneven-swap", "stall", "stall-pair")


def counters(system):
    """What the guest as a whole has done so far, and the daemon."""
    cpu = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    vm = dict(line.split() for line in pathlib.Path("/proc/vmstat").read_text(encoding="ascii").splitlines())
    # system, irq, softirq
    ticks = int(cpu[3]) + int(cpu[6]) + int(cpu[7])
    return {"system_cpu_s": ticks / os.sysconf("SC_CLK_TCK"), "pages_moved": int(vm["pgmigrate_success"]),
            "pages_moved_by_balancing": int(vm.get("numa_pages_migrated", 0)),
            "daemon_cpu_s": system.daemon_cpu_sec(), "mover_cpu_s": system.mover_cpu_sec()}


def phases(result, first_home, lived):
    """Lifetime of the program, and the time from when its memory was there."""
    samples = [*result["samples"], [result["seconds"], result["operations"], None]]
    if first_home is not None:
        first_home = max(0, first_home - (lived - result["seconds"]))
    return series.phases(samples, first_home, result["all_work_s"], result["seconds"])


def measure(pair):
    program = PROGRAMS[pair["workload"]]
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    # A daemon reads from disk what it runs for the first time. A measured one has run before.
    if program.memory:
        with SYSTEMS[pair["system"]](program) as system:
            scale = WARM_SCALE_TIMED if pair["workload"] in TIMED else WARM_SCALE[pair["order"]]
            program.run({**pair, "scale": scale, "window": 254, "bytes": WARM_BYTES.get(pair["workload"], pair["bytes"])},
                        system.bind, system.arguments)
    with SYSTEMS[pair["system"]](program) as system:
        before = counters(system)
        begin = time.monotonic()
        result = program.run(pair, system.bind, system.arguments)
        end = time.monotonic()
        after = counters(system)
        figures = {key: result[key] for key in FIGURES if key in result}
        # When the first thread has ended, its CPU is free for others.
        settled = min(end, begin + result.get("all_work_s", end - begin))
        moves = system.moves(begin, settled)
        if result.get("samples"):
            figures["phases"] = phases(result, moves.get("first_home_s"), end - begin)
        return {**figures, **moves, "note": system.note(result), **{key: round(after[key] - before[key], 3) for key in after}}


def warm_up(pairs):
    """The first run of a program reads it from the disk."""
    for workload in dict.fromkeys(pair["workload"] for pair in pairs):
        PROGRAMS[workload].run({"window": 254, "scale": 0.02, "bytes": WARM_BYTES.get(workload, ""), "memory": "main",
                                "order": "sequential"})


def main():
    pairs = json.loads(sys.argv[1])
    print(f"1..{len(pairs)}", flush=True)
    if not TUNABLES.exists():
        subprocess.run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], check=True)
    if pairs[0]["cache_aware"]:
        CACHE_AWARE.write_text(pairs[0]["cache_aware"], encoding="ascii")
    warm_up(pairs)
    failed = 0
    for number, pair in enumerate(pairs, 1):
        try:
            print(json.dumps({**pair, "kernel": os.uname().release, **measure(pair)}), flush=True)
            print(f"ok {number} - {pair['workload']} {pair['system']}", flush=True)
        except Exception as error:  # A run that fails must not end the others; the row reports it.
            failed += 1
            print(json.dumps({**pair, "error": f"{type(error).__name__}: {error}"}), flush=True)
            print(f"not ok {number} - {pair['workload']} {pair['system']}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
