#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes whose command line and environment cannot be read: they are left alone and named, and others are placed."""

import contextlib
import os
import shutil
import signal
import subprocess

import lib

HANG = os.environ["NUMAPLACE_HANG"]
USER, OTHER, VICTIM = 65534, 65533, 65532
USER_MAX = 4  # ASIDE_USER_MAX of probe/tasks/aside.h


class Hang(lib.PlacingTest):
    def setUp(self):
        super().setUp()
        # A sanitized build looks for leaks after stopping all threads, and these cannot be stopped.
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"

    def hang(self, uid, *before):
        """The PID of a process of that user that hangs its readers, and the process to end to release them."""
        server = subprocess.Popen([*before, HANG, str(uid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.let_go, server)
        line = server.stdout.readline()
        if not line.startswith("ready "):
            server.wait(lib.DEADLINE_SEC)
            self.assertEqual(server.returncode, 77, server.stderr.read())
            self.skipTest("cannot hang a reader: " + server.stderr.read().strip())
        return int(line.split()[1]), server

    def victim(self):
        """A workload of an uninvolved user; the program is where that user may read it."""
        program = self.directory / "spinner"
        if not program.exists():
            shutil.copy(lib.SPINNER, program)
        return lib.Workload(self, [str(program), "--asleep"], self.mark, user=VICTIM)

    @staticmethod
    def let_go(server):
        if server.poll() is None:
            server.send_signal(signal.SIGKILL)
        server.wait()
        server.stdout.close()
        server.stderr.close()

    def verdict(self, daemon, pid):
        return daemon.ctl("explain", str(pid))["verdict"]

    @staticmethod
    def said(daemon, hanging):
        return sum(daemon.says(f"hang[{pid}] of user ") for pid, _ in hanging)

    @staticmethod
    def readers_of(daemon, hanging):
        """The files of these processes that the daemon has open."""
        paths = tuple(f"/proc/{pid}" for pid, _ in hanging)
        found = []
        for fd in os.listdir(f"/proc/{daemon.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}"))
        return [path for path in found if path.startswith(paths)]

    def test_others_are_placed(self):
        hanging = [self.hang(USER) for _ in range(USER_MAX + 2)] + [self.hang(OTHER)]
        daemon = self.daemon().ready()
        workload = self.victim()
        self.wait_home(daemon, workload)

        def verdicts():
            found = [self.verdict(daemon, pid) for pid, _ in hanging]
            return found if "awaited" not in found else None

        found = lib.wait_until("the readers to be given up", verdicts)
        self.assertEqual(found[-1], "hangs")
        self.assertEqual(found.count("hangs"), USER_MAX + 1)
        self.assertEqual(found.count("crowded"), 2)
        # Others on this host may hang as well.
        self.assertGreaterEqual(daemon.ctl("status")["reads_hanging"], USER_MAX + 1)
        lib.wait_until("all of them to be counted", lambda: daemon.ctl("status")["unreadable"] >= len(hanging))
        lib.wait_until("the log to say it", lambda: self.said(daemon, hanging) == USER_MAX + 1)

        # A new process is placed, too, and an existing one stays.
        self.wait_home(daemon, self.victim())
        self.assertEqual(self.verdict(daemon, workload.pid), "managed")

        # They are released: nothing of it remains, and nothing is reported twice.
        for _, server in hanging:
            self.let_go(server)
        lib.wait_until("the readers to come back", lambda: not self.readers_of(daemon, hanging))
        daemon.stop()
        self.assertEqual(self.said(daemon, hanging), USER_MAX + 1)

    def test_released_is_not_forgotten(self):
        """Even while it cannot be read: otherwise it would be placed again afterwards."""
        daemon = self.daemon().ready()
        workload = self.victim()
        self.wait_home(daemon, workload)
        crowd = [self.hang(VICTIM) for _ in range(USER_MAX + 1)]
        lib.wait_until("the readers to be given up", lambda: self.verdict(daemon, crowd[-1][0]) in ("hangs", "crowded"))
        daemon.ctl_run("release", str(workload.pid)).check_returncode()
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("some more ticks", lambda: daemon.ctl("status")["tick"] > tick + 5)
        self.assertEqual(workload.masks(), {self.full})
        daemon.ctl_run("resume", str(workload.pid)).check_returncode()
        for _, other in crowd:
            self.let_go(other)
        self.wait_home(daemon, workload)
        daemon.stop()

    def test_assigned_by_name(self):
        """The daemon does not wait for what it does not need."""
        daemon = self.daemon().ready()
        pid, server = self.hang(USER, lib.CTL, f"--socket={daemon.runtime}/bus", "run", "--policy=50-test", "--")
        home = daemon.ctl("show", "50-test")["home"]
        self.assertNotEqual(home, self.full)
        # Both were present in discoveries after it hung.
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("some more ticks", lambda: daemon.ctl("status")["tick"] > tick + 5)
        for process in (server.pid, pid):
            self.assertEqual((set(lib.affinity(process).values()), self.verdict(daemon, process)), ({home}, "managed"))
        self.assertEqual(daemon.says(f"hang[{pid}] of user "), 0)
        daemon.ctl_run("release", str(pid)).check_returncode()
        lib.wait_until("its full mask", lambda: set(lib.affinity(pid).values()) == {self.full})
        daemon.ctl_run("resume", str(pid)).check_returncode()
        lib.wait_until("its home", lambda: set(lib.affinity(pid).values()) == {home})
        daemon.stop()
        self.assertEqual(set(lib.affinity(pid).values()), {self.full})

    def test_stop_while_reads_hang(self):
        hanging = [self.hang(USER)]
        daemon = self.daemon().ready()
        workload = self.victim()
        self.wait_home(daemon, workload)
        lib.wait_until("a reader to hang", lambda: self.readers_of(daemon, hanging))
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})


if __name__ == "__main__":
    lib.main()
