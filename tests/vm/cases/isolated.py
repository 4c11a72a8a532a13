# SPDX-License-Identifier: LGPL-2.1-or-later
"""Beside others that decide about CPUs. Isolated CPUs are in every cpuset but in no thread's mask, and stay out of
all masks: the kernel's command line isolates the last CPU of each node, and a partition isolates one more. Beside
numad nothing is placed."""

import contextlib
import os
import pathlib
import subprocess

import lib
import nodes
import tap

ISOLATED = nodes.cpus_of(pathlib.Path("/sys/devices/system/cpu/isolated").read_text(encoding="ascii"))
HOME = 1
HOME_CPUS = nodes.node_cpus(HOME) - ISOLATED
OTHER_CPUS = nodes.node_cpus(0) - ISOLATED - {nodes.KEEPER}

CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Neighbours(nodes.NodesTest):
    def test_the_kernel_isolates(self):
        """What the other tests depend on."""
        self.assertEqual(ISOLATED, {3, 7})
        self.assertFalse(ISOLATED & set(self.everything))

    @staticmethod
    def neighbours(daemon):
        """The names of the others that are running."""
        return {found["name"]: found["detail"] for found in daemon.ctl("status")["neighbours"]}

    def test_said(self):
        daemon = self.daemon().ready()
        found = self.neighbours(daemon)
        self.assertEqual((found["isolated-cpus"], found["nohz-full"]), ("3,7", "3,7"))
        self.assertNotIn("cpuset-partition", found)
        self.assertIn("isolated-cpus (3,7): never used", daemon.ctl_run("status").stdout)
        daemon.stop()

    def test_beside_numad(self):
        """Once it is seen, nothing new is placed until an administrator resumes."""
        self.write_policy(Placement={"Nodes": str(HOME)})
        daemon = self.daemon().ready()
        first = self.workload("--asleep")
        self.wait_home(daemon, first)
        # It examines processes after five minutes at the earliest.
        subprocess.run(["numad", "-i", "300"], check=True)
        self.addCleanup(self.end_numad)
        lib.wait_until("numad to be seen", lambda: "numad" in self.neighbours(daemon))
        self.assertEqual(daemon.ctl("status")["state"], "paused")
        second = self.workload("--asleep")
        self.ticks(daemon)
        self.assertEqual((first.masks(), second.masks()), ({self.list_of(HOME_CPUS)}, {self.full}))
        self.assertIn("numad runs", daemon.log())
        self.end_numad()
        lib.wait_until("numad to be gone", lambda: "numad" not in self.neighbours(daemon))
        self.assertEqual(daemon.ctl("status")["state"], "paused")
        daemon.ctl_run("resume", "--all").check_returncode()
        self.wait_home(daemon, second)
        daemon.stop()
        self.assertEqual((first.masks(), second.masks()), ({self.full}, {self.full}))

    @staticmethod
    def end_numad():
        subprocess.run(["numad", "-i", "0"], check=False)

    def test_homes_and_lends(self):
        """Three threads at home, two more than it has CPUs: CPUs that are idle elsewhere are lent, except isolated
        ones."""
        self.write_policy(Placement={"Nodes": str(HOME)})
        daemon = self.daemon().ready()
        busy = self.workload(f"--threads={len(HOME_CPUS) + 2}")
        self.wait_home(daemon, busy)
        self.wait_lent(daemon)
        self.ticks(daemon, 10)
        for move in daemon.ctl("moves"):
            self.assertFalse(nodes.cpus_of(move["to"]) & ISOLATED, move)
        self.assertLessEqual({move["cpu"] for move in self.moves(daemon, "lend")}, OTHER_CPUS | {nodes.KEEPER})
        for mask in busy.masks():
            self.assertFalse(nodes.cpus_of(mask) & ISOLATED, mask)
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})

    def test_chosen_homes(self):
        """The daemon chooses among the usable CPUs: of each node, all but the isolated one."""
        self.write_policy(Placement={"Mode": "auto", "Nodes": ""}, Workload={"GroupBy": "process"})
        daemon = self.daemon().ready()
        groups = [self.workload("--threads=2") for _ in range(2)]
        for group in groups:
            self.wait_home(daemon, group)
        usable = {self.list_of(nodes.node_cpus(node) - ISOLATED) for node in (0, 1)}
        self.ticks(daemon)
        for group in groups:
            self.assertEqual(group.masks() - usable, set())
        daemon.stop()

    def test_pinned_to_one(self):
        """Threads that were put there by hand are left there, and so are those whose mask includes such a CPU."""
        self.write_policy(Placement={"Nodes": str(HOME)})
        one, some = {max(ISOLATED)}, {min(HOME_CPUS), max(ISOLATED)}
        pinned = [self.spinner("--asleep", preexec_fn=lambda cpus=cpus: os.sched_setaffinity(0, cpus)) for cpus in (one, some)]
        daemon = self.daemon().ready()
        self.wait_home(daemon, self.workload("--asleep"))
        self.ticks(daemon)
        for workload, cpus in zip(pinned, (one, some)):
            self.assertEqual(workload.masks(), {self.list_of(cpus)})
            self.assertIn(daemon.ctl("explain", str(workload.pid))["verdict"], ("per-cpu", "foreign-affinity"))
        daemon.stop()

    def partition(self, cpu):
        """Takes a CPU away from all others, until the end of the test."""
        group = CGROUPS / f"part-{self.mark[:8]}"
        (CGROUPS / "cgroup.subtree_control").write_text("+cpuset", encoding="ascii")
        group.mkdir()
        self.addCleanup(self.end_partition, group)
        (group / "cpuset.cpus").write_text(str(cpu), encoding="ascii")
        (group / "cpuset.cpus.partition").write_text("isolated", encoding="ascii")
        self.assertEqual((group / "cpuset.cpus.partition").read_text(encoding="ascii").strip(), "isolated")
        return group

    @staticmethod
    def end_partition(group):
        with contextlib.suppress(FileNotFoundError):
            (group / "cpuset.cpus.partition").write_text("member", encoding="ascii")
            group.rmdir()

    def placed(self):
        """A daemon with a process at home, and another that matches no policy: what the kernel makes of untouched
        masks is what must be restored."""
        self.write_policy(Placement={"Nodes": str(HOME)})
        daemon = self.daemon().ready()
        workload, other = self.workload("--asleep"), self.workload("--asleep", mark="nobody")
        self.wait_masks(workload, HOME_CPUS)
        return daemon, workload, other

    def wait_masks(self, workload, cpus):
        lib.wait_until(f"the masks {sorted(cpus)}", lambda: workload.masks() == {self.list_of(cpus)})

    def take(self, daemon, workload):
        """A partition that takes a CPU of the home, until the daemon has adapted to the rest."""
        taken = max(HOME_CPUS)
        group = self.partition(taken)
        self.wait_masks(workload, HOME_CPUS - {taken})
        lib.wait_until("the partition to be seen", lambda: self.neighbours(daemon).get("cpuset-partition") == str(taken))
        self.ticks(daemon)
        self.wait_masks(workload, HOME_CPUS - {taken})
        return group

    def test_partition(self):
        """No process outside is placed on its CPU, and the home is complete again when it ends."""
        daemon, workload, other = self.placed()
        group = self.take(daemon, workload)
        self.end_partition(group)
        self.wait_masks(workload, HOME_CPUS)
        daemon.stop()
        self.assertEqual(workload.masks(), other.masks())

    def test_stopped_beside_a_partition(self):
        """The restored mask is what the thread would have without the daemon, even when the partition ends later."""
        daemon, workload, other = self.placed()
        group = self.take(daemon, workload)
        daemon.stop()
        self.assertEqual(workload.masks(), other.masks())
        self.end_partition(group)
        self.assertEqual(workload.masks(), other.masks())

    def test_killed_before_a_partition(self):
        """It takes the CPU while no daemon runs."""
        daemon, workload, other = self.placed()
        daemon.kill()
        group = self.partition(max(HOME_CPUS))
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(workload.masks(), other.masks())
        self.end_partition(group)
        self.assertEqual(workload.masks(), other.masks())


if __name__ == "__main__":
    tap.main()
