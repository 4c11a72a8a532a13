# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads with memory of their own, which know its content: each checks and changes its memory in turn, for ever,
with pauses, and the program exits with status 1 when some content is wrong.

usage: sorter.py THREADS MB CPUS STATE   each thread has MB of memory in huge pages, touched on CPUS; then all run anywhere. STATE is
                                         a file with a line for each thread: its number, the address of its memory, its rounds
"""

import ctypes
import mmap
import os
import pathlib
import sys
import threading
import time
import zlib

BLOCK = 1 << 20
HUGE = 2 << 20
# After each block. If all emulated CPUs are busy, a thread that protects pages waits for one, and this counts as time
# it takes.
PAUSE_SEC = 0.01


class Worker(threading.Thread):
    def __init__(self, index, size):
        super().__init__(daemon=True)
        self.memory = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_HUGEPAGE)
        # Neighbours with different protections stay separate mappings.
        if index % 2:
            self.memory.madvise(mmap.MADV_DONTDUMP)
        # Whole huge pages: a huge page shared with a neighbour could be local to only one of them.
        skip = -ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) % HUGE
        self.view = memoryview(self.memory)[skip:skip + size]
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.view))
        self.view[:] = bytes([index + 1]) * size
        self.sums = [zlib.crc32(self.view[at:at + BLOCK]) for at in range(0, size, BLOCK)]
        self.rounds, self.tid, self.good = 0, 0, True

    def run(self):
        self.tid = threading.get_native_id()
        while self.good:
            for i, at in enumerate(range(0, len(self.view), BLOCK)):
                # Without the lock of the interpreter, so that threads run side by side.
                self.good &= zlib.crc32(self.view[at:at + BLOCK]) == self.sums[i]
                self.view[at:at + 8] = (self.rounds + i).to_bytes(8, "little")
                self.sums[i] = zlib.crc32(self.view[at:at + BLOCK])
                time.sleep(PAUSE_SEC)
            self.rounds += 1


def main():
    n, size, state = int(sys.argv[1]), int(sys.argv[2]) << 20, pathlib.Path(sys.argv[4])
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[3].split(",")})
    workers = [Worker(i, size) for i in range(n)]
    os.sched_setaffinity(0, everywhere)
    for worker in workers:
        worker.start()
    while all(worker.good for worker in workers):
        new = state.with_suffix(".new")
        new.write_text("".join(f"{w.tid} {w.address} {w.rounds}\n" for w in workers if w.tid), encoding="ascii")
        new.rename(state)
        time.sleep(0.1)
    sys.exit(1)


main()
