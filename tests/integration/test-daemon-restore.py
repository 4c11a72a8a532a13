#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything that was done is undone: on stop, after a crash, on release, and while processes come and go."""

import contextlib
import os
import pathlib
import re
import signal
import struct
import subprocess
import time

import lib


class Restore(lib.PlacingTest):
    def test_stop_restores(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=5")
        self.wait_home(daemon, idle)
        log = daemon.stop()
        self.assertEqual(idle.masks(), {self.full}, log)
        self.assertIn("put back", log)

    def test_kill_and_restart_restores(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=5")
        self.wait_home(daemon, idle)
        daemon.kill()
        self.assertNotIn(self.full, idle.masks())

        # No policy: the next daemon only restores.
        (self.policies / "50-test.policy").unlink()
        daemon = self.daemon().ready()
        self.assertEqual(idle.masks(), {self.full}, daemon.log())
        self.assertTrue(daemon.says("an earlier daemon had placed"))
        daemon.stop()
        self.assertEqual(idle.masks(), {self.full})

    def test_kill_restart_and_stop_restores(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=5")
        self.wait_home(daemon, idle)
        daemon.kill()
        daemon = self.daemon().ready()
        self.wait_home(daemon, idle)  # placed anew
        daemon.stop()
        self.assertEqual(idle.masks(), {self.full})

    def test_keep_on_stop(self):
        self.config.write_text("[Daemon]\nKeepOnStop=yes\nSlowTickSec=200ms\n", encoding="ascii")
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        self.wait_home(daemon, idle)
        daemon.stop()
        self.assertNotIn(self.full, idle.masks())
        self.config.write_text("", encoding="ascii")
        (self.policies / "50-test.policy").unlink()
        self.daemon().ready().stop()
        self.assertEqual(idle.masks(), {self.full})

    def restore(self):
        """The output of --restore, and its exit status."""
        run = subprocess.run([lib.DAEMON, f"--runtime-dir={self.runtime}", "--restore"], capture_output=True, text=True,
                             timeout=4 * lib.DEADLINE_SEC, check=False)
        return run.returncode, run.stderr

    def test_restore_needs_no_good_files(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        self.wait_home(daemon, idle)
        n = len(lib.affinity(idle.pid))
        status, says = self.restore()
        self.assertEqual(status, lib.RUNNING, says)
        self.assertIn(f"another numaplaced (pid {daemon.process.pid})", says)
        self.assertNotIn(self.full, idle.masks())

        daemon.kill()
        self.config.write_text("[Daemon]\nMaxTasks=none of these\n", encoding="ascii")
        status, says = self.restore()
        self.assertEqual(status, 0, says)
        self.assertIn(f"put back {n} threads an earlier daemon had placed", says)
        self.assertEqual(idle.masks(), {self.full})
        self.assertEqual(self.restore(), (0, ""))

    def test_once_puts_back(self):
        idle = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon("--once")
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertEqual(daemon.process.returncode, 0, daemon.log())
        self.assertIn(str(idle.pid), daemon.log())
        self.assertEqual(idle.masks(), {self.full})

    def test_policy_removed_releases(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        self.wait_home(daemon, idle)
        (self.policies / "50-test.policy").unlink()
        daemon.ctl_run("reload").check_returncode()
        self.wait_full(idle)
        self.assertEqual(daemon.ctl("workloads"), [])
        daemon.stop()

    def test_settings_that_make_everything_anew(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        home = self.wait_home(daemon, idle)
        self.config.write_text("[Daemon]\nMaxTasks=5000\nSlowTickSec=200ms\n", encoding="ascii")
        daemon.ctl_run("reload").check_returncode()
        self.assertEqual(self.wait_home(daemon, idle), home)
        daemon.stop()
        self.assertEqual(idle.masks(), {self.full})


class Release(lib.PlacingTest):
    def test_release_of_a_workload(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        home = self.wait_home(daemon, idle)
        daemon.ctl_run("release", "50-test").check_returncode()
        self.assertEqual(idle.masks(), {self.full})  # it is done when the answer arrives
        self.assertTrue(daemon.ctl("workloads")[0]["paused"])
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("some more ticks", lambda: daemon.ctl("status")["tick"] > tick + 3)
        self.assertEqual(idle.masks(), {self.full})  # and stays so
        daemon.ctl_run("resume", "50-test").check_returncode()
        self.assertEqual(self.wait_home(daemon, idle), home)
        daemon.stop()
        self.assertEqual(idle.masks(), {self.full})

    def test_release_of_everything(self):
        daemon = self.daemon().ready()
        idle = self.spinner("--asleep", "--threads=3")
        self.wait_home(daemon, idle)
        daemon.ctl_run("release", "--all").check_returncode()
        self.assertEqual(idle.masks(), {self.full})
        late = self.spinner("--asleep")
        lib.wait_until("the new process to be seen",
                       lambda: daemon.ctl("explain", str(late.pid))["managed"])
        self.assertEqual(late.masks(), {self.full})
        daemon.ctl_run("resume", "--all").check_returncode()
        self.wait_home(daemon, late)
        daemon.stop()
        self.assertEqual(idle.masks() | late.masks(), {self.full})

    def test_release_of_one_process(self):
        daemon = self.daemon().ready()
        one, other = self.spinner("--asleep", "--threads=3"), self.spinner("--asleep")
        self.wait_home(daemon, one)
        home = self.wait_home(daemon, other)
        daemon.ctl_run("release", str(one.pid)).check_returncode()
        self.assertEqual(one.masks(), {self.full})
        self.assertEqual(daemon.ctl("explain", str(one.pid))["verdict"], "released")
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("some more ticks", lambda: daemon.ctl("status")["tick"] > tick + 3)
        self.assertEqual(one.masks(), {self.full})
        self.assertEqual(other.masks(), home)
        daemon.ctl_run("resume", str(one.pid)).check_returncode()
        self.assertEqual(self.wait_home(daemon, one), home)
        daemon.stop()
        self.assertEqual(one.masks() | other.masks(), {self.full})

    def test_unknown_names(self):
        daemon = self.daemon().ready()
        for verb in ("pause", "resume", "release"):
            run = daemon.ctl_run(verb, "no-such-workload")
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("no-such-workload", run.stderr)
        self.assertNotEqual(daemon.ctl_run("release", "1").returncode, 0)
        self.assertNotEqual(daemon.ctl_run("explain", "4194305").returncode, 0)
        daemon.stop()


def is_exiting(pid):
    """From PF_EXITING in the flags of proc_pid_stat(5)."""
    flags = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[6]
    return int(flags) & 0x4


@contextlib.contextmanager
def first_in_line():
    """Reading a hundred that never sleep would mostly be waiting for a turn. The daemon has to cope with them, the
    test need not."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


class Churn(lib.PlacingTest):
    """100 processes, all placed, that begin to fork and exit at full speed: thousands per second."""

    N_CHAINS = 100

    def setUp(self):
        super().setUp()
        # A name of its own, so that reading one file gives both the owner and the mask.
        self.comm = f"fork{self.mark[:8]}"
        (self.directory / self.comm).symlink_to(lib.FORKER)
        self.counter = self.directory / "forks"

    def look(self):
        """The number of those that live long enough to be read, and those of them whose mask is not the full one."""
        narrow, n_seen = {}, 0
        for pid in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if not pid.isdigit():
                    continue
                status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
                if f"Name:\t{self.comm}\n" in status:
                    n_seen += 1
                    mask = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE).group(1)
                    # An exiting process passes nothing on.
                    if mask != self.full and not is_exiting(pid):
                        narrow[int(pid)] = mask
        return narrow, n_seen

    def forks(self):
        return struct.unpack("<Q", self.counter.read_bytes()[:8])[0]

    def wait_forks(self, n):
        before = self.forks()
        lib.wait_until(f"{n} more forks", lambda: self.forks() > before + n)

    def churn(self):
        """A daemon, and chains that all begin with its mask."""
        forker = lib.Workload(self, [str(self.directory / self.comm), f"--processes={self.N_CHAINS}",
                                     f"--counter-file={self.counter}", "--hold"], self.mark)
        daemon = self.daemon().ready()
        # With the first process, which waits for the others.
        lib.wait_until("all to be placed", lambda: len(self.look()[0]) == self.N_CHAINS + 1)
        os.kill(forker.pid, signal.SIGUSR1)
        self.wait_forks(20 * self.N_CHAINS)
        self.assertTrue(self.look()[0])
        return daemon

    def check_restored(self):
        """Looks again and again while they keep forking: a missed mask would be inherited for ever."""
        n_seen = 0
        with first_in_line():
            for _ in range(20):
                narrow, n = self.look()
                self.assertEqual(narrow, {})
                n_seen += n
                self.wait_forks(500)
        self.assertGreater(n_seen, self.N_CHAINS)

    def test_stop_restores(self):
        self.churn().stop()
        self.check_restored()

    def test_kill_and_restart_restores(self):
        self.churn().kill()
        self.wait_forks(2000)
        (self.policies / "50-test.policy").unlink()
        daemon = self.daemon().ready()
        self.check_restored()
        daemon.stop()
        self.check_restored()

    def test_release_restores(self):
        daemon = self.churn()
        run = daemon.ctl_run("release", "--all")
        self.assertEqual(run.returncode, 0, daemon.log() + run.stderr)
        self.check_restored()
        daemon.stop()
        self.check_restored()


class AfterSuspension(lib.DaemonTest):
    """CLOCK_MONOTONIC, which the daemon uses, stops while the machine is suspended. CLOCK_BOOTTIME, in which start
    times are given, does not. In a time namespace it is ahead as well."""

    AHEAD = ("unshare", "--time", "--boottime", "100000")
    MIN_AGE_SEC = 2

    def setUp(self):
        lib.need_placing()
        uptime = subprocess.run([*self.AHEAD, "cat", "/proc/uptime"], capture_output=True, text=True, check=False).stdout
        if not uptime or float(uptime.split()[0]) < 100000:
            self.skipTest("no time namespace that a program can enter by execve(2) (Linux 6.1)")
        super().setUp()
        self.write_policy(Workload={"MinAgeSec": str(self.MIN_AGE_SEC)})

    def masks(self, *pids):
        return set().union(*(lib.affinity(pid).values() for pid in pids))

    def parent(self):
        """A process that forks a child, which no policy matches, on request."""
        parent = subprocess.Popen(["sh", "-c", "while read line; do env -u NUMAPLACE_TEST sleep 1000 & echo $!; done"],
                                  env={**os.environ, "NUMAPLACE_TEST": self.mark}, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for pipe in (parent.stdin, parent.stdout):
            self.addCleanup(pipe.close)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        return parent

    def child(self, parent):
        parent.stdin.write("\n")
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return pid

    def test_births(self):
        """No process is taken to be older than it is. A process created with the daemon's mask gets what its parent had; one
        pinned since then does not."""
        parent = self.parent()
        daemon = self.daemon(wrap=self.AHEAD).ready()
        lib.wait_until("the parent to be at home", lambda: self.full not in self.masks(parent.pid))
        children = [self.child(parent) for _ in range(3)]
        self.assertNotIn(self.full, self.masks(*children))
        begin = time.monotonic()
        newcomer = self.spinner()
        self.wait_home(daemon, newcomer)
        self.assertGreater(time.monotonic() - begin, self.MIN_AGE_SEC - 0.2)
        pinned = children.pop()
        os.sched_setaffinity(pinned, lib.own_cpus()[-1:])
        daemon.kill()
        self.daemon("--restore", wrap=self.AHEAD).process.wait(lib.DEADLINE_SEC)
        self.assertEqual(self.masks(parent.pid, *children) | newcomer.masks(), {self.full})
        self.assertEqual(self.masks(pinned), {self.list_of(lib.own_cpus()[-1:])})


if __name__ == "__main__":
    lib.main()
