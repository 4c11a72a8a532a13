# SPDX-License-Identifier: LGPL-2.1-or-later
"""Homes of whole units as AllowedCPUs=, through the service manager's own socket: there is no D-Bus daemon here. And
homes of delegated cgroups, whose cpuset is written directly."""

import os
import pathlib
import subprocess
import uuid

import lib
import nodes
import tap

HOME = 1
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# What the manager sets for the second one belongs to the unit for good, and so does the drop-in; this one is only for
# this boot.
UNITS = pathlib.Path("/run/systemd/system")


def systemctl(*args):
    run = subprocess.run(["systemctl", *args], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise AssertionError(f"systemctl {' '.join(args)}: {run.stderr}")
    return run.stdout.strip()


class Units(nodes.NodesTest):
    def setUp(self):
        super().setUp()
        self.home = nodes.node_cpus(HOME)
        self.name = f"lab-{uuid.uuid4().hex[:8]}.service"
        self.file = UNITS / self.name

    def policy(self, act="unit", steal="no", **workload):
        self.write_policy(Workload={"Act": act, "GroupBy": "workload", **workload}, Placement={"Nodes": str(HOME)},
                          Steal={"Steal": steal})

    def unit(self, *args, settings=""):
        """A service of spinners with a unit file, as an administrator makes it."""
        argv = " ".join([lib.SPINNER, *(args or ("--asleep", "--threads=3"))])
        self.file.write_text(f"[Service]\nExecStart={argv}\nEnvironment=NUMAPLACE_TEST={self.mark}\n{settings}",
                             encoding="ascii")
        self.addCleanup(systemctl, "daemon-reload")
        self.addCleanup(self.file.unlink)
        systemctl("daemon-reload")
        return self.start()

    def start(self):
        systemctl("start", self.name)
        self.addCleanup(systemctl, "stop", self.name)
        return lib.wait_until("its process", lambda: int(self.show("MainPID")))

    def show(self, name):
        return systemctl("show", "--value", "-p", name, self.name)

    def allowed(self):
        """As the manager shows it: ranges with blanks between them."""
        return self.show("AllowedCPUs").replace(" ", ",")

    def dropins(self):
        """Settings for this boot."""
        return sorted(path.name for place in ("system.control", "transient")
                      for path in pathlib.Path("/run/systemd", place, f"{self.name}.d").glob("*"))

    def check_put_back(self, allowed="", nodes_allowed=""):
        """As before, without a drop-in that would override the unit file."""
        self.assertEqual((self.allowed(), self.show("AllowedMemoryNodes")), (allowed, nodes_allowed))
        self.assertEqual(self.dropins(), [])

    def wait_allowed(self, cpus):
        expected = self.list_of(cpus) if cpus else ""
        lib.wait_until(f"AllowedCPUs={expected}", lambda: self.allowed() == expected)

    def means(self, daemon, pid):
        explained = daemon.ctl("explain", str(pid))
        return explained.get("means", ""), explained.get("means_reason", "")

    def wait_means(self, daemon, pid, *expected):
        try:
            lib.wait_until(f"{expected}", lambda: self.means(daemon, pid) == expected)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl_run('explain', str(pid)).stdout}\n"
                                 f"{systemctl('show', self.name)}\n{daemon.log()}") from None

    def wait_masks(self, pid, cpus):
        lib.wait_until(f"the masks {sorted(cpus)}", lambda: set(lib.affinity(pid).values()) == {self.list_of(cpus)})

    def wait_up(self, daemon, pid):
        self.wait_means(daemon, pid, "unit", "up")
        self.assertEqual(self.allowed(), self.list_of(self.home))
        self.assertEqual(set(lib.affinity(pid).values()), {self.list_of(self.home)})

    def test_up_and_put_back(self):
        self.policy()
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        status = daemon.ctl("status")
        self.assertTrue(status["fence_units"])
        self.assertEqual(status["fences_up"], 1)
        self.assertEqual(self.dropins()[:1], ["50-AllowedCPUs.conf"])
        daemon.stop()
        self.check_put_back()
        self.wait_masks(pid, self.everything)

    def test_memory(self):
        """With fixed nodes, memory is confined when all of it is there."""
        self.policy()
        pid = self.unit(settings="AllowedMemoryNodes=0-2\n")
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        lib.wait_until("its memory to be kept in", lambda: self.show("AllowedMemoryNodes") == str(HOME))
        mems = CGROUPS / self.show("ControlGroup").strip("/") / "cpuset.mems"
        self.assertEqual(mems.read_text(encoding="ascii").strip(), str(HOME))
        # The manager does it before it answers.
        lib.wait_until("the daemon to know that", lambda: daemon.ctl("explain", str(pid))["means_memory"])
        self.assertEqual(daemon.ctl("status")["memory_fences_up"], 1)
        daemon.kill()
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.check_put_back(nodes_allowed="0-2")
        self.assertEqual(mems.read_text(encoding="ascii").strip(), "0-2")

    def test_memory_is_not_kept_in(self):
        """Nor where it must not be moved."""
        self.write_policy(Workload={"Act": "unit", "GroupBy": "workload"}, Placement={"Nodes": str(HOME)},
                          Steal={"Steal": "no"}, Memory={"Follow": "no"})
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        self.ticks(daemon, 10)
        self.assertEqual(self.show("AllowedMemoryNodes"), "")
        daemon.stop()
        self.check_put_back()

    def test_killed(self):
        self.policy()
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        daemon.kill()
        self.assertEqual(self.allowed(), self.list_of(self.home))
        # The next daemon finds it as it was before the first, and starts over.
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        daemon.kill()
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.check_put_back()
        self.wait_masks(pid, self.everything)
        # From now on the content of the unit file is in force.
        with open(self.file, "a", encoding="ascii") as file:
            file.write("AllowedCPUs=0-1\n")
        systemctl("daemon-reload")
        self.check_put_back("0-1")

    def test_stopped_and_started(self):
        """A stopped unit loses it, and a started one gets it anew."""
        self.policy()
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        systemctl("stop", self.name)
        self.wait_allowed(())
        self.assertEqual(daemon.ctl("status")["fences_up"], 0)
        pid = self.start()
        self.wait_up(daemon, pid)
        # Stopped while no daemon runs: the next start of the daemon, or this command, restores it.
        daemon.kill()
        systemctl("stop", self.name)
        self.assertEqual(self.allowed(), self.list_of(self.home))
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.check_put_back()

    def test_reload_of_the_manager(self):
        self.policy()
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        systemctl("daemon-reload")
        self.ticks(daemon)
        self.wait_up(daemon, pid)
        # This closes all connections to it.
        systemctl("daemon-reexec")
        self.ticks(daemon)
        self.wait_up(daemon, pid)
        daemon.stop()
        self.check_put_back()

    def test_administrators_bound(self):
        """The limit in the unit file is never exceeded, and is what is restored."""
        bound = {min(self.everything), *list(self.home)[:1]}
        self.policy()
        pid = self.unit(settings=f"AllowedCPUs={self.list_of(bound)}\n")
        daemon = self.daemon().ready()
        self.wait_means(daemon, pid, "unit", "up")
        self.assertEqual(self.allowed(), self.list_of(bound & self.home))
        daemon.stop()
        self.check_put_back(self.list_of(bound))
        self.wait_masks(pid, bound)

    def test_changed_by_the_administrator(self):
        bound = {min(self.everything), *list(self.home)[:1]}
        self.policy()
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_up(daemon, pid)
        systemctl("set-property", "--runtime", self.name, f"AllowedCPUs={self.list_of(bound)}")
        self.wait_means(daemon, pid, "affinity", "foreign")
        self.assertEqual(self.allowed(), self.list_of(bound))
        self.wait_masks(pid, bound & self.home)
        daemon.stop()
        self.assertEqual(self.allowed(), self.list_of(bound))
        self.assertEqual(self.dropins(), ["50-AllowedCPUs.conf"])
        systemctl("revert", self.name)

    def test_down_for_lends(self):
        self.policy(steal="yes")
        pid = self.unit(f"--threads={len(self.home) + 1}")
        daemon = self.daemon().ready()
        self.wait_lent(daemon)
        self.wait_allowed(())
        self.assertEqual(self.means(daemon, pid)[0], "affinity")
        systemctl("kill", "--signal=USR1", self.name)  # it falls asleep
        self.wait_up(daemon, pid)
        daemon.stop()
        self.check_put_back()

    def test_delegated(self):
        """Below a unit with Delegate=, which systemd does not manage, the cpuset is written directly."""
        self.policy(act="cpuset")
        self.file.write_text("[Service]\nExecStart=sleep infinity\nDelegate=yes\n", encoding="ascii")
        self.addCleanup(self.file.unlink)
        systemctl("daemon-reload")
        self.start()
        top = CGROUPS / self.show("ControlGroup").strip("/")
        for name in ("keep", "work"):
            (top / name).mkdir()
        for pid in (top / "cgroup.procs").read_text(encoding="ascii").split():
            (top / "keep" / "cgroup.procs").write_text(pid, encoding="ascii")
        (top / "cgroup.subtree_control").write_text("+cpuset", encoding="ascii")
        procs, cpus = top / "work" / "cgroup.procs", top / "work" / "cpuset.cpus"
        work = self.spinner("--asleep", "--threads=3", preexec_fn=lambda: (
            os.sched_setaffinity(0, self.everything), procs.write_text("0", encoding="ascii")))
        daemon = self.daemon().ready()
        self.wait_means(daemon, work.pid, "cgroup2", "up")
        self.assertEqual(cpus.read_text(encoding="ascii").strip(), self.list_of(self.home))
        mems = top / "work" / "cpuset.mems"
        lib.wait_until("its memory to be kept in", lambda: mems.read_text(encoding="ascii").strip() == str(HOME))
        daemon.kill()
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        # The kernel does not take the last CPUs from a cgroup with running tasks: a list of all CPUs is equivalent.
        self.assertIn(cpus.read_text(encoding="ascii").strip(), ("", self.full))
        self.assertIn(mems.read_text(encoding="ascii").strip(), ("", "0-3"))
        self.assertEqual(work.masks(), {self.full})

    def test_what_belongs_to_systemd(self):
        self.policy(act="cpuset")
        pid = self.unit()
        daemon = self.daemon().ready()
        self.wait_means(daemon, pid, "affinity", "managed")
        self.wait_masks(pid, self.home)
        self.assertEqual(self.allowed(), "")
        daemon.stop()


if __name__ == "__main__":
    tap.main()
