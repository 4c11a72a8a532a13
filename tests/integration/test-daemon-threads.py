#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process with more threads than one tick handles: it is placed, released, restored and lost halfway, slice by
slice.

Nothing here is timed: the tests assert how many threads a tick handles at most.
"""

import os
import signal

import lib

# ACT_SLICE_THREADS of act/act.h, and a few more.
SLICE = 2048
THREADS = SLICE + 200


class Threads(lib.DaemonTest):
    def setUp(self):
        lib.need_placing()
        super().setUp()
        self.config.write_text("[Daemon]\nSlowTickSec=200ms\nMaxCPU=100%\n", encoding="ascii")
        self.write_policy()
        self.workload = self.spinner("--asleep", "--threads", str(THREADS))
        lib.wait_until("the threads", lambda: len(self.tids()) == THREADS + 1 or not self.workload.alive())
        if not self.workload.alive():
            self.skipTest("cannot have so many threads")

    def tids(self):
        return [int(name) for name in os.listdir(f"/proc/{self.workload.pid}/task")]

    def n_full(self):
        """Threads that may use all CPUs. Uses the system call: the status files of so many take long to read."""
        return sum(os.sched_getaffinity(tid) == set(lib.own_cpus()) for tid in self.tids())

    def wait_placed(self, daemon):
        lib.wait_until("every thread to be at home", lambda: self.n_full() == 0)
        lib.wait_until("the daemon to know it", lambda: not daemon.ctl("status")["unfinished"])

    def test_slices(self):
        daemon = self.daemon().ready()
        self.wait_placed(daemon)
        status = daemon.ctl("status")
        self.assertGreaterEqual(status["outcomes"]["partly"] + status["outcomes"]["done"], 2)
        self.assertLessEqual(status["slice_threads_max"], SLICE)
        self.assertEqual(status["tasks"], THREADS + 1)
        journal = self.journal.read_text()
        self.assertEqual(journal.count("\nprocess "), 1)
        self.assertNotIn("\nthread ", journal)

        # One more is one more, and the others are not read again.
        done = status["outcomes"]["done"]
        self.assertIn("managed", daemon.ctl("explain", str(self.workload.pid))["verdict"])
        daemon.ctl("release", str(self.workload.pid))
        self.assertEqual(self.n_full(), THREADS + 1)
        after = daemon.ctl("status")
        self.assertGreater(after["outcomes"]["done"], done)
        self.assertLessEqual(after["slice_threads_max"], SLICE)
        self.assertEqual(daemon.ctl("explain", str(self.workload.pid))["verdict"], "released")
        daemon.ctl("resume", str(self.workload.pid))
        self.wait_placed(daemon)
        daemon.stop()
        self.assertEqual(self.n_full(), THREADS + 1)

    def test_workload_released(self):
        daemon = self.daemon().ready()
        self.wait_placed(daemon)
        daemon.ctl("release", "50-test")
        self.assertEqual(self.n_full(), THREADS + 1)
        self.assertLessEqual(daemon.ctl("status")["slice_threads_max"], SLICE)
        self.assertEqual(daemon.ctl("explain", str(self.workload.pid))["verdict"], "paused")
        daemon.stop()

    def test_stopped_and_killed_in_the_middle(self):
        """Some threads are at home and some are not: a stop restores the former, and after a crash the next start
        does."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how):
                daemon = self.daemon().ready()
                lib.wait_until("the first slice", lambda: self.n_full() <= THREADS)
                if how == signal.SIGTERM:
                    daemon.stop()
                else:
                    daemon.kill()
                    self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
                self.assertEqual(self.n_full(), THREADS + 1)


if __name__ == "__main__":
    lib.main()
