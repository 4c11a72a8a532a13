#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Journals that cannot be trusted, full file systems, users other than root."""

import os
import pathlib
import resource
import shlex
import subprocess
import time

import lib


class Journal(lib.PlacingTest):
    """What the next start makes of the journal of a killed daemon."""

    def crash(self, threads=5):
        daemon = self.daemon().ready()
        workload = self.spinner("--asleep", f"--threads={threads}")
        lib.wait_until("the threads", lambda: len(lib.affinity(workload.pid)) == threads + 1)
        self.wait_home(daemon, workload)
        daemon.kill()
        (self.policies / "50-test.policy").unlink()  # the next daemon only restores
        return workload

    def test_damaged(self):
        workload = self.crash()
        lines = self.journal.read_bytes().splitlines(keepends=True)
        self.assertGreater(len(lines), 1)
        self.journal.write_bytes(b"".join([*lines, b"\x00\xff garbage\n", b"more garbage\n"]))
        self.daemon().fails(lib.JOURNAL, f"{self.journal.name}:")
        # Everything readable was restored, and the next start is a clean one.
        self.assertEqual(workload.masks(), {self.full})
        self.assertTrue((self.runtime / f"{self.journal.name}.corrupt").exists())
        self.daemon().ready().stop()

    def test_cut_short(self):
        daemon = self.daemon().ready()
        workloads = [self.spinner("--asleep", "--threads=3") for _ in range(4)]
        for workload in workloads:
            self.wait_home(daemon, workload)
        daemon.kill()
        (self.policies / "50-test.policy").unlink()
        self.journal.write_bytes(self.journal.read_bytes()[:-3])
        self.daemon().ready().stop()
        # A crash that cuts a line short happens before the change that the line announces. Here the change was made,
        # so the one process of the lost line is taken for one that somebody else pinned.
        left = [workload for workload in workloads if workload.masks() != {self.full}]
        self.assertLessEqual(len(left), 1)

    def test_not_a_journal(self):
        for content in (b"", b"\0" * 4096, b"\x7fELF" * 1000, b"x" * 10_000_000):
            with self.subTest(content=content[:4]):
                self.runtime.mkdir(exist_ok=True)
                self.journal.write_bytes(content)
                self.journal.chmod(0o600)
                daemon = self.daemon()
                lib.wait_until("an answer", lambda daemon=daemon: daemon.process.poll() is not None or
                               daemon.says(": ready ("))
                if daemon.process.poll() is None:
                    self.assertEqual(content, b"")  # an empty file is an empty journal
                    daemon.stop()
                else:
                    daemon.fails(lib.JOURNAL, str(self.journal))
                self.daemon().ready().stop()  # it was put aside

    def test_of_somebody_else(self):
        workload = self.crash()
        masks = workload.masks()
        os.chown(self.journal, 65534, 65534)
        log = self.daemon().fails(lib.JOURNAL, str(self.journal))
        self.assertEqual(log.count("\n"), 1, log)
        self.assertEqual(workload.masks(), masks)  # nothing in it was trusted
        os.chown(self.journal, 0, 0)
        self.daemon().ready().stop()
        self.assertEqual(workload.masks(), {self.full})

    def test_writable_by_others(self):
        workload = self.crash()
        masks = workload.masks()
        self.journal.chmod(0o666)
        self.daemon().fails(lib.JOURNAL, str(self.journal))
        self.assertEqual(workload.masks(), masks)
        self.journal.chmod(0o600)
        self.daemon().ready().stop()
        self.assertEqual(workload.masks(), {self.full})

    def test_a_link_or_a_directory(self):
        self.runtime.mkdir()
        target = self.directory / "target"
        target.write_text("")
        self.journal.symlink_to(target)
        self.daemon().process.wait(lib.DEADLINE_SEC)
        self.assertEqual(target.read_text(), "")
        self.journal.unlink()
        self.journal.mkdir()
        daemon = self.daemon()
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertNotEqual(daemon.process.returncode, 0)
        self.assertIn(str(self.journal), daemon.log())

    def test_pids_that_belong_to_others_now(self):
        workload = self.crash()
        workload.end()
        innocent = self.spinner("--asleep", preexec_fn=lambda: os.sched_setaffinity(0, {lib.own_cpus()[0]}))
        mask = innocent.masks()
        self.journal.write_text(self.journal.read_text().replace(str(workload.pid), str(innocent.pid)))
        daemon = self.daemon()
        lib.wait_until("an answer", lambda: daemon.process.poll() is not None or daemon.says(": ready ("))
        self.assertEqual(innocent.masks(), mask)  # its start time differs


