# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl run on real nodes: what a command has from its first instruction on, as reported by the kernel."""

import os
import pathlib
import signal
import subprocess
import sys

import lib
import nodes
import tap

# The command inspects itself before it does anything else.
LOOK = ("import os; print(sorted(os.sched_getaffinity(0))); print({line.split()[1] for line in open('/proc/self/numa_maps')});"
        " print([line for line in open('/proc/self/numa_maps') if ' stack ' in line][0])")


class Launch(nodes.NodesTest):
    def launch(self, *args, daemon=None):
        where = [f"--socket={daemon.runtime}/bus"] if daemon else ["--no-daemon", f"--policy-dir={self.policies}"]
        return [lib.CTL, "run", "--policy=50-test", *where, "--", *args]

    def look(self, **where):
        run = subprocess.run(self.launch(sys.executable, "-c", LOOK, **where), capture_output=True, text=True, check=False,
                             stdin=subprocess.DEVNULL, timeout=lib.DEADLINE_SEC,
                             preexec_fn=lambda: os.sched_setaffinity(0, self.everything))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.splitlines()[:3]

    def test_fixed(self):
        self.write_policy(mark="nobody", Placement={"Nodes": "1"})
        daemon = self.daemon().ready()
        for where in ({"daemon": daemon}, {}):
            cpus, policies, stack = self.look(**where)
            self.assertEqual(cpus, str(sorted(nodes.node_cpus(1))))
            self.assertEqual(policies, "{'default'}")
            self.assertIn(" N1=", stack)
        daemon.stop()

    def test_interleave(self):
        self.write_policy(mark="nobody", Placement={"Mode": "interleave", "Nodes": "0-1"})
        daemon = self.daemon().ready()
        for where in ({"daemon": daemon}, {}):
            self.assertEqual(self.look(**where)[1], "{'interleave=relative:0-1'}")
        daemon.stop()

    def test_explained_and_inherited(self):
        self.write_policy(mark="nobody", Placement={"Mode": "interleave", "Nodes": "0-1"})
        daemon = self.daemon().ready()
        process = subprocess.Popen(self.launch("sh", "-c", f"{lib.SPINNER} --asleep & echo $!; wait", daemon=daemon),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        child = int(process.stdout.readline())
        lib.wait_until("the child", lambda: daemon.ctl("status")["assigned"] == 2)
        for pid in (process.pid, child):
            self.assertEqual(daemon.ctl("explain", str(pid))["stripe"], "0-1")
            self.assertIn("interleave=relative:0-1", pathlib.Path(f"/proc/{pid}/numa_maps").read_text(encoding="ascii"))
        daemon.stop()


if __name__ == "__main__":
    tap.main()
