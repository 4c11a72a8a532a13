# SPDX-License-Identifier: LGPL-2.1-or-later
"""CPUs go offline and come back under the daemon: its masks follow, and in the end every mask is the original one."""

import os
import pathlib
import unittest

import lib
import nodes
import tap

HOME = 1
HOME_CPUS = nodes.node_cpus(HOME)
OTHER = 2


def write(cpu, value):
    pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/online").write_text(value, encoding="ascii")


def kernel_keeps_offline_cpus():
    """Whether a mask of all CPUs that is set while one is offline contains that CPU when it is back. Linux 6.1 drops
    it."""
    before = os.sched_getaffinity(0)
    cpu = max(nodes.node_cpus(OTHER))
    write(cpu, "0")
    os.sched_setaffinity(0, range(os.cpu_count() + 1))
    write(cpu, "1")
    kept = cpu in os.sched_getaffinity(0)
    os.sched_setaffinity(0, before)
    return kept


KEEPS = kernel_keeps_offline_cpus()
WHY_NOT = "this kernel drops offline CPUs from a mask that is set, and nothing gives them back to a thread put back meanwhile"


class Hotplug(nodes.NodesTest):
    def setUp(self):
        super().setUp()
        self.write_policy(Placement={"Nodes": str(HOME)})
        self.offline = set()
        self.addCleanup(lambda: [self.online(cpu) for cpu in sorted(self.offline)])

    def unplug(self, daemon, *cpus):
        self.change(daemon, cpus, "0")

    def plug(self, daemon, *cpus):
        self.change(daemon, cpus, "1")

    def change(self, daemon, cpus, value):
        """Returns when the daemon has seen the change."""
        reloads = daemon.ctl("status")["topology_reloads"] if daemon else 0
        for cpu in cpus:
            write(cpu, value)
            (self.offline.add if value == "0" else self.offline.discard)(cpu)
        if daemon:
            lib.wait_until("the daemon to see it", lambda: daemon.ctl("status")["topology_reloads"] > reloads)
            lib.wait_until("the daemon to see all of it",
                           lambda: daemon.ctl("status")["cpus"] == len(self.everything) - len(self.offline))

    def online(self, cpu):
        write(cpu, "1")
        self.offline.discard(cpu)

    def usable(self, workload):
        """The masks of its threads, in which the kernel also shows offline CPUs."""
        return {self.list_of(nodes.cpus_of(mask) - self.offline) for mask in workload.masks()}

    def home(self, *workloads):
        """Every thread is at home, or also has the one CPU lent to it."""
        here = HOME_CPUS - self.offline
        for mask in set().union(*(workload.masks() for workload in workloads)):
            cpus = nodes.cpus_of(mask) - self.offline
            if not here <= cpus or len(cpus) > len(here) + 1:
                return False
        return True

    def wait_home_again(self, daemon, *workloads):
        try:
            lib.wait_until("everybody to be at home", lambda: self.home(*workloads))
        except AssertionError as error:
            masks = [lib.affinity(workload.pid) for workload in workloads]
            told = [daemon.ctl("explain", str(workload.pid)) for workload in workloads]
            raise AssertionError(f"{error}\n{masks}\n{told}\n{daemon.log()}") from None

    def start(self, n_busy=4):
        daemon = self.daemon().ready()
        idle = self.workload("--asleep", "--threads=3")
        self.wait_home(daemon, idle)
        busy = self.workload(f"--threads={n_busy}")
        self.wait_home(daemon, busy)
        return daemon, idle, busy

    def test_a_lent_cpu(self):
        daemon, idle, busy = self.start()
        self.wait_lent(daemon)
        cpu = lib.wait_until("a lent CPU", lambda: self.leases(daemon))[0]["cpu"]
        self.unplug(daemon, cpu)
        self.assertNotIn(cpu, [lease["cpu"] for lease in self.leases(daemon)])
        self.wait_home_again(daemon, idle, busy)
        self.wait_lent(daemon)  # another one
        self.assertNotIn(cpu, [lease["cpu"] for lease in self.leases(daemon)])
        self.plug(daemon, cpu)
        self.wait_home_again(daemon, idle, busy)
        self.wait_lent(daemon)
        log = daemon.stop()
        self.assertEqual(idle.masks() | busy.masks(), {self.full}, log)

    def test_nothing_lent(self):
        daemon, idle, busy = self.start(n_busy=1)
        cpus = nodes.node_cpus(OTHER)
        self.unplug(daemon, *cpus)  # leaves a node without CPUs
        self.wait_home_again(daemon, idle, busy)
        topology = {node["node"]: node["n_cpus"] for node in daemon.ctl("topology")["nodes"]}
        self.assertEqual(topology.get(OTHER, 0), 0)
        self.plug(daemon, *cpus)
        self.wait_home_again(daemon, idle, busy)
        log = daemon.stop()
        self.assertEqual(idle.masks() | busy.masks(), {self.full}, log)

    @unittest.skipUnless(KEEPS, WHY_NOT)
    def test_the_home(self):
        """First one CPU of it, then the last one: no home is left, and all may run anywhere until it is back."""
        daemon, idle, busy = self.start()
        first, last = sorted(HOME_CPUS)
        self.unplug(daemon, first)
        self.wait_home_again(daemon, idle, busy)
        self.unplug(daemon, last)
        everywhere = self.list_of(set(self.everything) - self.offline)
        lib.wait_until("everybody to be free", lambda: self.usable(idle) | self.usable(busy) == {everywhere})
        self.ticks(daemon)
        self.assertEqual(self.usable(idle) | self.usable(busy), {everywhere})
        self.assertEqual(daemon.ctl("show", "50-test")["home"], "")
        self.plug(daemon, first, last)
        self.wait_home_again(daemon, idle, busy)
        log = daemon.stop()
        self.assertEqual(idle.masks() | busy.masks(), {self.full}, log)

    @unittest.skipUnless(KEEPS, WHY_NOT)
    def test_stopped_while_a_cpu_is_away(self):
        """The daemon has ended before the CPU comes back."""
        daemon, idle, busy = self.start()
        self.unplug(daemon, max(nodes.node_cpus(OTHER)))
        self.wait_home_again(daemon, idle, busy)
        log = daemon.stop()
        self.plug(None, max(self.offline))
        self.assertEqual(idle.masks() | busy.masks(), {self.full}, log)

    @unittest.skipUnless(KEEPS, WHY_NOT)
    def test_killed_before_a_cpu_goes_away(self):
        """The next daemon restores on a machine with fewer CPUs than before."""
        daemon, idle, busy = self.start()
        self.wait_lent(daemon)
        daemon.kill()
        (self.policies / "50-test.policy").unlink()
        self.unplug(None, max(nodes.node_cpus(OTHER)))
        daemon = self.daemon().ready()
        everywhere = self.list_of(set(self.everything) - self.offline)
        self.assertEqual(self.usable(idle) | self.usable(busy), {everywhere}, daemon.log())
        self.plug(daemon, max(self.offline))
        log = daemon.stop()
        self.assertEqual(idle.masks() | busy.masks(), {self.full}, log)


if __name__ == "__main__":
    tap.main()
