#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The capabilities of the unit are enough to place tasks of other users, and none of them is too many."""

import pathlib
import re
import subprocess

import lib

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

# Their numbers, linux/capability.h.
NUMBERS = {"CAP_DAC_READ_SEARCH": 2, "CAP_SYS_PTRACE": 19, "CAP_SYS_NICE": 23}


def granted():
    """The capabilities of the unit, without CAP_SYS_RESOURCE: containers often lack it, and without it there are fewer pressure
    events, or none."""
    unit = (lib.SOURCE / "units/numaplaced.service.in").read_text(encoding="utf-8")
    return set(re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)[1].split()) - {"CAP_SYS_RESOURCE"}


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
        """A daemon that is root, with these capabilities and no others."""
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
        """The policy asks for the environment, which only its owner may open, and only who might trace it may read."""
        others = self.others()
        name = f"np{self.mark[:8]}"
        (self.policies / "60-name.policy").write_text(
            f"[Match]\nComm={name}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n", encoding="ascii")
        for missing in ("CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"):
            with self.subTest(missing=missing):
                # Names everybody may read: when this one is placed, the others have been looked at.
                named = self.spinner("--asleep", f"--name={name}", mark="of nobody")
                daemon = self.limited(granted() - {missing}).ready()
                self.wait_home(daemon, named)
                self.assertFalse(daemon.ctl("explain", str(others.pid))["managed"])
                self.assertEqual(others.masks(), {self.full})
                daemon.stop()


if __name__ == "__main__":
    lib.main()
