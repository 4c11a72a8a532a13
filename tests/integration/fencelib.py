# SPDX-License-Identifier: LGPL-2.1-or-later
"""A test cgroup where the cpuset controller is on version 1, and what Act=cpuset does with it."""

import contextlib
import os
import pathlib
import unittest
import uuid

import lib


class FenceTest(lib.DaemonTest):
    # Where the controller is mounted, how its file names begin there, and what `explain` calls the confinement there.
    controller, prefix, kind = pathlib.Path("/sys/fs/cgroup/cpuset"), "cpuset.", "cgroup1"

    def setUp(self):
        lib.need_placing()
        if not (self.controller / f"{self.prefix}cpus").exists():
            raise unittest.SkipTest("needs the cpuset controller of cgroup v1")
        own = pathlib.Path("/proc/self/cpuset").read_text(encoding="ascii").strip()
        self.parent = self.controller / own.strip("/")
        if not os.access(self.parent, os.W_OK):
            raise unittest.SkipTest("needs a cpuset to make others in")
        super().setUp()
        self.cgroup = self.parent / f"numaplace-test-{uuid.uuid4().hex[:12]}"
        self.cgroup.mkdir()
        self.addCleanup(self.remove)
        self.fill(self.cgroup)
        self.before = self.cpus()

    def fill(self, cgroup):
        """Gives a new cgroup the settings of its parent."""
        for name in (f"{self.prefix}mems", f"{self.prefix}cpus"):
            (cgroup / name).write_text((cgroup.parent / name).read_text(encoding="ascii"), encoding="ascii")

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
        return (self.cgroup / f"{self.prefix}cpus").read_text(encoding="ascii").strip()

    def inside(self, *args):
        """A spinner that starts in the cgroup."""
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
        self.wait_means(daemon, work, self.kind, "up")
        home = daemon.ctl("explain", str(work.pid))["home"]
        self.assertEqual(self.cpus(), home)
        self.assertEqual(work.masks(), {home})
        self.assertNotEqual(home, self.before)

    def placed(self, **sections):
        """A spinner in the cgroup and a daemon that has confined it."""
        self.policy(**sections)
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        return work, daemon

    def wait_back(self):
        lib.wait_until("the cpuset as it was", lambda: self.cpus() == self.before)
