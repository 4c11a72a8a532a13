#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin refuses what it cannot support in one line, and QEMU does not start; everything else starts.

usage: test-refusal.py PLUGIN
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from labkit import Unavailable, emulator, guest  # noqa: E402

SHAPE = "nodes=64:64,cpus=0:1,dist=10:20/20:10"
PLUGIN = sys.argv.pop(1)


def start(words: str, clock: tuple[str, ...] = guest.PARALLEL, command: list[str] | None = None) -> subprocess.CompletedProcess:
    """Starts a guest without running it; told to quit at once, it has status 0."""
    argv = [*(command or emulator.ensure()), "-nodefaults", "-no-user-config", "-display", "none", *clock, "-machine", "q35", "-m", "128M",
            "-smp", "2", "-S", "-monitor", "stdio", "-plugin", f"{PLUGIN},{words}"]
    return subprocess.run(argv, input="quit\n", capture_output=True, text=True, timeout=60, check=False)


class Refusal(unittest.TestCase):
    def refused(self, line: str, *arguments) -> None:
        run = start(*arguments)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual([text for text in run.stderr.splitlines() if "numacost: " in text], [f"numacost: {line}"])

    def test_other_build(self):
        """The same QEMU with another build ID in it."""
        argv = emulator.ensure()
        with tempfile.TemporaryDirectory() as name:
            other = pathlib.Path(name) / "qemu"
            shutil.copy(argv[3], other)
            with open(other, "r+b") as file:
                data = file.read()
                at = data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
                file.seek(at)
                file.write(bytes([data[at] ^ 1]))
            self.refused("not the QEMU that the clock is made for: expected Debian 1:10.0.13+ds-0+deb13u1, amd64", SHAPE, guest.PARALLEL,
                         [*argv[:3], str(other), *argv[4:]])

    def test_other_clock(self):
        self.refused("expected -accel tcg,thread=single -icount shift=0,sleep=off", SHAPE, guest.MULTI)

    def test_bad_value(self):
        self.refused("'local=x': expected nanoseconds, 1 to 100000", f"{SHAPE},local=x")

    def test_unknown_key(self):
        self.refused("'latency=5': no such argument", f"{SHAPE},latency=5")

    def test_other_guest(self):
        self.refused("cpus= names 3 CPUs, the guest has 2", "nodes=128,cpus=0:0:0,dist=10")

    def test_no_report(self):
        self.refused("out=/dev/null/x: Not a directory", f"{SHAPE},out=/dev/null/x")

    def test_starts(self):
        with tempfile.NamedTemporaryFile(encoding="ascii", mode="r") as report:
            run = start(f"{SHAPE},out={report.name}")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            events = [line.split('"')[3] for line in report.read().splitlines()]
        self.assertEqual(events, ["config", "exit"])


if __name__ == "__main__":
    try:
        emulator.ensure()
    except Unavailable as error:
        print(f"SKIP: {error}")
        # If all is installed, a test that cannot run is a failure.
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    unittest.main()
