# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does to a process of another user what the daemon does or may have to do, and reports what was refused.

usage: sandbox.py PID           of any program
       sandbox.py PID perf      of one that writes to its largest mapping all the time: its page faults are to be seen
       sandbox.py PID no-perf   they are to be refused"""

import ctypes
import mmap
import os
import pathlib
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
# Of x86-64, the architecture of the lab's guests.
CAPGET, CAPSET, MIGRATE_PAGES, MOVE_PAGES, PERF_EVENT_OPEN = 125, 126, 256, 279, 298
MPOL_MF_MOVE, MPOL_MF_MOVE_ALL = 2, 4


def syscall(number: int, *args) -> int:
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read(pid: int) -> None:
    """Files that only its owner, or a process that may trace it, may read."""
    process = pathlib.Path(f"/proc/{pid}")
    os.readlink(process / "exe")
    for name in ("environ", "cmdline", "numa_maps", "maps", "smaps_rollup", "schedstat", "cgroup"):
        if not (process / name).read_bytes():
            raise OSError(f"{name} is empty")


def affinity(pid: int) -> None:
    """Sets the mask it already has, so that it is not taken for a foreign pin."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(tid), os.sched_getaffinity(int(tid)))


def stack(pid: int) -> int:
    """A page that is present."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith("[stack]"):
            return int(line.split()[0].partition("-")[2], 16) - mmap.PAGESIZE
    raise OSError("no stack")


def move_page(pid: int, page: int, node: int | None, flags: int) -> int:
    """Moves a page. Returns its node afterwards."""
    pages, status = (ctypes.c_void_p * 1)(page), (ctypes.c_int * 1)(-1)
    nodes = None if node is None else (ctypes.c_int * 1)(node)
    syscall(MOVE_PAGES, pid, 1, pages, nodes, status, flags)
    if status[0] < 0:
        raise OSError(-status[0], os.strerror(-status[0]))
    return status[0]


def move_pages(pid: int, flags: int) -> None:
    page = stack(pid)
    for _ in range(2):
        wanted = 1 - move_page(pid, page, None, 0)
        if move_page(pid, page, wanted, flags) != wanted or move_page(pid, page, None, 0) != wanted:
            raise OSError("the page did not move")


def migrate_pages(pid: int) -> None:
    page = stack(pid)
    node = move_page(pid, page, None, 0)
    sets = [(ctypes.c_ulong * 1)(1 << n) for n in (node, 1 - node)]
    syscall(MIGRATE_PAGES, pid, 65, *sets)
    if move_page(pid, page, None, 0) == node:
        raise OSError("the page did not move")


def capabilities() -> None:
    """A thread gives up some capabilities, and takes them again."""
    head, data = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0)), ctypes.create_string_buffer(24)
    syscall(CAPGET, head, data)
    syscall(CAPSET, head, data)


def pressure() -> None:
    """A window that only a privileged process may have."""
    with open("/proc/pressure/cpu", "r+b", buffering=0) as file:
        file.write(b"some 50000 500000\0")


def page_faults(pid: int) -> int:
    """A descriptor for samples of its page faults, with addresses."""
    # type, size, config, sample_period, sample_type (TID, ADDR), read_format, flags (exclude_kernel)
    attr = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", 1, 128, 2, 1, 1 << 1 | 1 << 3, 0, 1 << 5), 128)
    return syscall(PERF_EVENT_OPEN, attr, pid, -1, -1, 8)


def largest(pid: int) -> range:
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    bounds = [line.split()[0].split("-") for line in lines if not line.endswith("]")]
    return max((range(int(start, 16), int(end, 16)) for start, end in bounds), key=len)


def addresses(ring: mmap.mmap) -> list[int]:
    """Reads the samples in a ring that has not wrapped yet."""
    found, at = [], mmap.PAGESIZE
    end = at + struct.unpack_from("=Q", ring, 1024)[0]
    while at < end:
        kind, _, size = struct.unpack_from("=IHH", ring, at)
        if kind == 9:  # PERF_RECORD_SAMPLE
            found.append(struct.unpack_from("=Q", ring, at + 16)[0])
        at += size
    return found


def write_faults(pid: int) -> None:
    """Makes its memory read-only, and checks that writers are seen."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        file.seek(stack(pid) // mmap.PAGESIZE * 8)
        if len(file.read(8)) != 8:
            raise OSError("pagemap is too short")
    fd, memory = page_faults(pid), largest(pid)
    with mmap.mmap(fd, 9 * mmap.PAGESIZE) as ring:
        for _ in range(60):
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("4", encoding="ascii")
            time.sleep(0.5)
            if any(address in memory for address in addresses(ring)):
                os.close(fd)
                return
    raise OSError("no fault was seen")


def no_page_faults(pid: int) -> None:
    try:
        os.close(page_faults(pid))
    except PermissionError:
        return
    raise OSError("they are not refused")


def main() -> None:
    pid, bad = int(sys.argv[1]), 0
    checks = {"read /proc/PID": lambda: read(pid), "sched_setaffinity": lambda: affinity(pid),
              "move_pages": lambda: move_pages(pid, MPOL_MF_MOVE), "move_pages of shared ones": lambda: move_pages(pid, MPOL_MF_MOVE_ALL),
              "migrate_pages": lambda: migrate_pages(pid), "capset": capabilities, "pressure stall events": pressure}
    if "perf" in sys.argv:
        checks |= {"write faults": lambda: write_faults(pid)}
    if "no-perf" in sys.argv:
        checks |= {"perf_event_open is refused": lambda: no_page_faults(pid)}
    for name, check in checks.items():
        try:
            check()
            print(f"{name}: works")
        except OSError as error:
            bad += 1
            print(f"{name}: {error}")
    sys.exit(1 if bad else 0)


main()
