# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the cases on real nodes share: a daemon, its homes and lends, with nothing else running.

This program and the daemon stay on one CPU, the keeper. Emulated CPUs are slow: their work would make another CPU
look busy, and lends would avoid it.
"""

import os
import pathlib

import lib
import tap

MACHINE = tap.info()["machine"]
KEEPER = 0
# Long enough that an idle CPU, whose kernel threads take a while here, counts as idle in most ticks.
TICK = "300ms"


def cpus_of(text: str) -> set[int]:
    """The kernel's list form, as "0-2,5"."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def running() -> str:
    """The threads that run now, and on which CPU, to explain why none was idle."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            tid, rest = stat.read_text(encoding="ascii", errors="replace").split(" (", 1)
        except OSError:
            continue
        name, _, fields = rest.rpartition(") ")
        if fields.startswith("R"):
            found.append(f"CPU {fields.split()[36]}: {name}[{tid}]")
    return "\n".join(sorted(found))


def node_cpus(node: int) -> set[int]:
    """The kernel's current state: CPUs that are offline belong to no node."""
    return cpus_of(pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist").read_text(encoding="ascii"))


def distances(node: int) -> list[int]:
    return [int(word) for word in pathlib.Path(f"/sys/devices/system/node/node{node}/distance").read_text().split()]


def nodes_with_cpus() -> list[int]:
    return lib.cpu_nodes()


def last_cpu(pid: int, tid: int) -> int:
    """The CPU where a thread runs, or ran last."""
    stat = pathlib.Path(f"/proc/{pid}/task/{tid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat[stat.rindex(")") + 2:].split()[36])


class NodesTest(lib.DaemonTest):
    KEEPER = KEEPER
    SETTINGS = f"[Daemon]\nFastTickSec={TICK}\nSlowTickSec={TICK}\nMaxCPU=50%\n"

    def setUp(self):
        super().setUp()
        self.config.write_text(self.SETTINGS, encoding="ascii")
        self.everything = lib.own_cpus()
        os.sched_setaffinity(0, {self.KEEPER})  # restored by a cleanup of the base class

    def workload(self, *args, **kwargs):
        """A spinner that may use every CPU."""
        return self.spinner(*args, preexec_fn=lambda: os.sched_setaffinity(0, self.everything), **kwargs)

    def wait_home(self, daemon, workload):
        try:
            return super().wait_home(daemon, workload)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl('explain', str(workload.pid))}\n{daemon.log()}") from None

    def wait_lent(self, daemon):
        try:
            super().wait_lent(daemon)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl_run('explain', '50-test').stdout}\n{daemon.log()}\n{running()}") from None

    def leases(self, daemon, policy="50-test"):
        return daemon.ctl("show", policy)["lent"]

    def moves(self, daemon, kind, after=0):
        return [m for m in daemon.ctl("moves") if m["kind"] == kind and m["outcome"] == "done" and m["sequence"] > after]

    def refusals(self, daemon, reason, policy="50-test"):
        return [r for r in daemon.ctl("show", policy)["refusals"] if r["reason"] == reason]

    def ticks(self, daemon, n=4):
        tick = daemon.ctl("status")["tick"]
        lib.wait_until(f"{n} ticks", lambda: daemon.ctl("status")["tick"] >= tick + n)
