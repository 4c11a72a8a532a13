# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of the running daemon share: a daemon of their own on a directory of their own, workloads that only
its policies match, and waiting for conditions.

Nothing here sleeps for a fixed time to let something happen, and nothing asserts how long something took.
wait_until() polls so often that only a hang exceeds it. Polling is work of the test, which takes longer where
everything does.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

SOURCE = pathlib.Path(os.environ["NUMAPLACE_SOURCE"])
DAEMON = os.environ["NUMAPLACED"]
CTL = os.environ["NUMAPLACECTL"]
SPINNER = os.environ["NUMAPLACE_SPINNER"]
FORKER = os.environ["NUMAPLACE_FORKER"]

# Taken out of its package by ./dev setup.
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=SOURCE / "build-lab/promtool/usr/bin")

# Time limits where polling is not possible. Only a hang reaches them, even in a sanitized build beside others.
DEADLINE_SEC = 600
# How often wait_until() polls, and how long it pauses in between: at least two minutes. In a guest polling costs more
# than waiting.
LOOKS = int(os.environ.get("NUMAPLACE_TEST_LOOKS", "2400"))
PAUSE_SEC = float(os.environ.get("NUMAPLACE_TEST_PAUSE_SEC", "0.05"))

# Lines of a daemon's log that are shown after a failed test.
LINES_TOLD = 40

# Exit statuses of numaplaced(8).
FAILED, USAGE, CONFIG, RUNNING, NOT_RESTORED, JOURNAL = 1, 2, 3, 4, 5, 6


def wait_until(what, predicate, looks=LOOKS):
    """Polls until predicate() is true and returns its value."""
    for _ in range(looks):
        value = predicate()
        if value:
            return value
        time.sleep(PAUSE_SEC)
    raise AssertionError(f"looked {looks} times for: {what}")


def affinity(pid):
    """{tid: Cpus_allowed_list} of the current threads of a process."""
    masks = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                text = pathlib.Path(f"/proc/{pid}/task/{tid}/status").read_text(encoding="utf-8", errors="replace")
                for line in text.splitlines():
                    if line.startswith("Cpus_allowed_list:"):
                        masks[int(tid)] = line.split()[1]
    return masks


def own_cpus():
    return sorted(os.sched_getaffinity(0))


def cpu_nodes():
    """Numbers of the nodes with CPUs, as far as the kernel reports them."""
    nodes = pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")
    return sorted(int(node.name[4:]) for node in nodes if (node / "cpulist").read_text(encoding="ascii").strip())


def one_node():
    nodes = pathlib.Path("/sys/devices/system/node")
    return len(list(nodes.glob("node[0-9]*"))) <= 1


def need_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")


def need_program(name):
    if not shutil.which(name):
        raise unittest.SkipTest(f"needs {name}")


def need_masks_kept(otherwise):
    """Since 6.2 the kernel remembers the mask that was asked for, and cuts it to the cpuset (commit 8f9ea86fdf99)."""
    if tuple(int(n) for n in os.uname().release.split(".")[:2]) < (6, 2):
        raise unittest.SkipTest(f"before Linux 6.2 {otherwise}")


def need_placing():
    """Requirements for placing: root, and nodes with CPUs, among them node 0, or two CPUs on one node for two
    emulated nodes."""
    need_root()
    if len(own_cpus()) < 2:
        raise unittest.SkipTest("needs two CPUs")
    if not one_node() and (len(cpu_nodes()) < 2 or cpu_nodes()[0] != 0):
        raise unittest.SkipTest("needs one node, or CPUs on node 0 and on another")


def journal_name():
    """The name of the undo journal in this PID namespace."""
    number = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    return "journal" if number == "4026531836" else f"journal-{number}"


class Workload:
    """A program with a mark in its environment, by which the test's policy matches it and its children."""

    def __init__(self, test, argv, env_mark, **popen):
        env = dict(os.environ, NUMAPLACE_TEST=env_mark)
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, **popen)
        self.pid = self.process.pid
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE_SEC)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def masks(self):
        return set(affinity(self.pid).values())

    def alive(self):
        return self.process.poll() is None


class Daemon:
    """numaplaced on a runtime directory of its own."""

    def __init__(self, test, *args, wrap=(), env=None, runtime=None, policies=None, rehearse=True, **popen):
        self.test = test
        self.runtime = runtime or test.runtime
        self.argv = [*wrap, DAEMON, f"--runtime-dir={self.runtime}", f"--config={test.config}",
                     f"--policy-dir={policies or test.policies}", *args]
        if rehearse and one_node() and len(own_cpus()) >= 2:
            self.argv.append("--rehearse=2")
        self.log_path = test.directory / f"log-{uuid.uuid4().hex[:8]}"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=dict(os.environ, **(env or {})), **popen)
        test.addCleanup(self.kill)

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def says(self, text):
        return text in self.log()

    def ready(self):
        # First it restores what an earlier daemon left, which takes as long as a stop.
        wait_until("the daemon to be ready", lambda: self.says(": ready (") or self.process.poll() is not None)
        self.test.assertIsNone(self.process.poll(), self.log())
        return self

    def fails(self, status, *says):
        """It ends by itself with this status, and its last line gives the reason."""
        self.process.wait(DEADLINE_SEC)
        log = self.log()
        self.test.assertEqual(self.process.returncode, status, log)
        for text in says:
            self.test.assertIn(text, log)
        self.test.assertNotIn("AddressSanitizer", log)
        return log

    def stop(self, signal_number=signal.SIGTERM, status=0):
        self.process.send_signal(signal_number)
        self.process.wait(DEADLINE_SEC)
        self.test.assertEqual(self.process.returncode, status, self.log())
        return self.log()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ctl_run(self, *args):
        return subprocess.run([CTL, f"--socket={self.runtime}/bus", *args], capture_output=True, text=True,
                              timeout=DEADLINE_SEC, check=False)

    def ctl(self, *args):
        """The answer as JSON; fails the test when the command fails. A process that is held up may be unreadable for
        a while."""
        run = wait_until("an answer", lambda: (run := self.ctl_run("--json=short", *args)) and "try again" not in run.stderr and run)
        self.test.assertEqual(run.returncode, 0, f"{self.log()}\n{args}: {run.stderr}")
        return json.loads(run.stdout) if run.stdout.strip() else None