class Full(lib.DaemonTest):
    """A full /run, in a mount namespace of its own."""

    def setUp(self):
        lib.need_placing()
        lib.need_program("unshare")
        super().setUp()
        self.write_policy()
        self.mount = self.directory / "full"
        self.mount.mkdir()
        self.runtime = self.mount / "run"
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(self.mount)],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest("no private mounts here")

    def wrap(self, prepare=":"):
        script = (f"mount -t tmpfs -o size=64k none {shlex.quote(str(self.mount))} && {prepare} && exec \"$@\"")
        return ["unshare", "-m", "--propagation=private", "sh", "-c", script, "sh"]

    def test_full_before_the_start(self):
        mount = shlex.quote(str(self.mount))
        daemon = self.daemon(wrap=self.wrap(f"{{ cat /dev/zero > {mount}/fill 2>/dev/null; :; }}"))
        log = daemon.fails(lib.FAILED, str(self.runtime))
        self.assertIn("No space left on device", log)
        self.assertEqual(log.count("\n"), 1, log)

    def test_full_while_running(self):
        daemon = self.daemon(wrap=self.wrap()).ready()
        inside = pathlib.Path(f"/proc/{daemon.process.pid}/root{self.mount}")
        with open(inside / "fill", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"\0" * 4096)
            except OSError:
                pass
        # The last page of the journal has room for some thirty processes.
        workloads = [self.spinner("--asleep") for _ in range(80)]
        lib.wait_until("the journal to be full", lambda: daemon.says("unjournalled"))
        masks = set().union(*(workload.masks() for workload in workloads))
        self.assertIn(self.full, masks)  # what cannot be recorded is not done
        self.assertIsNone(daemon.process.poll())
        (inside / "fill").unlink()
        for workload in workloads:  # and placement continues when there is room again
            self.wait_home(daemon, workload)
        daemon.stop()
        self.assertEqual(set().union(*(workload.masks() for workload in workloads)), {self.full})

    def test_limited_while_running(self):
        """A limit of file sizes, which makes the kernel send a signal that would kill the daemon."""
        self.runtime = self.directory / "run"
        journal = self.runtime / lib.journal_name()
        daemon = self.daemon().ready()
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (journal.stat().st_size + 300, resource.RLIM_INFINITY))
        workloads = [self.spinner("--asleep") for _ in range(5)]
        lib.wait_until("the journal to be full", lambda: daemon.process.poll() is not None or "unjournalled" in str(daemon.ctl("moves")))
        self.assertIsNone(daemon.process.poll())
        self.assertIn(self.full, set().union(*(workload.masks() for workload in workloads)))
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for workload in workloads:
            self.wait_home(daemon, workload)
        daemon.stop()
        self.assertEqual(set().union(*(workload.masks() for workload in workloads)), {self.full})

    def check_forgotten(self, end):
        """A user who sets what was the daemon's mask, after that was restored, keeps it."""
        self.runtime = self.directory / "run"
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        home = os.sched_getaffinity(workload.pid)
        end(daemon)
        self.assertEqual(workload.masks(), {self.full})
        for thread in lib.affinity(workload.pid):
            os.sched_setaffinity(thread, home)
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(workload.masks(), {self.list_of(home)})

    def test_full_at_the_stop(self):
        def end(daemon):
            resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            daemon.stop()

        self.check_forgotten(end)

    def test_full_after_a_crash(self):
        def end(daemon):
            daemon.kill()
            self.daemon("--restore", preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))).process.wait(lib.DEADLINE_SEC)

        self.check_forgotten(end)

    def test_read_only_after_a_crash(self):
        """It is restored, and reported as still being in the journal."""
        self.runtime = self.directory / "run"
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        daemon.kill()
        directory = shlex.quote(str(self.runtime))
        script = f"mount --bind {directory} {directory} && mount -o remount,bind,ro {directory} && exec \"$@\""
        restore = self.daemon("--restore", wrap=["unshare", "-m", "--propagation=private", "sh", "-c", script, "sh"])
        restore.fails(lib.NOT_RESTORED, "put back 4 threads", "noted as put back (Read-only file system)")
        self.assertEqual(workload.masks(), {self.full})
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(workload.masks(), {self.full})

    def test_read_only(self):
        mount = shlex.quote(str(self.mount))
        daemon = self.daemon(wrap=self.wrap(f"mount -o remount,ro none {mount}"))
        log = daemon.fails(lib.FAILED, str(self.runtime), "Read-only file system")
        self.assertEqual(log.count("\n"), 1, log)


