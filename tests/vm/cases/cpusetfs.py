# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cpusets of a batch system in the cpuset file system at /dev/cpuset, which takes the controller from cgroup v2 while
it is mounted. They are changed through libcpuset."""

import json
import os
import pathlib
import subprocess
import uuid

import lib
import nodes
import tap

HOME = 1
DEV = pathlib.Path("/dev/cpuset")
UNIT = "numaplaced-lab.service"


class Job(nodes.NodesTest):
    def setUp(self):
        super().setUp()
        self.home = self.list_of(nodes.node_cpus(HOME))
        self.job = DEV / "batch" / f"job-{uuid.uuid4().hex[:8]}"
        for directory in (self.job.parent, self.job):
            directory.mkdir(exist_ok=True)
            for name in ("cpus", "mems"):
                (directory / name).write_text((DEV / name).read_text(encoding="ascii"), encoding="ascii")
        (self.job / "memory_migrate").write_text("1", encoding="ascii")
        self.before = self.has("cpus"), self.has("mems")
        self.write_policy(Workload={"Act": "cpuset", "GroupBy": "workload"}, Placement={"Nodes": str(HOME)}, Steal={"Steal": "no"})

    def has(self, name):
        return (self.job / name).read_text(encoding="ascii").strip()

    def start_job(self):
        tasks = self.job / "tasks"
        return self.spinner("--asleep", "--threads=3", preexec_fn=lambda: (
            os.sched_setaffinity(0, self.everything), tasks.write_text("0", encoding="ascii")))

    def wait_up(self, daemon, work):
        lib.wait_until("its cpuset to be its home", lambda: daemon.ctl("explain", str(work.pid))["means"] == "cpusetfs")
        lib.wait_until("its memory to be kept in", lambda: daemon.ctl("explain", str(work.pid))["means_memory"])
        self.assertEqual((self.has("cpus"), self.has("mems")), (self.home, str(HOME)))
        self.assertEqual(daemon.ctl("status")["libcpuset"], "used")

    def check_back(self, work):
        self.assertEqual((self.has("cpus"), self.has("mems")), self.before)
        self.assertEqual(self.has("memory_migrate"), "1")
        self.assertEqual(work.masks(), {self.full})

    def test_stopped(self):
        work = self.start_job()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        daemon.stop()
        self.check_back(work)

    def test_killed(self):
        work = self.start_job()
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        daemon.kill()
        self.assertEqual((self.has("cpus"), self.has("mems")), (self.home, str(HOME)))
        daemon = self.daemon().ready()
        self.wait_up(daemon, work)
        daemon.kill()
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.check_back(work)

    def test_shut_in(self):
        """The unit's /dev has nothing else of the machine's."""
        work = self.start_job()
        properties = ("RuntimeDirectory=numaplace", "PrivateDevices=yes", "BindPaths=-/dev/cpuset", "ProtectSystem=strict")
        self.addCleanup(subprocess.run, ["systemctl", "stop", UNIT], check=False)
        subprocess.run(["systemd-run", f"--unit={UNIT}", "--service-type=notify", *(f"--property={p}" for p in properties), lib.DAEMON,
                        f"--config={self.config}", f"--policy-dir={self.policies}"], check=True)
        lib.wait_until("its cpuset to be its home", lambda: self.has("cpus") == self.home)
        status = subprocess.run([lib.CTL, "--json=short", "status"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(status)["libcpuset"], "used")
        subprocess.run(["systemctl", "stop", UNIT], check=True)
        self.check_back(work)


def main():
    DEV.mkdir()
    subprocess.run(["mount", "-t", "cpuset", "none", DEV], check=True)
    try:
        tap.main()
    finally:
        # With a cpuset in it, it would persist.
        for directory in (*DEV.glob("batch/*/"), DEV / "batch"):
            directory.rmdir()
        subprocess.run(["umount", DEV], check=True)
        DEV.rmdir()


if __name__ == "__main__":
    main()
