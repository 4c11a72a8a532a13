# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplaced under systemd as PID 1, as a service that reports when it is ready."""

import json
import os
import pathlib
import signal
import subprocess

import lib
import tap

UNIT = "numaplaced-lab.service"


def systemctl(*args: str) -> str:
    run = subprocess.run(["systemctl", *args], capture_output=True, text=True, check=False)
    return run.stdout.strip()


def show(name: str) -> str:
    return systemctl("show", "--value", f"--property={name}", UNIT)


class Service(lib.DaemonTest):
    def setUp(self):
        super().setUp()
        self.write_policy(Placement={"Nodes": "1"})
        self.addCleanup(systemctl, "reset-failed", UNIT)
        self.addCleanup(systemctl, "stop", UNIT)

    def start(self, *properties: str):
        """Returns when the service manager has seen that the service is ready, because it is of Type=notify."""
        run = subprocess.run(["systemd-run", f"--unit={UNIT}", "--service-type=notify", "--property=RuntimeDirectory=numaplace",
                              "--property=RuntimeDirectoryPreserve=yes", *(f"--property={p}" for p in properties), lib.DAEMON, f"--config={self.config}", f"--policy-dir={self.policies}"],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr + self.log())

    def log(self) -> str:
        run = subprocess.run(["journalctl", "--no-pager", "-u", UNIT], capture_output=True, text=True, check=False)
        return run.stdout

    def ask(self, *args: str) -> dict:
        run = subprocess.run([lib.CTL, "--json=short", *args], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr + self.log())
        return json.loads(run.stdout)

    def node_cpus(self, node: int) -> str:
        return pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist").read_text(encoding="ascii").strip()

    def test_life(self):
        workload = self.spinner("--asleep")
        self.start()
        self.assertEqual(show("ActiveState"), "active")
        self.assertEqual(show("NotifyAccess"), "main")
        self.assertEqual(self.ask("topology")["n_nodes"], 2)
        self.assertEqual(self.ask("status")["rehearsal"], 0)

        lib.wait_until("the workload to be on node 1", lambda: workload.masks() == {self.node_cpus(1)})
        self.assertEqual(self.ask("status")["workloads"], 1)

        systemctl("stop", UNIT)
        self.assertEqual(show("ActiveState"), "inactive", self.log())
        self.assertEqual(show("Result"), "success", self.log())
        self.assertEqual(workload.masks(), {self.full})
        self.assertTrue(workload.alive())

    def test_reload(self):
        """The current policies are in force when the service manager has finished the reload."""
        workload = self.spinner("--asleep")
        self.start("ExecReload=kill -HUP $MAINPID")
        lib.wait_until("the workload to be on node 1", lambda: workload.masks() == {self.node_cpus(1)})
        self.write_policy(Placement={"Nodes": "0"})
        systemctl("reload", UNIT)
        lib.wait_until("the workload to be on node 0", lambda: workload.masks() == {self.node_cpus(0)})
        self.assertEqual(show("ActiveState"), "active", self.log())
        self.assertEqual(self.ask("status")["reloads"], 1)
        systemctl("stop", UNIT)
        self.assertEqual(workload.masks(), {self.full}, self.log())

    def test_watchdog(self):
        """The loop feeds it. When the loop stops, the daemon is killed, and the next one restores."""
        workload = self.spinner("--asleep")
        self.start("WatchdogSec=5s", "TimeoutAbortSec=1s")
        lib.wait_until("the workload to be on node 1", lambda: workload.masks() == {self.node_cpus(1)})
        for _ in range(3):
            fed = show("WatchdogTimestampMonotonic")
            lib.wait_until("the watchdog to be fed", lambda: show("WatchdogTimestampMonotonic") != fed)
        self.assertEqual(show("ActiveState"), "active", self.log())
        os.kill(int(show("MainPID")), signal.SIGSTOP)
        lib.wait_until("the daemon to be killed", lambda: show("ActiveState") == "failed")
        self.assertEqual(show("Result"), "watchdog", self.log())
        self.assertEqual(workload.masks(), {self.node_cpus(1)})
        systemctl("reset-failed", UNIT)
        (self.policies / "50-test.policy").unlink()
        self.start()
        self.assertEqual(workload.masks(), {self.full}, self.log())


if __name__ == "__main__":
    tap.main()
