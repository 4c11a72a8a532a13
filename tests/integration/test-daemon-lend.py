#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lent CPUs are returned as well: on stop, after a crash, on a pause, and where the home is a cpuset.

Only idle CPUs are lent, so this is for machines on which nothing else runs: the lab's guests
(tests/vm/cases/lend.case).
"""

import signal

import fencelib
import lib


class Lend(lib.PlacingTest):
    def lent(self, daemon):
        """Starts more busy threads than the home has CPUs, until one of them has a CPU outside it."""
        busy = self.spinner(f"--threads={len(lib.own_cpus())}")
        self.wait_home(daemon, busy)
        self.wait_lent(daemon)
        return busy

    def test_stop_restores(self):
        daemon = self.daemon().ready()
        busy = self.lent(daemon)
        log = daemon.stop()
        self.assertEqual(busy.masks(), {self.full}, log)

    def test_kill_and_restart_restores(self):
        daemon = self.daemon().ready()
        busy = self.lent(daemon)
        daemon.kill()
        # No policy: the next daemon only restores.
        (self.policies / "50-test.policy").unlink()
        daemon = self.daemon().ready()
        self.assertEqual(busy.masks(), {self.full}, daemon.log())
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})

    def test_pause_keeps_the_home_and_recalls(self):
        daemon = self.daemon().ready()
        busy = self.lent(daemon)
        daemon.ctl_run("pause", "50-test").check_returncode()
        lib.wait_until("the lease to be recalled", lambda: daemon.ctl("status")["leases"] == 0)
        self.assertEqual(len(busy.masks()), 1)
        self.assertNotIn(self.full, busy.masks())
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})


class Fence(fencelib.FenceTest):
    def test_down_for_lends(self):
        """The cpuset is as before while CPUs are borrowed, and masks alone keep the others at home. Afterwards it is
        confined again."""
        self.policy()
        work = self.inside("--threads=3")
        daemon = self.daemon().ready()
        self.wait_lent(daemon)
        self.wait_means(daemon, work, "affinity", "borrows")
        self.assertEqual(self.cpus(), self.before)
        home = daemon.ctl("explain", str(work.pid))["home"]
        self.assertIn(home, work.masks())
        work.process.send_signal(signal.SIGUSR1)  # it falls asleep
        self.wait_up(daemon, work)
        daemon.stop()
        self.assertEqual(self.cpus(), self.before)


if __name__ == "__main__":
    lib.main()
