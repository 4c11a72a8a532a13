# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplaced under systemd as PID 1, as a service that says when it is ready."""

import json
import pathlib
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

    def start(self):
        """Returns when the service manager knows that the service is ready, since it is of Type=notify."""
        run = subprocess.run(["systemd-run", f"--unit={UNIT}", "--service-type=notify", "--property=RuntimeDirectory=numaplace",
                              lib.DAEMON, f"--config={self.config}", f"--policy-dir={self.policies}"],
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


if __name__ == "__main__":
    tap.main()