class FewDescriptors(lib.DaemonTest):
    def setUp(self):
        lib.need_placing()
        super().setUp()
        self.write_policy()

    def test_many_threads(self):
        """Stat files are not kept open if that leaves too few descriptors for anything else."""
        workload = self.spinner("--asleep", "--threads=150")
        daemon = self.daemon(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (44, 44))).ready()
        self.wait_home(daemon, workload)
        self.assertEqual(daemon.ctl("status")["mode"], "active")
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})

    def test_none_left(self):
        """The failure is reported once, and reading continues when descriptors are available again."""
        daemon = self.daemon().ready()
        limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        for _ in range(2):
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
            workload = self.spinner("--asleep", "--threads=3")
            lib.wait_until("it to be told", lambda: daemon.says("too few descriptors") or daemon.process.poll() is not None)
            self.assertIsNone(daemon.process.poll(), daemon.log())
            resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, limits)
            self.wait_home(daemon, workload)
        self.assertEqual(daemon.log().count("too few descriptors"), 1)
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})


class NotPermitted(lib.DaemonTest):
    """Another user's daemon only observes, and says so once."""

    def test_observes(self):
        lib.need_root()
        lib.need_program("setpriv")
        if subprocess.run(["setpriv", "--reuid=65534", lib.DAEMON, "--version"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("the build directory cannot be entered by other users")
        self.write_policy()
        # Environments of others are unreadable, too.
        (self.policies / "40-name.policy").write_text(
            f"[Match]\nComm=np{self.mark[:8]}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n")
        self.runtime.mkdir()
        os.chown(self.runtime, 65534, 65534)
        workload = self.spinner("--asleep", f"--name=np{self.mark[:8]}")
        daemon = self.daemon(wrap=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]).ready()
        self.assertEqual(daemon.ctl("status")["mode"], "observe")
        lib.wait_until("a refusal", lambda: daemon.ctl("status")["refused"]["observe"] > 0)
        explanation = daemon.ctl("explain", str(workload.pid))
        self.assertEqual((explanation["managed"], explanation["verdict"]), (True, "observe"))
        self.assertEqual(workload.masks(), {self.full})
        log = daemon.stop()
        self.assertEqual(log.count("observing only"), 1, log)
        self.assertFalse(self.journal.exists())

    def test_the_standard_directory_is_out_of_reach(self):
        lib.need_root()
        lib.need_program("setpriv")
        if subprocess.run(["setpriv", "--reuid=65534", lib.DAEMON, "--version"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("the build directory cannot be entered by other users")
        daemon = self.daemon(wrap=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        log = daemon.fails(lib.FAILED, str(self.runtime), "Permission denied")
        self.assertLessEqual(log.count("\n"), 2, log)

    def test_plans_once_without_rights(self):
        lib.need_root()
        lib.need_program("setpriv")
        if subprocess.run(["setpriv", "--reuid=65534", lib.DAEMON, "--version"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("the build directory cannot be entered by other users")
        daemon = self.daemon("--once", "--dry-run",
                             wrap=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertEqual(daemon.process.returncode, 0, daemon.log())
        self.assertIn("plan tick=", daemon.log())

    def test_plans_once_for_who_is_old(self):
        """MinAgeSec= is the age of the process, however short a time the daemon has known it."""
        lib.need_placing()
        self.write_policy(Workload={"MinAgeSec": "1s"})
        workload = self.spinner()
        stat = pathlib.Path(f"/proc/{workload.pid}/stat").read_text(encoding="utf-8")
        started = int(stat.rpartition(")")[2].split()[19])
        lib.wait_until("it to be old enough", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) >=
                       started / os.sysconf("SC_CLK_TCK") + 1)
        daemon = self.daemon("--once", "--dry-run")
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertRegex(daemon.log(), f"set-home rule=fixed-home P[0-9]+ pid={workload.pid} ")


class Descriptors(lib.DaemonTest):
    """A limit that leaves few descriptors besides those of the threads it follows."""

    def test_stop_puts_back(self):
        lib.need_placing()
        self.write_policy()
        workload = self.spinner("--threads=150", "--duty-usec=1000", "--period-usec=200000")
        daemon = self.daemon(wrap=["prlimit", "--nofile=64:64"]).ready()
        self.wait_home(daemon, workload)
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})


class Output(lib.DaemonTest):
    """Standard output that cannot be written to."""

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            for args in (["--help"], ["--version"]):
                done = subprocess.run([lib.DAEMON, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(done.returncode, lib.FAILED)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)
            argv = self.daemon("--once", "--dry-run").argv
            done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, lib.FAILED)
        self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def test_closed(self):
        """Log output then goes nowhere, and not into the first file that is opened."""
        daemon = self.daemon("--dry-run", wrap=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
        lib.wait_until("its socket", lambda: (self.runtime / "bus").exists() or daemon.process.poll() is not None)
        self.assertIsNone(daemon.process.poll())
        self.assertEqual([os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in range(3)], ["/dev/null"] * 3)


class DryRun(lib.DaemonTest):
    """I11: observing makes no changing system call."""

    # System calls that change where tasks run, where memory is, or file names. Not set_mempolicy, which affects only
    # the caller: libnuma tries one when it is loaded, and reverts it.
    CHANGING = ("sched_setaffinity", "sched_setattr", "sched_setscheduler", "setpriority", "ioprio_set", "move_pages",
                "migrate_pages", "mbind", "set_mempolicy_home_node", "process_madvise", "ptrace",
                "kill", "tgkill", "tkill", "pidfd_send_signal", "cgroup", "mount", "umount2", "rename", "renameat",
                "renameat2", "process_vm_writev")

    def setUp(self):
        lib.need_program("strace")
        super().setUp()
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("strace does not work here")
        self.write_policy()
        self.trace = self.directory / "trace"
        # A sanitized build looks for leaks with ptrace, which strace already uses.
        self.env = {"ASAN_OPTIONS": "detect_leaks=0"}

    def calls(self):
        """{name: number} of a strace -c table."""
        calls = {}
        for line in self.trace.read_text().splitlines():
            words = line.split()
            if len(words) >= 5 and words[0][0].isdigit() and words[-1] != "total":
                calls[words[-1]] = int(words[3])
        return calls

    def test_daemon(self):
        workload = self.spinner(f"--threads={len(lib.own_cpus())}")
        daemon = self.daemon("--dry-run", env=self.env, wrap=["strace", "-f", "-c", "-o", str(self.trace)]).ready()
        lib.wait_until("a decision", lambda: any(m["outcome"] == "skipped" for m in daemon.ctl("moves")))
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("some ticks", lambda: daemon.ctl("status")["tick"] > tick + 5)
        pid = daemon.ctl("status")["pid"]
        os.kill(pid, 15)
        daemon.process.wait(lib.DEADLINE_SEC)
        calls = self.calls()
        self.assertIn("sched_getaffinity", calls)  # the table was parsed correctly
        self.assertEqual([name for name in self.CHANGING if name in calls], [])
        self.assertEqual(workload.masks(), {self.full})
        self.assertFalse(self.journal.exists())

    def plan_once(self):
        """Whether it planned something. A process that is held up, by its tracer or by others, may be put off until
        the daemon gives up."""
        daemon = self.daemon("--dry-run", "--once", env=self.env, wrap=[
            "strace", "-f", "-o", str(self.trace), "-e",
            "trace=openat,open,creat,mkdir,mkdirat,unlink,unlinkat,link,symlink,chmod,fchmod,chown,bind,socket"])
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertEqual(daemon.process.returncode, 0, daemon.log())
        return "set-home" in daemon.log()

    def test_once_writes_nothing(self):
        self.spinner("--asleep")
        lib.wait_until("a plan", self.plan_once)
        trace = self.trace.read_text()
        self.assertIn("openat(", trace)
        for line in trace.splitlines():
            if "openat(" in line or "open(" in line:
                # Writing to a pressure trigger arms it; the trigger ends with its descriptor.
                self.assertTrue("O_RDONLY" in line or "O_PATH" in line or "pressure" in line, line)
            else:
                self.assertFalse(any(f" {name}" in line for name in ("mkdir", "unlink", "bind(", "chmod", "chown",
                                                                     "creat(", "link(", "symlink(")), line)
        self.assertFalse(self.runtime.exists())

    def test_outcomes_are_shown(self):
        workload = self.spinner("--asleep")
        daemon = self.daemon("--dry-run").ready()
        move = lib.wait_until("a decision", lambda: [m for m in daemon.ctl("moves") if m["pid"] == workload.pid])[0]
        self.assertEqual((move["kind"], move["outcome"]), ("set-home", "skipped"))
        # The same wish in every slow tick is one entry with a count.
        lib.wait_until("it to be counted", lambda: [m for m in daemon.ctl("moves") if m["pid"] == workload.pid and
                                                    m["count"] > 2])
        self.assertEqual(workload.masks(), {self.full})
        daemon.stop()


class Captured(lib.DaemonTest):
    """A captured tree in place of this machine."""

    def test_plan_of_another_machine(self):
        (self.policies / "50-all.policy").write_text(
            "[Match]\nComm=*\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n")
        # Those of whole machines.
        trees = sorted(stat.parents[1] for stat in (lib.SOURCE / "tests/fixtures/probe").glob("*/proc/stat"))
        self.assertGreater(len(trees), 2)
        for tree in trees:
            with self.subTest(tree=tree.name):
                daemon = self.daemon(f"--root={tree}", "--synthetic=numa:2 core:2 pu:1", "--once", rehearse=False)
                daemon.process.wait(lib.DEADLINE_SEC)
                log = daemon.log()
                self.assertEqual(daemon.process.returncode, 0, log)
                self.assertIn("plan tick=", log)
        daemon = self.daemon(f"--root={lib.SOURCE / 'tests/fixtures/probe/debian12'}",
                             "--synthetic=numa:2 core:2 pu:1", "--once", rehearse=False)
        daemon.process.wait(lib.DEADLINE_SEC)
        self.assertIn("set-home rule=fixed-home P3 pid=812 ", daemon.log())
        self.assertIn("refused reason=foreign-affinity P3 pid=900 tid=902 ", daemon.log())

    def test_no_machine(self):
        log = self.daemon(f"--root={self.directory}", "--synthetic=numa:2 pu:1", rehearse=False).fails(lib.FAILED)
        self.assertIn(f"cannot read this machine: {self.directory}/proc: No such file", log)

    def test_served(self):
        tree = lib.SOURCE / "tests/fixtures/probe/debian12"
        daemon = self.daemon(f"--root={tree}", "--synthetic=numa:2 core:2 pu:1", rehearse=False).ready()
        status = daemon.ctl("status")
        self.assertEqual((status["mode"], status["origin"], status["nodes"], status["cpus"]),
                         ("dry-run", "synthetic", 2, 4))
        self.assertEqual(daemon.ctl("explain", "812")["comm"], "postgres")
        daemon.stop()


if __name__ == "__main__":
    lib.main()
