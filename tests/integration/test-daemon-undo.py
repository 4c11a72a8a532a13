#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whose mask it is: that of a user who pinned a thread to exactly a home, or one that was inherited, whatever became
of the ancestors."""

import os
import pathlib
import signal
import subprocess
import sys

import lib

# Prints its PID, and then follows commands, one a line. A child that is to become a background process ends its
# ancestors.
SERVANT = r"""
import os, sys

def say(text):
    os.write(1, f"{text}\n".encode())

def wait():
    os.execvp("sleep", ["sleep", "1000"])

def child():
    if os.fork() == 0:
        say(os.getpid())
        wait()

def session():
    if os.fork() == 0:
        os.setsid()
        say(os.getpid())
        wait()

def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            say(os.getpid())
            wait()
        os._exit(0)
    os.wait()

# Each bears the next one, in a session of its own, and ends.
def chain():
    if os.fork() == 0:
        for _ in range(200):
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
        say(os.getpid())
        wait()
    os.wait()

def orphan():
    if os.fork() == 0:
        if os.fork() == 0:
            say(os.getpid())
            wait()
        os._exit(0)
    os.wait()

say(os.getpid())
for line in sys.stdin:
    {"child": child, "session": session, "daemon": daemon, "chain": chain, "orphan": orphan}[line.strip()]()