class DaemonTest(unittest.TestCase):
    """A directory with a configuration, and a policy that gives node 0 to processes with this test's mark."""

    def setUp(self):
        # Paths of sockets must be short.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="np-test-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.directory.chmod(0o755)
        self.runtime = self.directory / "run"
        self.journal = self.runtime / journal_name()
        self.policies = self.directory / "policy.d"
        self.policies.mkdir()
        self.config = self.directory / "numaplaced.conf"
        self.config.write_text("[Daemon]\nSlowTickSec=200ms\nMaxCPU=50%\n", encoding="ascii")
        self.mark = uuid.uuid4().hex
        self.full = self.list_of(own_cpus())
        self.addCleanup(os.sched_setaffinity, 0, own_cpus())

    @staticmethod
    def list_of(cpus):
        """The kernel's list form of a set of CPUs."""
        parts, cpus = [], sorted(cpus)
        while cpus:
            run = 1
            while run < len(cpus) and cpus[run] == cpus[0] + run:
                run += 1
            parts.append(str(cpus[0]) if run == 1 else f"{cpus[0]}-{cpus[run - 1]}")
            cpus = cpus[run:]
        return ",".join(parts)

    def write_policy(self, name="50-test", mark=None, **sections):
        """Mode=fixed on node 0 with stealing, for processes with the mark."""
        text = f"[Match]\nEnvironment=NUMAPLACE_TEST={mark or self.mark}\n"
        values = {
            "Workload": {"MinAgeSec": "0"},
            "Placement": {"Mode": "fixed", "Nodes": "0", "MinResidencySec": "0"},
            # Real nodes may be more, and farther apart, than stealing allows by default.
            "Steal": {"Steal": "yes", "Scope": "machine", "NodeLimit": "1024", "MaxDistance": "254"},
        }
        for section, keys in sections.items():
            values.setdefault(section, {}).update(keys)
        for section, keys in values.items():
            text += f"[{section}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())
        (self.policies / f"{name}.policy").write_text(text, encoding="ascii")

    def daemon(self, *args, **kwargs):
        daemon = Daemon(self, *args, **kwargs)
        self.addCleanup(self.tell, daemon)
        return daemon

    def tell(self, daemon):
        """The daemon's last log lines, if the test has failed."""
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            for line in daemon.log().splitlines()[-LINES_TOLD:]:
                print("#", line, file=sys.stderr)

    def spinner(self, *args, mark=None, **popen):
        """Asleep by default: the tests are about masks, not load."""
        args = args or ("--asleep",)
        workload = Workload(self, [SPINNER, *args], mark or self.mark, **popen)
        n = next((int(arg.partition("=")[2]) for arg in map(os.fsdecode, args) if arg.startswith("--threads=")), 0)
        wait_until("its threads", lambda: len(affinity(workload.pid)) > n or not workload.alive())
        return workload

    def wait_home(self, daemon, workload):
        """Waits until every thread of a workload is confined, and returns the masks."""
        wait_until("the workload to be placed",
                   lambda: workload.masks() and self.full not in workload.masks() or not workload.alive() or
                   daemon.process.poll() is not None)
        self.assertTrue(workload.alive())
        self.assertIsNone(daemon.process.poll(), daemon.log())
        return workload.masks()

    @staticmethod
    def ticks(daemon, n=5):
        """Gives the daemon every opportunity to make a mistake."""
        tick = daemon.ctl("status")["tick"]
        wait_until("some ticks", lambda: daemon.ctl("status")["tick"] >= tick + n)

    def wait_lent(self, daemon):
        """Requires idle CPUs: only these are lent."""
        wait_until("a CPU to be lent", lambda: daemon.ctl("status")["leases"] > 0)

    def wait_full(self, workload):
        wait_until("the workload to be put back", lambda: workload.masks() == {self.full})


class PlacingTest(DaemonTest):
    """The same where a daemon can place, with the policy in place."""

    def setUp(self):
        need_placing()
        super().setUp()
        self.write_policy()


class NotifySocket:
    """The service manager's end of sd_notify(3)."""

    def __init__(self, test):
        self.path = str(test.directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(0.2)
        self.lines = []
        self.heard = []  # everything, including what wait_for() has skipped
        test.addCleanup(self.socket.close)

    def wait_for(self, prefix):
        def poll():
            with contextlib.suppress(TimeoutError):
                lines = self.socket.recv(4096).decode().splitlines()
                self.lines += lines
                self.heard += lines
            found = [line for line in self.lines if line.startswith(prefix)]
            if found:
                self.lines = self.lines[self.lines.index(found[0]) + 1:]
            return found

        return wait_until(f"{prefix} on the notify socket", poll)[0]


def main():
    """Runs the tests of the calling file; exit status 77 when every one was skipped."""
    program = unittest.main(module="__main__", verbosity=2, exit=False)
    result = program.result
    if result.wasSuccessful() and result.testsRun and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() else 1)
