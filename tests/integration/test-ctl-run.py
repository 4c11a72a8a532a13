#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl run: a command starts under a policy that would not match it, where that policy wants it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import ctllib
import lib

# What the command first sees of itself: its mask, before discovery could have found it.
MASK = "import os; print(','.join(map(str, sorted(os.sched_getaffinity(0)))), flush=True)"


class Alone(ctllib.CtlTest):
    """Without a daemon."""

    def setUp(self):
        self.policies = self.directory()
        (self.policies / "50-none.policy").write_text("[Placement]\nMode=none\n", encoding="ascii")
        (self.policies / "60-node.policy").write_text("[Placement]\nMode=fixed\nNodes=0\n", encoding="ascii")
        self.alone = ("run", "--no-daemon", f"--policy-dir={self.policies}")
        self.nowhere = f"--socket={self.policies}/no-socket"

    def test_the_command_is_run(self):
        self.assertEqual(self.ctl(*self.alone, "--policy=50-none", "echo", "-n", "--policy", "x"), "--policy x")
        self.assertEqual(self.ctl(*self.alone, "--policy", "50-none", "--", "printf", "%s", "--follow"), "--follow")
        self.assertEqual(self.ctl("--no-daemon", f"--policy-dir={self.policies}", "run", "--policy=50-none", "--", "echo",
                                  "run", "--", "x"), "run -- x\n")

    def test_its_exit_code(self):
        for code in (0, 1, 2, 3, 125, 200):
            done = ctllib.run(*self.alone, "--policy=50-none", "sh", "-c", f"exit {code}")
            self.assertEqual((done.returncode, done.stderr), (code, ""))
        done = ctllib.run(*self.alone, "--policy=50-none", "sh", "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_failures(self):
        self.fails(*self.alone, "--policy=50-none", "/no/such/program", code=127, says="No such file")
        self.fails(*self.alone, "--policy=50-none", "no-such-program-anywhere", code=127, says="No such file")
        self.fails(*self.alone, "--policy=50-none", "/", code=126, says="Permission denied")
        self.fails(*self.alone, "--policy=70-more", "true", code=125, says="no policy '70-more'")
        self.fails(*self.alone, "true", code=125, says="--policy=NAME")
        self.fails(*self.alone, "--policy=50-none", "", code=125, says="run takes COMMAND [ARG...], not an empty command")
        self.fails("run", code=125, says="run takes COMMAND")
        self.fails("run", "--policy=x", "--follow", "true", code=125, says="--follow is not for run")
        self.fails("run", "--polic", code=125, says="--polic")
        self.fails("--frobnicate", "--policy=x", "run", "true", code=125, says="--frobnicate is not an option")
        self.fails("--lines=x", "--", "run", "true", code=125, says="--lines=x: expected a number")
        self.fails("--lines=x", "run", "true", "--json=short", code=125, says="--lines=x: expected a number")
        self.fails("--lines=x", "moves", "run", code=2, says="--lines=x: expected a number")
        self.fails(self.nowhere, "run", "--policy=50-none", "true", code=125, says="Is numaplaced running?")
        for option in (f"--policy-dir={self.policies}", "--rehearse=2"):
            self.fails(self.nowhere, "run", option, "--policy=50-none", "true", code=125, says="need --no-daemon")

    def test_json_tells_the_status(self):
        for args in ([*self.alone, "--policy=70-more", "true"], [*self.alone, "true"], ["run"], ["run", "--follow", "true"],
                     [self.nowhere, "run", "--policy=50-none", "true"], [*self.alone, "--policy=50-none", "/"]):
            done = ctllib.run("--json=short", *args)
            self.assertEqual(json.loads(done.stderr)["exit"], done.returncode, args)
            self.assertIn(done.returncode, (125, 126))

    def test_sigpipe_is_what_it_was(self):
        # The interpreter of this test ignores it; subprocess restores it in the child unless told otherwise.
        ignored = []
        for restore in (True, False):
            run = [subprocess.run([*argv, "grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True, check=True,
                                  restore_signals=restore, stdin=subprocess.DEVNULL).stdout
                   for argv in ([], [ctllib.CTL, *self.alone, "--policy=50-none", "--"])]
            self.assertEqual(run[0], run[1])
            ignored.append(run[0])
        self.assertNotEqual(ignored[0], ignored[1])

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs one node with two CPUs")
    def test_fixed_nodes(self):
        mask = self.ctl(*self.alone, "--rehearse=2", "--policy=60-node", sys.executable, "-c", MASK).strip().split(",")
        self.assertLess(set(map(int, mask)), set(lib.own_cpus()))
        last = lib.own_cpus()[-1]
        self.fails(*self.alone, "--rehearse=2", "--policy=60-node", "true", code=125, says="may not use any CPU",
                   preexec_fn=lambda: os.sched_setaffinity(0, {last}))


class Under(lib.DaemonTest):
    """With a daemon that places."""

    def setUp(self):
        lib.need_placing()
        super().setUp()
        # MinAgeSec= applies to discovered processes; an assigned one does not wait.
        self.write_policy(mark="nobody", Workload={"MinAgeSec": "60"})
        self.running = self.daemon().ready()

    def run_argv(self, *args):
        return [lib.CTL, f"--socket={self.running.runtime}/bus", "run", "--policy=50-test", "--", *args]

    def start(self, *args):
        process = subprocess.Popen(self.run_argv(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)  # with its children
        return process

    def test_from_its_first_instruction(self):
        # The command waits for the test, since the home of an ended process is given up as soon as that is seen.
        with subprocess.Popen(self.run_argv(sys.executable, "-c", f"{MASK}; input()"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            home = self.running.ctl("show", "50-test")["home"]
            rest = process.communicate("\n", timeout=lib.DEADLINE_SEC)
        self.assertEqual((process.returncode, *rest), (0, "", ""))
        mask = self.list_of(map(int, first.strip().split(",")))
        self.assertNotEqual(mask, self.full)
        self.assertEqual(mask, home)
        self.running.stop()

    def test_children_and_explain(self):
        process = self.start("sh", "-c", f"{lib.SPINNER} --asleep & {lib.SPINNER} --asleep & echo $!; wait")
        last = int(process.stdout.readline())
        lib.wait_until("three processes", lambda: self.running.ctl("status")["assigned"] == 3)
        for pid in (process.pid, last):
            explained = self.running.ctl("explain", str(pid))
            self.assertEqual((explained["policy"], explained["assigned"], explained["verdict"], explained["stripe"]),
                             ("50-test", True, "managed", ""))
            self.assertEqual(set(lib.affinity(pid).values()), {explained["home"]})
            self.assertIn("assigned by name", self.running.ctl_run("explain", str(pid)).stdout)
        # It starts with its parent's mask, and is restored once the mask it would have otherwise is known.
        lib.wait_until("its own record", lambda: all(
            task["original"] for task in self.running.ctl("explain", str(last))["tasks"]))
        # A released process is left alone until it is resumed; then it is back in its place.
        self.running.ctl("release", str(last))
        lib.wait_until("its full mask", lambda: set(lib.affinity(last).values()) == {self.full})
        self.running.ctl("resume", str(last))
        lib.wait_until("its home", lambda: set(lib.affinity(last).values()) == {explained["home"]})
        os.kill(last, signal.SIGKILL)
        lib.wait_until("one less", lambda: self.running.ctl("status")["assigned"] == 2)
        self.running.stop()
        self.assertEqual(set(lib.affinity(process.pid).values()), {self.full})

    def test_a_restart_and_a_reload_change_nothing(self):
        process = self.start(lib.SPINNER, "--asleep")
        lib.wait_until("the command", lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "spinner\n")
        home = self.running.ctl("show", "50-test")["home"]
        self.running.ctl("reload")
        self.assertTrue(self.running.says("reloaded: 1 policy, 1 workload\n"), self.running.log())
        lib.wait_until("another tick", lambda: self.running.ctl("explain", str(process.pid))["assigned"])
        self.running.stop()
        self.assertEqual(set(lib.affinity(process.pid).values()), {self.full})
        self.running = self.daemon().ready()
        lib.wait_until("its home", lambda: set(lib.affinity(process.pid).values()) == {home})
        self.assertTrue(self.running.ctl("explain", str(process.pid))["assigned"])
        self.running.stop()

    def test_refusals(self):
        done = subprocess.run([*self.run_argv("true")[:2], "run", "--policy=nonsense", "true"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("there is no policy 'nonsense'", done.stderr)
        lib.need_program("setpriv")
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *self.run_argv("true")],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"})
        self.assertEqual(done.returncode, 125)
        self.assertIn("may only read", done.stderr)
        self.assertEqual(self.running.ctl("status")["assigned"], 0)
        self.running.stop()


if __name__ == "__main__":
    lib.main()