"""


class Undo(lib.DaemonTest):
    def setUp(self):
        lib.need_placing()
        super().setUp()
        # By name, so that its children, which are called sleep, match no policy.
        self.comm = f"np{self.mark[:10]}"
        self.interpreter = self.directory / self.comm
        self.interpreter.symlink_to(os.path.realpath(sys.executable))
        (self.policies / "50-test.policy").write_text(
            f"[Match]\nComm={self.comm}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n", encoding="ascii")

    def servant(self, **popen):
        servant = subprocess.Popen([str(self.interpreter), "-c", SERVANT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, **popen)
        for pipe in (servant.stdin, servant.stdout):
            self.addCleanup(pipe.close)
        self.addCleanup(servant.wait)
        self.addCleanup(servant.kill)
        self.assertEqual(int(servant.stdout.readline()), servant.pid)
        return servant

    def ask(self, servant, what):
        servant.stdin.write(f"{what}\n")
        servant.stdin.flush()
        pid = int(servant.stdout.readline())
        self.addCleanup(self.end, pid)
        return pid

    @staticmethod
    def end(pid):
        with lib.contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    @staticmethod
    def masks(*pids):
        return [",".join(sorted(set(lib.affinity(pid).values()))) for pid in pids]

    def wait_narrow(self, daemon, pid):
        lib.wait_until("it to be at home", lambda: self.full not in self.masks(pid) or daemon.process.poll() is not None)
        self.assertIsNone(daemon.process.poll(), daemon.log())
        return os.sched_getaffinity(pid)

    def pinned(self, cpus, **popen):
        """A foreign process, a child of this process and in its session."""
        process = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: os.sched_setaffinity(0, cpus), **popen)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def over(self, daemon, how):
        """A clean stop, or a kill and what follows it."""
        if how == "stop":
            daemon.stop()
            return
        daemon.kill()
        if how == "restart":
            (self.policies / "50-test.policy").unlink(missing_ok=True)
            self.daemon().ready().stop()
        else:
            run = self.daemon("--restore")
            run.process.wait(lib.DEADLINE_SEC)
            self.assertEqual(run.process.returncode, 0, run.log())

    WAYS = ("stop", "restart", "restore")


class Pins(Undo):
    """A user's pin that happens to equal the home."""

    def test_thread_pinned_to_the_home(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                self.setUp()
                self.write_policy()
                probe = self.spinner("--asleep")
                daemon = self.daemon().ready()
                home = self.wait_narrow(daemon, probe.pid)
                daemon.stop()
                probe.end()

                workload = self.spinner("--asleep", "--threads=3")
                lib.wait_until("the threads", lambda workload=workload: len(lib.affinity(workload.pid)) == 4)
                pinned = max(lib.affinity(workload.pid))
                os.sched_setaffinity(pinned, home)
                daemon = self.daemon().ready()
                self.wait_home(daemon, workload)
                self.ticks(daemon, 3)
                self.over(daemon, how)
                masks = lib.affinity(workload.pid)
                self.assertEqual(masks.pop(pinned), self.list_of(home))
                self.assertEqual(set(masks.values()), {self.full})

    def test_process_pinned_to_the_home_of_its_group(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                self.setUp()
                self.write_policy()
                first = self.spinner("--asleep")
                daemon = self.daemon().ready()
                home = self.wait_narrow(daemon, first.pid)
                second = self.spinner("--asleep", preexec_fn=lambda home=home: os.sched_setaffinity(0, home))
                lib.wait_until("it to be known", lambda daemon=daemon, second=second: daemon.ctl(
                    "explain", str(second.pid))["managed"])
                self.ticks(daemon, 3)
                self.over(daemon, how)
                self.assertEqual(first.masks(), {self.full})
                self.assertEqual(second.masks(), {self.list_of(home)})

    def test_pinned_while_managed(self):
        """taskset -apc to other CPUs: nothing is restored, and nothing is reported."""
        workload = self.servant()
        daemon = self.daemon().ready()
        home = self.wait_narrow(daemon, workload.pid)
        chosen = set(lib.own_cpus()) - home
        os.sched_setaffinity(workload.pid, chosen)
        mask = self.list_of(chosen)
        move = lib.wait_until("the daemon to yield", lambda: [m for m in daemon.ctl("moves") if m["kind"] == "release"])[0]
        self.assertEqual((move["outcome"], move["from"], move["to"]), ("foreign", mask, mask))
        status = daemon.ctl("status")
        self.assertEqual((status["releases"], status["pinned"], status["foreign_restores"]), (0, 1, 1))
        says = daemon.ctl_run("status").stdout
        self.assertIn("1 of them left alone because something else pinned it", says)
        self.assertIn("1 thread left because something else pinned it", says)
        daemon.stop()
        self.assertEqual(self.masks(workload.pid), [mask])


class Strangers(Undo):
    """A process pinned to the home of a managed process, in its session, but not its child."""

    def test_born_after_the_kill(self):
        for how in ("restart", "restore"):
            with self.subTest(how=how):
                self.setUp()
                servant = self.servant()
                daemon = self.daemon().ready()
                home = self.wait_narrow(daemon, servant.pid)
                daemon.kill()
                innocent, apart = self.pinned(home), self.pinned(home, start_new_session=True)
                self.assertEqual(os.getsid(innocent.pid), os.getsid(servant.pid))
                heirs = [self.ask(servant, what) for what in ("child", "session", "daemon", "orphan")]
                self.over(daemon, how)
                self.assertEqual(self.masks(innocent.pid, apart.pid), 2 * [self.list_of(home)])
                self.assertEqual(self.masks(servant.pid, *heirs), 5 * [self.full])

    def test_whose_parent_ends(self):
        """For processes seen while their ancestors lived, the descent is not forgotten."""
        for how in self.WAYS:
            with self.subTest(how=how):
                self.setUp()
                servant = self.servant()
                daemon = self.daemon().ready()
                home = self.wait_narrow(daemon, servant.pid)
                innocent = subprocess.Popen(["sh", "-c", "sleep 1000 >/dev/null & echo $!; read line"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True,
                                            preexec_fn=lambda home=home: os.sched_setaffinity(0, home))
                pid = int(innocent.stdout.readline())
                self.addCleanup(self.end, pid)
                journal = self.journal
                lib.wait_until("it to be judged", lambda journal=journal, pid=pid: f"stranger pid={pid} " in journal.read_text())
                innocent.communicate("\n")
                self.assertNotEqual(pathlib.Path(f"/proc/{pid}/stat").read_text().split()[3], str(innocent.pid))
                self.over(daemon, how)
                self.assertEqual(self.masks(servant.pid, pid), [self.full, self.list_of(home)])


class Heirs(Undo):
    """Processes that inherited a mask and match no policy."""

    KINDS = ("child", "session", "orphan", "daemon", "daemon", "chain")

    def inherited(self, home, heirs):
        """A process that was seen before it was called sleep was managed, and is already released."""
        self.assertLessEqual(set(self.masks(*heirs)), {home, self.full})

    def test_daemons(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                self.setUp()
                servant = self.servant()
                daemon = self.daemon().ready()
                home = self.list_of(self.wait_narrow(daemon, servant.pid))
                heirs = [self.ask(servant, what) for what in self.KINDS]
                self.inherited(home, heirs)
                self.over(daemon, how)
                self.assertEqual(self.masks(servant.pid, *heirs), (1 + len(heirs)) * [self.full])

    def test_whose_parent_ends(self):
        """In sessions of their own, without living ancestors: they were seen before."""
        for how in self.WAYS:
            with self.subTest(how=how):
                self.setUp()
                servant = self.servant()
                daemon = self.daemon().ready()
                home = self.list_of(self.wait_narrow(daemon, servant.pid))
                heirs = [self.ask(servant, what) for what in self.KINDS]
                journal = self.journal
                # A daemon of another test, which is ending, may take a background process for one of its own, and
                # restore it.
                lib.wait_until("all to be written down", lambda journal=journal, heirs=heirs: all(
                    f"process pid={pid} " in journal.read_text() or self.masks(pid) == [self.full] for pid in heirs))
                servant.kill()
                servant.wait()
                self.inherited(home, heirs)
                self.over(daemon, how)
                self.assertEqual(self.masks(*heirs), len(heirs) * [self.full])

    def test_release(self):
        servant = self.servant()
        daemon = self.daemon().ready()
        home = self.list_of(self.wait_narrow(daemon, servant.pid))
        heirs = [self.ask(servant, what) for what in self.KINDS]
        pinned = self.ask(servant, "child")
        chosen = set(lib.own_cpus()) - os.sched_getaffinity(servant.pid)
        os.sched_setaffinity(pinned, chosen)
        self.ticks(daemon, 3)
        self.inherited(home, heirs)
        daemon.ctl_run("release", str(servant.pid)).check_returncode()
        self.assertEqual(self.masks(servant.pid, *heirs), (1 + len(heirs)) * [self.full])
        self.assertEqual(self.masks(pinned), [self.list_of(chosen)])
        daemon.stop()
        self.assertEqual(self.masks(pinned), [self.list_of(chosen)])

    def orphans(self, daemon):
        """Children whose ancestor, the only process of the workload, has ended: they have its mask."""
        servant = self.servant()
        home = self.list_of(self.wait_narrow(daemon, servant.pid))
        self.ticks(daemon)
        heirs = [self.ask(servant, what) for what in ("child", "session", "child")]
        lib.wait_until("all to be written down", lambda: all(
            f"process pid={pid} " in self.journal.read_text() or self.masks(pid) == [self.full] for pid in heirs))
        servant.kill()
        servant.wait()
        self.ticks(daemon)
        self.inherited(home, heirs)
        return heirs

    def wait_back(self, heirs):
        lib.wait_until("the children to be put back", lambda: self.masks(*heirs) == len(heirs) * [self.full])

    def test_release_of_an_ended_workload(self):
        daemon = self.daemon().ready()
        for name in ("50-test", ""):
            heirs = self.orphans(daemon)
            daemon.ctl_run("release", *([name] if name else ["--all"])).check_returncode()
            self.wait_back(heirs)
            daemon.ctl_run("resume", "50-test").check_returncode()

    def test_policy_of_an_ended_workload_removed(self):
        daemon = self.daemon().ready()
        heirs = self.orphans(daemon)
        policy = self.policies / "50-test.policy"
        policy.write_text(policy.read_text(encoding="ascii").replace("[Workload]", "[Workload]\nAct=observe"), encoding="ascii")
        daemon.ctl_run("reload").check_returncode()
        self.wait_back(heirs)

        self.setUp()
        daemon = self.daemon().ready()
        heirs = self.orphans(daemon)
        (self.policies / "50-test.policy").unlink()
        daemon.ctl_run("reload").check_returncode()
        self.wait_back(heirs)


if __name__ == "__main__":
    lib.main()
