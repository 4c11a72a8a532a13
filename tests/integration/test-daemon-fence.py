# SPDX-License-Identifier: LGPL-2.1-or-later
"""Act=cpuset on a host whose cpuset controller is on version 1, in a cgroup of the test's own: up at home, down for lends,
put back at the stop, after a crash, and when the policy goes."""

import contextlib
import os
import pathlib
import signal
import unittest
import uuid

import lib

CONTROLLER = pathlib.Path("/sys/fs/cgroup/cpuset")


def need_cpusets():
    lib.need_placing()
    if not (CONTROLLER / "cpuset.cpus").exists():
        raise unittest.SkipTest("needs the cpuset controller of cgroup v1")
    own = pathlib.Path("/proc/self/cpuset").read_text(encoding="ascii").strip()
    if not os.access(CONTROLLER / own.strip("/"), os.W_OK):
        raise unittest.SkipTest("needs a cpuset to make others in")


class Fence(lib.DaemonTest):
    def setUp(self):
        need_cpusets()
        super().setUp()
        own = pathlib.Path("/proc/self/cpuset").read_text(encoding="ascii").strip()
        self.parent = CONTROLLER / own.strip("/")
        self.cgroup = self.parent / f"numaplace-test-{uuid.uuid4().hex[:12]}"
        self.cgroup.mkdir()
        self.addCleanup(self.remove)
        for name in ("cpuset.mems", "cpuset.cpus"):
            (self.cgroup / name).write_text((self.parent / name).read_text(encoding="ascii"), encoding="ascii")
        self.before = self.cpus()

    def remove(self):
        with contextlib.suppress(OSError):
            for pid in (self.cgroup / "cgroup.procs").read_text(encoding="ascii").split():
                (self.parent / "cgroup.procs").write_text(pid, encoding="ascii")
        lib.wait_until("an empty cgroup", self.rmdir)

    def rmdir(self):
        try:
            self.cgroup.rmdir()
        except OSError:
            return False
        return True

    def cpus(self):
        return (self.cgroup / "cpuset.cpus").read_text(encoding="ascii").strip()

    def inside(self, *args):
        """A spinner that is born in the cgroup."""
        procs = self.cgroup / "cgroup.procs"
        return self.spinner(*(args or ("--asleep", "--threads=3")),
                            preexec_fn=lambda: procs.write_text("0", encoding="ascii"))

    def policy(self, **sections):
        self.write_policy(**{"Workload": {"Act": "cpuset", "GroupBy": "workload"}, **sections})

    def means(self, daemon, work):
        explained = daemon.ctl("explain", str(work.pid))
        return explained.get("means", ""), explained.get("means_reason", "")

    def wait_means(self, daemon, work, *expected):
        try:
            lib.wait_until(f"{expected}", lambda: self.means(daemon, work) == expected)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl_run('explain', str(work.pid)).stdout}") from None

    def wait_up(self, daemon, work):
        self.wait_means(daemon, work, "cgroup1", "up")
        home = daemon.ctl("explain", str(work.pid))["home"]
        self.assertEqual(self.cpus(), home)
        self.assertEqual(work.masks(), {home})
        self.assertNotEqual(home, self.before)

    def wait_back(self):
        lib.wait_until("the cpuset as it was", lambda: self.cpus() == self.before)

    def test_up_and_put_back(self):
        self.policy()
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        self.assertEqual(daemon.ctl("status")["fences_up"], 1)
        self.assertIn("Means", daemon.ctl_run("explain", str(work.pid)).stdout)
        # Who comes from outside is kept in, is at home at once, and is put back as well.
        late = self.inside()
        self.assertEqual(late.masks(), work.masks())
        self.wait_up(daemon, late)
        daemon.stop()
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks() | late.masks(), {self.full})

    def test_crash(self):
        self.policy()
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        daemon.kill()
        self.assertNotEqual(self.cpus(), self.before)
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks(), {self.full})

    def test_down_for_lends(self):
        """The cpuset is as it was while it borrows, only masks keep the others at home, and it comes up again."""
        self.policy()
        work = self.inside("--threads=3")
        daemon = self.daemon().ready()
        lib.wait_until("a lend", lambda: daemon.ctl("status")["leases"] > 0 or None, 4 * lib.DEADLINE_SEC)
        self.wait_means(daemon, work, "affinity", "borrows")
        self.assertEqual(self.cpus(), self.before)
        home = daemon.ctl("explain", str(work.pid))["home"]
        self.assertIn(home, work.masks())
        work.process.send_signal(signal.SIGUSR1)  # it falls asleep
        self.wait_up(daemon, work)
        daemon.stop()
        self.assertEqual(self.cpus(), self.before)

    def test_changed_by_somebody_else(self):
        """What somebody else sets is the outer bound from then on, also of what is put back."""
        self.policy(Steal={"Steal": "no"})
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        home = sorted(set(lib.own_cpus()) & set(os.sched_getaffinity(work.pid)))
        theirs = self.list_of(home[:1] + [lib.own_cpus()[-1]])
        (self.cgroup / "cpuset.cpus").write_text(theirs, encoding="ascii")
        self.wait_means(daemon, work, "affinity", "foreign")
        self.assertEqual(self.cpus(), theirs)
        lib.wait_until("its home inside", lambda: work.masks() == {self.list_of(home[:1])})
        daemon.stop()
        self.assertEqual(self.cpus(), theirs)
        self.assertEqual(work.masks(), {theirs})

    def test_not_alone(self):
        """Somebody of no policy is in the cgroup, so it is not fenced; with masks it is placed all the same."""
        self.policy()
        procs = self.cgroup / "cgroup.procs"
        self.spinner("--asleep", mark="other", preexec_fn=lambda: procs.write_text("0", encoding="ascii"))
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_means(daemon, work, "affinity", "shared")
        self.wait_home(daemon, work)
        self.assertEqual(self.cpus(), self.before)
        daemon.stop()
        self.assertEqual(work.masks(), {self.full})

    def test_paused(self):
        self.policy()
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        daemon.ctl("release", "50-test")
        self.wait_back()
        self.wait_full(work)
        daemon.ctl("resume", "50-test")
        self.wait_up(daemon, work)
        daemon.stop()


if __name__ == "__main__":
    lib.main()
