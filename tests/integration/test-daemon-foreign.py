#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user's pin is left alone, before and during management, and explain says so."""

import os
import pathlib
import subprocess

import lib


class Foreign(lib.PlacingTest):
    def explain(self, daemon, workload):
        return lib.wait_until("the process to be known",
                              lambda: (e := daemon.ctl("explain", str(workload.pid)))["managed"] and e)

    def test_pinned_before(self):
        cpus = lib.own_cpus()
        for chosen in ({cpus[1]}, set(cpus[1:])):
            with self.subTest(chosen=chosen):
                if len(chosen) == len(cpus):
                    continue
                pinned = self.spinner("--asleep", "--threads=3",
                                      preexec_fn=lambda chosen=chosen: os.sched_setaffinity(0, chosen))
                mask = self.list_of(chosen)
                daemon = self.daemon().ready()
                explanation = self.explain(daemon, pinned)
                self.ticks(daemon)
                self.assertEqual(pinned.masks(), {mask})
                self.assertIn(explanation["verdict"], ("foreign-affinity", "per-cpu"))
                self.assertEqual([m for m in daemon.ctl("moves") if m["pid"] == pinned.pid], [])
                daemon.stop()
                self.assertEqual(pinned.masks(), {mask})
                pinned.end()

    def test_one_thread_pinned_before(self):
        workload = self.spinner("--asleep", "--threads=3")
        lib.wait_until("the threads", lambda: len(lib.affinity(workload.pid)) == 4)
        pinned = max(lib.affinity(workload.pid))
        os.sched_setaffinity(pinned, {lib.own_cpus()[-1]})
        mask = self.list_of([lib.own_cpus()[-1]])
        daemon = self.daemon().ready()
        home = lib.wait_until("the others to be placed",
                              lambda: {m for t, m in lib.affinity(workload.pid).items() if t != pinned} -
                              {self.full})
        self.ticks(daemon)
        self.assertEqual(lib.affinity(workload.pid)[pinned], mask)
        self.assertEqual(len(home), 1)
        explanation = self.explain(daemon, workload)
        hands = {t["tid"]: t["hands"] for t in explanation["tasks"]}
        self.assertIn(hands.pop(pinned), ("foreign", "per-cpu"))
        self.assertEqual(set(hands.values()), {"free"})
        daemon.stop()
        masks = lib.affinity(workload.pid)
        self.assertEqual(masks.pop(pinned), mask)
        self.assertEqual(set(masks.values()), {self.full})

    def test_repinned_while_managed(self):
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        home = self.wait_home(daemon, workload)
        chosen = {lib.own_cpus()[-1]}  # not in the home, which is on node 0
        mask = self.list_of(chosen)
        self.assertNotIn(mask, home)
        for tid in lib.affinity(workload.pid):
            os.sched_setaffinity(tid, chosen)
        lib.wait_until("the daemon to yield",
                       lambda: daemon.ctl("explain", str(workload.pid))["verdict"] == "repinned")
        self.ticks(daemon)
        self.assertEqual(workload.masks(), {mask})
        daemon.stop()
        self.assertEqual(workload.masks(), {mask})

    def test_one_thread_repinned_while_managed(self):
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        lib.wait_until("the threads", lambda: len(lib.affinity(workload.pid)) == 4)
        pinned = max(lib.affinity(workload.pid))
        os.sched_setaffinity(pinned, {lib.own_cpus()[-1]})
        mask = self.list_of([lib.own_cpus()[-1]])
        lib.wait_until("the others to be put back",
                       lambda: {m for t, m in lib.affinity(workload.pid).items() if t != pinned} == {self.full})
        self.ticks(daemon)
        self.assertEqual(lib.affinity(workload.pid)[pinned], mask)
        self.assertEqual(daemon.ctl("explain", str(workload.pid))["verdict"], "repinned")
        daemon.stop()
        self.assertEqual(lib.affinity(workload.pid)[pinned], mask)

    def test_repinned_survives_making_everything_anew(self):
        lib.need_masks_kept("a mask of all CPUs is taken for the kernel's doing")
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        for tid in lib.affinity(workload.pid):
            os.sched_setaffinity(tid, lib.own_cpus())  # wide again, but set by its user
        lib.wait_until("the daemon to yield",
                       lambda: daemon.ctl("explain", str(workload.pid))["verdict"] == "repinned")
        self.config.write_text("[Daemon]\nMaxTasks=5000\nSlowTickSec=200ms\n", encoding="ascii")
        daemon.ctl_run("reload").check_returncode()
        self.ticks(daemon)
        self.assertEqual(daemon.ctl("explain", str(workload.pid))["verdict"], "repinned")
        self.assertEqual(workload.masks(), {self.full})
        daemon.stop()

    def test_repinned_while_the_daemon_is_dead(self):
        workload = self.spinner("--asleep", "--threads=3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        daemon.kill()
        chosen = {lib.own_cpus()[-1]}
        for tid in lib.affinity(workload.pid):
            os.sched_setaffinity(tid, chosen)
        daemon = self.daemon().ready()
        self.ticks(daemon)
        self.assertEqual(workload.masks(), {self.list_of(chosen)})
        daemon.stop()
        self.assertEqual(workload.masks(), {self.list_of(chosen)})


class Names(lib.DaemonTest):
    """A process may have any name."""

    def test_names(self):
        lib.need_placing()
        self.write_policy()
        workloads = {}
        for name in ("a b", "x) R 1 (", "line\nbreak", "gr\u00fc\u00df e", ")))", "\\x0a", "\x1b[2J", "%s%n", "0 (0) S 0 0"):
            workloads[name] = self.spinner("--asleep", f"--name={name}")
        daemon = self.daemon().ready()
        for name, workload in workloads.items():
            with self.subTest(name=name):
                self.wait_home(daemon, workload)
                shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)
                # It may have been seen before it gave itself that name.
                lib.wait_until(f"the name {shown}", lambda pid=workload.pid, shown=shown: daemon.ctl(
                    "explain", str(pid))["comm"].replace("\\x5c", "\\") == shown)
                self.assertEqual(daemon.ctl_run("explain", str(workload.pid)).returncode, 0)
        self.assertEqual(len(daemon.ctl("tasks", "50-test")) >= len(workloads), True)
        log = daemon.stop()
        for line in log.splitlines():
            self.assertTrue(line.startswith("numaplaced: "), line)
            self.assertTrue(line.isprintable(), line)
        for name, workload in workloads.items():
            self.assertEqual(workload.masks(), {self.full}, name)

    def test_a_name_that_is_no_text(self):
        lib.need_placing()
        self.write_policy()
        workload = self.spinner(b"--asleep", b"--name=\xff\xfe\xc3")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        self.assertEqual(daemon.ctl("explain", str(workload.pid))["comm"], "\\xff\\xfe\\xc3")
        daemon.stop()


