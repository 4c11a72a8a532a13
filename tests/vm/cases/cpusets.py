# SPDX-License-Identifier: LGPL-2.1-or-later
"""A unit's AllowedCPUs= is never exceeded, even when it changes while its processes are placed."""

import os
import pathlib
import subprocess
import uuid

import lib
import nodes
import tap

HOME = 1
HOME_CPUS = nodes.node_cpus(HOME)
FIRST, LAST = min(HOME_CPUS), max(HOME_CPUS)
RELEASE = tuple(int(number) for number in os.uname().release.split(".")[:2])
# Not on the keeper's node, whose CPUs the system's own work uses first.
AWAY = max(nodes.node_cpus(2))


class Cpusets(nodes.NodesTest):
    def unit(self, cpus, *args):
        """A spinner as a service with these CPUs. Returns its PID, and the name of its unit."""
        unit = f"lab-{uuid.uuid4().hex[:8]}.service"
        run = subprocess.run(["systemd-run", "-q", f"--unit={unit}", f"--setenv=NUMAPLACE_TEST={self.mark}",
                              f"--property=AllowedCPUs={self.list_of(cpus)}", lib.SPINNER, *args],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.addCleanup(self.systemctl, "stop", unit)
        pid = lib.wait_until("the unit's process", lambda: int(self.systemctl("show", "--value", "-p", "MainPID", unit)))
        return unit, pid

    @staticmethod
    def systemctl(*args):
        return subprocess.run(["systemctl", *args], capture_output=True, text=True, check=True).stdout.strip()

    def wait_masks(self, pid, cpus):
        lib.wait_until(f"the mask {sorted(cpus)}", lambda: set(lib.affinity(pid).values()) == {self.list_of(cpus)})

    def start(self):
        self.write_policy(Placement={"Nodes": str(HOME)}, Workload={"GroupBy": "process"})
        return self.daemon().ready()

    def test_changed_while_managed(self):
        """The home is cut to it, in both directions. Without any of its CPUs there is no home, and no foreign pin is
        reported."""
        daemon = self.start()
        allowed = {AWAY, FIRST, LAST}
        unit, pid = self.unit(allowed, "--asleep", "--threads=3")
        self.wait_masks(pid, HOME_CPUS)
        for cpus, due in (({AWAY, FIRST}, {FIRST}), ({AWAY, LAST}, {LAST}), ({0, AWAY}, {0, AWAY}), (allowed, HOME_CPUS)):
            self.systemctl("set-property", "--runtime", unit, f"AllowedCPUs={self.list_of(cpus)}")
            self.wait_masks(pid, due)
            self.ticks(daemon)
            self.wait_masks(pid, due)
            self.assertEqual({t["hands"] for t in daemon.ctl("explain", str(pid))["tasks"]}, {"free"})
        daemon.stop()
        self.wait_masks(pid, allowed)
        # Restored to all that it may use, so that it follows again.
        self.systemctl("set-property", "--runtime", unit, f"AllowedCPUs={self.full}")
        self.wait_masks(pid, set(self.everything))

    def test_lent_within_it(self):
        """Of the CPUs that are idle elsewhere, only those in its unit's cpuset are lent to it."""
        daemon = self.start()
        _, pid = self.unit({AWAY, *HOME_CPUS}, "--threads=5")
        self.wait_lent(daemon)
        self.ticks(daemon)
        self.assertEqual({m["cpu"] for m in self.moves(daemon, "lend")}, {AWAY})
        daemon.stop()
        self.wait_masks(pid, {AWAY, *HOME_CPUS})

    def test_pinned_by_hand(self):
        """taskset within the home, while its sibling is placed."""
        pinned = self.spinner("--asleep", "--threads=2", preexec_fn=lambda: os.sched_setaffinity(0, {0, FIRST}))
        daemon = self.start()
        free = self.workload("--asleep", "--threads=2")
        self.wait_home(daemon, free)
        self.ticks(daemon)
        self.assertEqual(pinned.masks(), {self.list_of({0, FIRST})})
        self.assertEqual(daemon.ctl("explain", str(pinned.pid))["verdict"], "foreign-affinity")
        daemon.stop()
        self.assertEqual(pinned.masks(), {self.list_of({0, FIRST})})
        self.assertEqual(free.masks(), {self.full})


class Kernel(nodes.NodesTest):
    """Features of this kernel that others lack."""

    SETTINGS = "[Daemon]\nFastTickSec=100ms\nSlowTickSec=200ms\nMaxCPU=50%\n"

    def test_features(self):
        daemon = self.daemon().ready()
        status = daemon.ctl("status")
        version = int(open("/proc/schedstat", encoding="ascii").readline().split()[1])
        self.assertEqual(status["schedstat_version"], version)
        for key in ("schedstat", "task_schedstat", "psi", "psi_trigger", "numa"):
            self.assertTrue(status[key], key)
        self.assertEqual(status["cgroup"], "v2")
        self.assertEqual(status["unparsable"], 0)
        text = daemon.ctl_run("status").stdout
        self.assertIn(f"schedstat {version}", text.replace("version ", ""))
        self.assertIn("PSI with triggers", text)
        self.assertEqual("lost when a cpuset changes" in text, RELEASE < (6, 2))
        daemon.stop()

    def test_cache_aware_scheduling(self):
        """It is reported on kernels that have it where debugfs is mounted, and not on others."""
        debug = "/sys/kernel/debug"
        if not os.path.ismount(debug):
            subprocess.run(["mount", "-t", "debugfs", "none", debug], check=True)
            self.addCleanup(subprocess.run, ["umount", debug], check=True)
        enabled = pathlib.Path(f"{debug}/sched/llc_balancing/enabled")
        expected = enabled.exists() and enabled.read_text(encoding="ascii").strip() == "1"
        self.assertEqual(expected, RELEASE >= (7, 3))
        daemon = self.daemon().ready()
        names = [found["name"] for found in daemon.ctl("status")["neighbours"]]
        self.assertEqual("cache-aware-scheduling" in names, expected)
        if expected:
            enabled.write_text("0", encoding="ascii")
            self.addCleanup(enabled.write_text, "1", encoding="ascii")
            lib.wait_until("it to be gone", lambda: "cache-aware-scheduling" not in
                           [found["name"] for found in daemon.ctl("status")["neighbours"]])
        daemon.stop()

    def test_overload_of_others_is_seen(self):
        """By the CPUs' own wait times: no managed thread's waiting could be summed instead."""
        daemon = self.daemon().ready()
        chosen = {min(HOME_CPUS)}
        self.spinner("--threads=3", mark="other", preexec_fn=lambda: os.sched_setaffinity(0, chosen))
        lib.wait_until("an overloaded CPU", lambda: daemon.ctl("status")["overloaded"] >= 1)
        self.assertEqual(daemon.ctl("status")["tasks"], 0)
        daemon.stop()

    def test_pressure_wakes(self):
        """The placed processes sleep, so only pressure can shorten the interval again. The daemon does not share a
        CPU with its clients, whose waiting for each other would be pressure, too."""
        self.write_policy(Placement={"Nodes": str(HOME)})
        daemon = self.daemon(preexec_fn=lambda: os.sched_setaffinity(0, {AWAY})).ready()
        self.wait_home(daemon, self.workload("--asleep"))
        longest = 2000000
        lib.wait_until("it to look seldom", lambda: daemon.ctl("status")["fast_tick_usec"] >= longest)
        chosen = {min(HOME_CPUS)}
        self.spinner("--threads=3", mark="other", preexec_fn=lambda: os.sched_setaffinity(0, chosen))
        lib.wait_until("it to look often", lambda: daemon.ctl("status")["fast_tick_usec"] < longest)
        self.assertFalse(daemon.ctl("status")["pressed"])
        daemon.stop()


if __name__ == "__main__":
    tap.main()
