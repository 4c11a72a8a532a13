# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process whose memory and threads are placed by its arguments, and which uses all its memory for ever.

usage: dweller.py MB TOUCH START MAY THREADS [BIND]

MB of memory are touched on the CPUs TOUCH, in equal parts if these are several lists ("0,1:2,3"). THREADS threads
then use it. They start on the CPUs START and may afterwards use the CPUs MAY ("any": all; "own": one each of START).
With BIND all memory is bound to that node. With THREADS 0 it sleeps. "ready" is printed when all is in place.
"""

import ctypes
import mmap
import os
import pathlib
import signal
import sys
import threading
import time
import zlib

LIBC = ctypes.CDLL(None, use_errno=True)
BLOCK = 1 << 20
SETTLE_SEC, STAY_SEC, TRIES = 0.3, 1, 20
stayed: list[set[int]] = []
SYS_SET_MEMPOLICY, MPOL_BIND = 238, 2


def cpus(text):
    return {int(cpu) for cpu in text.split(",")}


def bind(node):
    mask = ctypes.c_ulong(1 << node)
    if LIBC.syscall(SYS_SET_MEMPOLICY, MPOL_BIND, ctypes.byref(mask), 64) != 0:
        raise OSError(ctypes.get_errno(), "set_mempolicy")


def node_of(start):
    """All CPUs of the nodes of these CPUs."""
    found = set()
    for cpu in start:
        for path in pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node[0-9]*"):
            for part in (path / "cpulist").read_text(encoding="ascii").strip().split(","):
                first, _, last = part.partition("-")
                found |= set(range(int(first), int(last or first) + 1))
    return found


def spin(view, seconds, while_on=None):
    """Returns whether it was only on those CPUs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        zlib.crc32(view[:BLOCK])
        if while_on is not None and LIBC.sched_getcpu() not in while_on:
            return False
    return True


def work(view, start, may, begun):
    # For a thread, not the process. It is released when nothing wakes it any more, or it would be drawn towards the
    # waker; and again when the kernel has moved it at once.
    os.sched_setaffinity(0, start)
    begun.append(start)
    for _ in range(TRIES):
        os.sched_setaffinity(0, start)
        spin(view, SETTLE_SEC)
        os.sched_setaffinity(0, may)
        if spin(view, STAY_SEC, node_of(start)):
            break
    stayed.append(start)
    while True:
        for at in range(0, len(view), BLOCK):
            zlib.crc32(view[at:at + BLOCK])


def main():
    size, parts = int(sys.argv[1]) << 20, sys.argv[2].split(":")
    start, may, n_threads = sorted(cpus(sys.argv[3])), sys.argv[4], int(sys.argv[5])
    everywhere = os.sched_getaffinity(0)
    if len(sys.argv) > 6:
        bind(int(sys.argv[6]))
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = memoryview(memory)
    for i, part in enumerate(parts):
        os.sched_setaffinity(0, cpus(part))
        for at in range(i * size // len(parts), (i + 1) * size // len(parts), mmap.PAGESIZE):
            memory[at] = 1
    begun = []
    for i in range(n_threads):
        mine = {start[i % len(start)]}
        allowed = everywhere if may == "any" else mine if may == "own" else cpus(may)
        threading.Thread(target=work, args=(view, mine, allowed, begun), daemon=True).start()
    while len(begun) < n_threads:
        time.sleep(0.01)
    while len(stayed) < n_threads:
        time.sleep(0.1)
    os.sched_setaffinity(0, everywhere if may in ("any", "own") else cpus(may))
    print("ready", flush=True)
    signal.pause()


main()
