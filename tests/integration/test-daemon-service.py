#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The capabilities of the unit suffice to place tasks of other users, none of them is superfluous, and its filter
allows the system calls of the daemon."""

import os
import pathlib
import re
import signal
import subprocess

import lib

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

# Their numbers, linux/capability.h.
NUMBERS = {"CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19, "CAP_SYS_NICE": 23}


def granted():
    """The capabilities of the unit, without two that containers often lack: without CAP_SYS_RESOURCE there are fewer
    pressure events, or none, and without CAP_PERFMON no write hint faults."""
    unit = (lib.SOURCE / "units/numaplaced.service.in").read_text(encoding="utf-8")
    return set(re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)[1].split()) - {"CAP_PERFMON", "CAP_SYS_RESOURCE"}


def bounding_set():
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"^CapBnd:\s*(\w+)$", status, re.MULTILINE)[1], 16)


class Capabilities(lib.DaemonTest):
    def setUp(self):
        lib.need_placing()
        lib.need_program("setpriv")
        super().setUp()
        if any(not bounding_set() >> number & 1 for number in NUMBERS.values()):
            self.skipTest("needs the capabilities of the unit")
        if subprocess.run([*NOBODY, lib.SPINNER, "--help"], capture_output=True, check=False).returncode == 126:
            self.skipTest("the build directory cannot be entered by other users")
        self.write_policy()

    def limited(self, capabilities):
        """A daemon that is root, with exactly these capabilities."""
        words = ",".join(["-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in capabilities)])
        return self.daemon(wrap=["setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={words}"])

    def others(self):
        return lib.Workload(self, [*NOBODY, lib.SPINNER, "--asleep", "--threads=3"], self.mark)

    def test_they_are_enough(self):
        self.assertEqual(granted(), set(NUMBERS))
        workload = self.others()
        daemon = self.limited(granted()).ready()
        self.assertEqual(daemon.ctl("status")["mode"], "active")
        self.wait_home(daemon, workload)
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})

    def test_without_nice_it_observes(self):
        daemon = self.limited(granted() - {"CAP_SYS_NICE"}).ready()
        self.assertEqual(daemon.ctl("status")["mode"], "observe")
        daemon.stop()

    def test_without_the_others_it_does_not_see(self):
        """The policy matches the environment, which only its owner may open, and only those may read who might trace
        the process."""
        others = self.others()
        name = f"np{self.mark[:8]}"
        (self.policies / "60-name.policy").write_text(
            f"[Match]\nComm={name}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n", encoding="ascii")
        for missing in ("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"):
            with self.subTest(missing=missing):
                # Names are readable by all: when this process is placed, the others have been read.
                named = self.spinner("--asleep", f"--name={name}", mark="of nobody")
                # A process that may write everything may read this, too.
                daemon = self.limited(granted() - {missing, "CAP_DAC_OVERRIDE"}).ready()
                self.wait_home(daemon, named)
                self.assertFalse(daemon.ctl("explain", str(others.pid))["managed"])
                self.assertEqual(others.masks(), {self.full})
                daemon.stop()


class SystemCalls(lib.DaemonTest):
    """The filter of the unit allows all system calls that a daemon makes."""

    def setUp(self):
        lib.need_placing()
        for name in ("strace", "systemd-analyze"):
            lib.need_program(name)
        super().setUp()
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("strace does not work here")
        self.write_policy()

    def members(self, name):
        """The system calls of a word of the filter."""
        if not name.startswith("@"):
            return {name}
        run = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], capture_output=True, text=True, check=True)
        words = {line.strip() for line in run.stdout.splitlines() if line.startswith(" ") and "#" not in line}
        return set().union(*(self.members(word) for word in words))

    def allowed(self):
        unit = (lib.SOURCE / "units/numaplaced.service.in").read_text(encoding="utf-8")
        calls = self.members("@default")
        for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
            found = set().union(*(self.members(word) for word in words.lstrip("~").split()))
            calls = calls - found if words.startswith("~") else calls | found
        return calls

    def test_filter(self):
        trace = self.directory / "trace"
        busy = self.spinner(f"--threads={len(lib.own_cpus())}")
        # A sanitized build looks for leaks with ptrace, which strace already uses.
        daemon = self.daemon(wrap=["strace", "-f", "-qq", "-o", str(trace)], env={"ASAN_OPTIONS": "detect_leaks=0"}).ready()
        self.wait_home(daemon, busy)
        daemon.ctl_run("release", "50-test").check_returncode()
        daemon.ctl_run("reload").check_returncode()
        os.kill(daemon.ctl("status")["pid"], signal.SIGTERM)
        daemon.process.wait(lib.DEADLINE_SEC)
        calls = set(re.findall(r"^\d+ +(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed)", trace.read_text(errors="replace"), re.MULTILINE))
        self.assertIn("sched_setaffinity", calls)  # the trace was parsed correctly
        allowed = self.allowed()
        self.assertNotIn("ptrace", allowed)
        self.assertIn("capset", allowed)
        self.assertEqual(calls - allowed, set())


if __name__ == "__main__":
    lib.main()
