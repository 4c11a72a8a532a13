#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a dead daemon has left is restored before anything else in a start, and by the unit when nothing starts; and
at most one daemon places on a host."""

import os
import pathlib
import re
import resource
import shlex
import subprocess
import unittest

import lib


class Crashed(lib.PlacingTest):
    """A workload whose daemon was killed."""

    def place(self, daemon):
        workload = self.spinner("--asleep", "--threads=3")
        self.home = self.wait_home(daemon, workload)
        self.n = len(lib.affinity(workload.pid))
        return workload

    def crash(self):
        daemon = self.daemon().ready()
        workload = self.place(daemon)
        daemon.kill()
        self.assertEqual(workload.masks(), self.home)
        return workload

    def keep(self):
        """A clean stop that leaves all placements."""
        self.config.write_text("[Daemon]\nKeepOnStop=yes\nSlowTickSec=200ms\nMaxCPU=50%\n", encoding="ascii")
        daemon = self.daemon().ready()
        workload = self.place(daemon)
        daemon.stop()
        self.assertEqual(workload.masks(), self.home)
        return workload

    def break_policies(self):
        (self.policies / "60-bad.policy").write_text("[Match]\nComm=x\n[Placement]\nMode=sideways\n", encoding="ascii")

    def restore(self, *args, wrap=()):
        return subprocess.run([*wrap, lib.DAEMON, f"--runtime-dir={self.runtime}", *(args or ("--restore",))],
                              capture_output=True, text=True, timeout=4 * lib.DEADLINE_SEC, check=False)


class First(Crashed):
    def test_bad_policy(self):
        workload = self.crash()
        self.break_policies()
        log = self.daemon().fails(lib.CONFIG, "60-bad.policy:4: ", f"put back {self.n} threads")
        self.assertEqual(workload.masks(), {self.full}, log)

    def test_bad_configuration(self):
        workload = self.crash()
        self.config.write_text("[Daemon]\nMaxTasks=none of these\n", encoding="ascii")
        log = self.daemon().fails(lib.CONFIG, "numaplaced.conf:2: ", f"put back {self.n} threads")
        self.assertEqual(workload.masks(), {self.full}, log)

    def test_configured_not_to_change_anything(self):
        workload = self.crash()
        self.config.write_text("[Daemon]\nDryRun=yes\n", encoding="ascii")
        daemon = self.daemon().ready()
        self.assertEqual(workload.masks(), {self.full}, daemon.log())
        self.assertEqual((daemon.ctl("status")["mode"], daemon.ctl("status")["left_threads"]), ("dry-run", 0))
        daemon.stop()

    def test_policies_that_only_observe(self):
        workload = self.crash()
        self.write_policy(Workload={"Act": "observe"})
        daemon = self.daemon().ready()
        self.assertEqual(workload.masks(), {self.full}, daemon.log())
        daemon.stop()

    def test_nothing_is_made(self):
        self.runtime.mkdir(mode=0o755)
        self.break_policies()
        self.daemon().fails(lib.CONFIG)
        self.assertEqual(list(self.runtime.iterdir()), [])


class Left(Crashed):
    """A daemon that changes nothing reports what is left."""

    def check_left(self, workload, daemon, kept=False):
        status = daemon.ctl("status")
        self.assertEqual((status["left_threads"], status["left_cgroups"], status["left_kept"]), (self.n, 0, kept))
        self.assertIn(f"{self.n} threads and 0 cgroups still have the CPUs that an earlier daemon gave them", daemon.log())
        self.assertIn(f"numaplaced --restore --runtime-dir={self.runtime}", daemon.log())
        text = daemon.ctl_run("status").stdout
        self.assertIn(f"{self.n} threads, 0 cgroups had CPUs of an earlier daemon", text)
        self.assertIn(f"numaplaced --restore --runtime-dir={self.runtime}", text)
        self.assertEqual(workload.masks(), self.home)

    def test_command_line(self):
        workload = self.crash()
        journal = self.journal.read_bytes()
        daemon = self.daemon("--dry-run").ready()
        self.check_left(workload, daemon)
        daemon.stop()
        self.assertEqual(self.journal.read_bytes(), journal)
        # It is as reported.
        self.assertEqual(self.restore().returncode, 0)
        self.assertEqual(workload.masks(), {self.full})
        daemon = self.daemon("--dry-run").ready()
        self.assertEqual(daemon.ctl("status")["left_threads"], 0)
        self.assertNotIn("earlier daemon", daemon.log() + daemon.ctl_run("status").stdout)
        daemon.stop()

    def no_rights(self):
        lib.need_program("setpriv")
        return ["setpriv", "--inh-caps=-all", "--bounding-set=-sys_nice"]

    def test_no_rights(self):
        wrap = self.no_rights()
        workload = self.crash()
        daemon = self.daemon(wrap=wrap).ready()
        self.assertEqual(daemon.ctl("status")["mode"], "observe")
        self.check_left(workload, daemon)
        daemon.stop()
        run = self.restore(wrap=wrap)
        self.assertEqual(run.returncode, lib.FAILED, run.stderr)
        self.assertIn("not permitted", run.stderr)
        self.assertIn(f"{self.n} threads", run.stderr)

    def test_kept(self):
        workload = self.keep()
        daemon = self.daemon("--dry-run").ready()
        self.check_left(workload, daemon, True)
        self.assertIn("(KeepOnStop=yes)", daemon.log())
        self.assertIn("(KeepOnStop=yes)", daemon.ctl_run("status").stdout)
        daemon.stop()


class Kept(Crashed):
    """KeepOnStop=: placements stay until a daemon starts that places."""

    def test_a_start_that_fails_leaves_them(self):
        workload = self.keep()
        self.break_policies()
        self.daemon().fails(lib.CONFIG, "60-bad.policy:4: ")
        self.assertEqual(workload.masks(), self.home)
        self.config.write_text("[Daemon]\nDryRun=yes\n", encoding="ascii")
        (self.policies / "60-bad.policy").unlink()
        daemon = self.daemon().ready()
        self.assertEqual(daemon.ctl("status")["left_threads"], self.n)
        daemon.stop()
        self.assertEqual(workload.masks(), self.home)
        self.config.write_text("", encoding="ascii")
        (self.policies / "50-test.policy").unlink()
        self.daemon().ready().stop()
        self.assertEqual(workload.masks(), {self.full})

    def test_only_by_the_last_daemon(self):
        workload = self.keep()
        daemon = self.daemon().ready()
        self.assertEqual(self.wait_home(daemon, workload), self.home)
        daemon.kill()
        self.assertEqual(self.restore("--restore=crash").returncode, 0)
        self.assertEqual(workload.masks(), {self.full})

    def test_restore_is_asked_for(self):
        workload = self.keep()
        self.assertEqual(self.restore("--restore=all").returncode, 0)
        self.assertEqual(workload.masks(), {self.full})


class Elsewhere(Crashed):
    """In another PID namespace, and where /proc hides processes: entries that cannot be checked from here are kept."""

    def elsewhere(self, *args):
        return ["unshare", "--pid", "--fork", "--kill-child", *args]

    def check_kept(self, workload, run, status, *expected):
        self.assertEqual(run.returncode, status, run.stderr)
        for text in expected:
            self.assertIn(text, run.stderr)
        self.assertEqual(workload.masks(), self.home)

    def check_restored(self, workload):
        self.assertEqual(self.restore().returncode, 0)
        self.assertEqual(workload.masks(), {self.full})

    def test_restore_in_another_namespace(self):
        workload = self.crash()
        run = self.restore(wrap=self.elsewhere("--mount-proc"))
        self.check_kept(workload, run, lib.NOT_RESTORED, f"{self.journal} belongs to a daemon in another PID namespace, which placed 1 process or cgroup")
        run = self.restore("--restore=crash", wrap=self.elsewhere("--mount-proc"))
        self.check_kept(workload, run, 0)
        self.check_restored(workload)
        # It is empty now.
        self.assertEqual(self.restore(wrap=self.elsewhere("--mount-proc")).returncode, 0)

    def test_start_in_another_namespace(self):
        """A restarted container, for example, has a journal of its own."""
        workload = self.crash()
        args = [f"--runtime-dir={self.runtime}", f"--config={self.config}", f"--policy-dir={self.policies}", "--once", "--rehearse=2"]
        run = self.restore(*args, wrap=self.elsewhere("--mount-proc"))
        self.check_kept(workload, run, 0, "belongs to a daemon in another PID namespace")
        self.check_restored(workload)

    def test_restore_beside_a_daemon_of_another_namespace(self):
        daemon = self.daemon().ready()
        workload = self.place(daemon)
        self.check_kept(workload, self.restore(wrap=self.elsewhere("--mount-proc")), lib.RUNNING, "is running on")
        daemon.stop()

    def test_foreign_proc(self):
        workload = self.crash()
        self.check_kept(workload, self.restore(wrap=self.elsewhere()), lib.FAILED, "/proc shows another PID namespace")
        self.check_restored(workload)

    def test_hidden(self):
        lib.need_program("setpriv")
        workload = self.crash()
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=ptraceable proc /proc && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no hidepid=ptraceable here")
        run = self.restore(wrap=[*hidden, "setpriv", "--inh-caps=-all", "--bounding-set=-sys_ptrace"])
        self.check_kept(workload, run, lib.FAILED, "hidepid=, and CAP_SYS_PTRACE is missing")
        self.assertEqual(self.restore(wrap=hidden).returncode, 0)
        self.assertEqual(workload.masks(), {self.full})


class AfterTheStop(Crashed):
    """What the unit does when the service has ended, in whatever way."""

    def stop_post(self):
        unit = (lib.SOURCE / "units/numaplaced.service.in").read_text(encoding="utf-8")
        command = re.search(r"^ExecStopPost=@sbindir@/numaplaced (.*)$", unit, re.MULTILINE)[1]
        return self.restore(*shlex.split(command))

    def check_quiet(self, run):
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_crash(self):
        workload = self.crash()
        run = self.stop_post()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"put back {self.n} threads", run.stderr)
        self.assertEqual(workload.masks(), {self.full})
        self.check_quiet(self.stop_post())

    def test_crash_of_one_that_would_have_kept(self):
        self.config.write_text("[Daemon]\nKeepOnStop=yes\nSlowTickSec=200ms\nMaxCPU=50%\n", encoding="ascii")
        workload = self.crash()
        self.assertEqual(self.stop_post().returncode, 0)
        self.assertEqual(workload.masks(), {self.full})

    def test_kept(self):
        workload = self.keep()
        self.check_quiet(self.stop_post())
        self.assertEqual(workload.masks(), self.home)

    def test_another_daemon(self):
        daemon = self.daemon().ready()
        workload = self.place(daemon)
        self.check_quiet(self.stop_post())
        self.assertEqual(workload.masks(), self.home)
        daemon.stop()

    def test_nothing_to_do(self):
        self.check_quiet(self.stop_post())
        self.assertFalse(self.runtime.exists())
        self.daemon().ready().stop()
        self.check_quiet(self.stop_post())


class PutAside(Crashed):
    """A daemon that is killed at each system call with which it puts a damaged journal aside."""

    CALLS = ("unlinkat", "linkat", "renameat", "fchmod", "ftruncate", "write")

    def setUp(self):
        lib.need_program("strace")
        super().setUp()
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("strace does not work here")

    def killed(self, call, n):
        """Returns whether there was an n-th call at which to kill."""
        run = self.restore(wrap=["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}",
                                 "-E", "ASAN_OPTIONS=detect_leaks=0"])
        return run.returncode not in (0, lib.JOURNAL)

    def test_next_one_goes_on(self):
        workload = self.crash()
        journal = self.journal
        damaged = journal.read_bytes() + b"garbage\n"
        home = {tid: os.sched_getaffinity(tid) for tid in lib.affinity(workload.pid)}
        n_killed = 0
        for call in self.CALLS:
            n = 1
            while True:
                journal.unlink()
                journal.write_bytes(damaged)
                journal.chmod(0o600)
                for tid, mask in home.items():
                    os.sched_setaffinity(tid, mask)
                if not self.killed(call, n):
                    break
                with self.subTest(call=call, n=n):
                    run = self.restore()
                    self.assertIn(run.returncode, (0, lib.JOURNAL), run.stderr)
                    self.assertNotIn("names", run.stderr)
                    self.assertEqual(workload.masks(), {self.full}, run.stderr)
                    self.assertEqual((self.runtime / f"{self.journal.name}.corrupt").read_bytes(), damaged)
                    self.assertEqual(self.restore().returncode, 0)
                n += 1
                n_killed += 1
        self.assertGreater(n_killed, 4)


class Host(lib.DaemonTest):
    """One daemon places on a host, whatever its runtime directory. The lock is in /run, so all of this is in a /run
    of its own."""

    def setUp(self):
        lib.need_root()
        lib.need_program("nsenter")
        super().setUp()
        self.write_policy()
        script = "mount -t tmpfs none /run && echo mounted && exec cat"
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation=private", "sh", "-c", script], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.holder.communicate)
        if self.holder.stdout.readline() != b"mounted\n":
            self.skipTest("no private mounts here")
        self.inside = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt"]

    def here(self, name, *args, rehearse=False):
        return self.daemon(*args, runtime=self.directory / name, rehearse=rehearse, wrap=self.inside)

    def test_second_one_elsewhere(self):
        first = self.here("one").ready()
        log = self.here("two").fails(lib.RUNNING, f"(pid {first.process.pid}, on {self.directory}/one)")
        self.assertEqual(log.count("\n"), 1, log)
        first.ctl("status")
        first.kill()
        third = self.here("two").ready()
        self.here("one").fails(lib.RUNNING, f"(pid {third.process.pid}, on {self.directory}/two)")
        third.stop()
        self.here("one").ready().stop()

    def test_who_changes_nothing_may_watch(self):
        first = self.here("one").ready()
        watching = self.here("two", "--dry-run").ready()
        self.config.write_text("[Daemon]\nDryRun=yes\n", encoding="ascii")
        configured = self.here("three").ready()
        for daemon in (configured, watching, first):
            daemon.stop()

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs two CPUs on one node")
    def test_killed_elsewhere(self):
        """The next daemon of the host puts back what it finds in the directory of the last one."""
        idle = self.spinner("--asleep", "--threads=3")
        first = self.daemon("--system-bus=no", runtime=pathlib.Path("/run/numaplace"), wrap=self.inside)
        self.wait_home(first, idle)
        first.kill()
        self.assertNotIn(self.full, idle.masks())
        second = self.here("two").ready()
        self.assertEqual(idle.masks(), {self.full}, second.log())
        self.assertTrue(second.says("an earlier daemon had placed"))
        second.stop()

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs two CPUs on one node")
    def test_killed_elsewhere_and_watched(self):
        """What cannot be put back while another daemon is on that directory is put back at a later start."""
        idle = self.spinner("--asleep", "--threads=3")
        standard = {"runtime": pathlib.Path("/run/numaplace"), "wrap": self.inside}
        first = self.daemon("--system-bus=no", **standard)
        self.wait_home(first, idle)
        first.kill()
        watching = self.daemon("--system-bus=no", "--dry-run", **standard).ready()
        self.here("two").ready().stop()
        self.assertNotIn(self.full, idle.masks())
        watching.stop()
        third = self.here("three").ready()
        self.assertEqual(idle.masks(), {self.full}, third.log())
        third.stop()

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs two CPUs on one node")
    def test_killed_elsewhere_and_unreadable(self):
        """A start without descriptors for what another daemon has left does not forget it."""
        idle = self.spinner("--asleep", "--threads=3")
        first = self.daemon("--system-bus=no", runtime=pathlib.Path("/run/numaplace"), wrap=self.inside)
        self.wait_home(first, idle)
        first.kill()
        starved = 0
        for n in range(7, 16):
            second = self.daemon("--system-bus=no", runtime=self.directory / "two", rehearse=False, wrap=self.inside,
                                 preexec_fn=lambda n=n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            second.process.wait(lib.DEADLINE_SEC)
            self.assertNotEqual(second.process.returncode, 0, second.log())
            starved += " /run/numaplace" in second.log() and "Too many open files" in second.log()
            if self.full in idle.masks():
                break
        self.assertGreater(starved, 0)
        third = self.here("three").ready()
        self.assertEqual(idle.masks(), {self.full}, third.log())
        third.stop()

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs two CPUs on one node")
    def test_kept_elsewhere(self):
        """As on one directory, placements stay until a daemon starts that places."""
        self.here("two").ready().stop() # so that it has a journal
        settings = self.config.read_text(encoding="ascii")
        idle = self.spinner("--asleep", "--threads=3")
        self.config.write_text(settings + "KeepOnStop=yes\n", encoding="ascii")
        first = self.daemon("--system-bus=no", runtime=pathlib.Path("/run/numaplace"), wrap=self.inside)
        self.wait_home(first, idle)
        first.stop()
        self.config.write_text("[Daemon]\nDryRun=yes\n", encoding="ascii")
        self.here("two").ready().stop()
        self.assertNotIn(self.full, idle.masks())
        self.config.write_text(settings, encoding="ascii")
        second = self.here("two").ready()
        self.assertEqual(idle.masks(), {self.full}, second.log())
        second.stop()

    def test_restore_elsewhere(self):
        self.here("one").ready().kill()
        second = self.here("two").ready()

        def restore(*args):
            return subprocess.run([*self.inside, lib.DAEMON, f"--runtime-dir={self.directory}/one", *args], capture_output=True,
                                  text=True, timeout=4 * lib.DEADLINE_SEC, check=False)

        run = restore("--restore")
        self.assertEqual(run.returncode, lib.RUNNING, run.stderr)
        self.assertIn(f"(pid {second.process.pid}, on {self.directory}/two)", run.stderr)
        run = restore("--restore=crash")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        second.stop()
        self.assertEqual(restore("--restore").returncode, 0)

    @unittest.skipUnless(lib.one_node() and len(lib.own_cpus()) >= 2, "needs two CPUs on one node")
    def test_rehearsals(self):
        """Several run side by side, also with a placing daemon; but one on the standard directory is a daemon like
        any other."""
        real = self.here("one").ready()
        beside = [self.here(name, rehearse=True).ready() for name in ("two", "three")]
        for daemon in (*beside, real):
            daemon.stop()
        standard = pathlib.Path("/run/numaplace")
        daemon = self.daemon("--system-bus=no", runtime=standard, wrap=self.inside)
        bus = pathlib.Path(f"/proc/{daemon.process.pid}/root{standard}/bus")
        lib.wait_until("the daemon to be ready", lambda: daemon.says(": ready (") or daemon.process.poll() is not None)
        self.assertTrue(bus.exists(), daemon.log())
        self.here("one").fails(lib.RUNNING, f"(pid {daemon.process.pid}, on {standard})")
        daemon.stop()


if __name__ == "__main__":
    lib.main()
