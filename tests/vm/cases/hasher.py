# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that knows the content of its memory: it checks and changes the memory in turn, for ever, and exits with
status 1 when the content is wrong.

usage: hasher.py MB CPUS STATE   touches MB of memory on CPUS, small pages and huge ones, then runs anywhere; STATE is a file in
                                 which it counts its rounds
"""

import mmap
import os
import pathlib
import random
import sys
import zlib

BLOCK = 1 << 20
PAGE = 4096


def main():
    size, state = int(sys.argv[1]) << 20, pathlib.Path(sys.argv[3])
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[2].split(",")})
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE, 0, size // 2)
    memory.madvise(mmap.MADV_NOHUGEPAGE, size // 2, size // 2)
    view = memoryview(memory)
    pick = random.Random(1)
    sums = []
    for at in range(0, size, BLOCK):
        view[at:at + BLOCK] = pick.randbytes(PAGE) * (BLOCK // PAGE)
        sums.append(zlib.crc32(view[at:at + BLOCK]))
    os.sched_setaffinity(0, everywhere)

    rounds = 0
    while True:
        for i, at in enumerate(range(0, size, BLOCK)):
            if zlib.crc32(view[at:at + BLOCK]) != sums[i]:
                sys.exit(1)
            page = at + pick.randrange(BLOCK // PAGE) * PAGE
            view[page:page + PAGE] = pick.randbytes(PAGE)
            sums[i] = zlib.crc32(view[at:at + BLOCK])
        rounds += 1
        # In one write, so that no reader gets half of a number.
        new = state.with_suffix(".new")
        new.write_text(str(rounds), encoding="ascii")
        new.rename(state)


main()