class Explain(lib.DaemonTest):
    """Also of processes that it does not manage."""

    def test_unmanaged(self):
        self.write_policy()
        self.write_policy("40-none", mark=self.mark + "none", Placement={"Mode": "none"})
        self.write_policy("41-later", mark=self.mark + "later")
        with open(self.policies / "41-later.policy", "r+", encoding="ascii") as f:
            text = f.read().replace("[Workload]", "MinThreads=1000\n[Workload]", 1)
            f.seek(0)
            f.write(text)
        daemon = self.daemon("--dry-run").ready()
        none, later, other = (self.spinner("--asleep", mark=self.mark + s) for s in ("none", "later", "other"))
        for workload, verdict, policy in ((none, "mode-none", "40-none"), (later, "later", None),
                                          (other, "no-policy", None)):
            explanation = daemon.ctl("explain", str(workload.pid))
            self.assertEqual((explanation["managed"], explanation["verdict"]), (False, verdict))
            self.assertEqual(explanation.get("policy"), policy)
            self.assertEqual(explanation["comm"], "spinner")
        self.assertEqual(daemon.ctl("explain", str(daemon.process.pid))["verdict"], "self")
        ended = subprocess.Popen(["true"])
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual(daemon.ctl("explain", str(ended.pid))["verdict"], "out-of-reach")
        ended.wait()
        kernel = pathlib.Path("/proc/2/comm")  # not in a PID namespace
        if kernel.exists() and kernel.read_text(encoding="ascii") == "kthreadd\n":
            self.assertEqual(daemon.ctl("explain", "2")["verdict"], "out-of-reach")
        daemon.stop()


if __name__ == "__main__":
    lib.main()
