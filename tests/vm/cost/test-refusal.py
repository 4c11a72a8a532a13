#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the plugin cannot serve is said in one line, and QEMU does not start; what it can, starts.

usage: test-refusal.py PLUGIN
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from labkit import Unavailable, emulator  # noqa: E402

SHAPE = "nodes=64:64,cpus=0:1,dist=10:20/20:10"
PLUGIN = sys.argv.pop(1)


def start(words: str) -> subprocess.CompletedProcess:
    """Starts a guest without running it; told to quit at once, it has status 0."""
    argv = [*emulator.ensure(), "-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-machine", "q35", "-m", "128M",
            "-smp", "2", "-S", "-monitor", "stdio", "-plugin", f"{PLUGIN},{words}"]
    return subprocess.run(argv, input="quit\n", capture_output=True, text=True, timeout=60, check=False)


class Refusal(unittest.TestCase):
    def refused(self, words: str, line: str) -> None:
        run = start(words)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual([text for text in run.stderr.splitlines() if "numacost: " in text], [f"numacost: {line}"])

    def test_bad_value(self):
        self.refused(f"{SHAPE},local=x", "'local=x': expected nanoseconds, 1 to 100000")

    def test_unknown_key(self):
        self.refused(f"{SHAPE},latency=5", "'latency=5': no such argument")

    def test_other_guest(self):
        self.refused("nodes=128,cpus=0:0:0,dist=10", "cpus= names 3 CPUs, the guest has 2")

    def test_no_report(self):
        self.refused(f"{SHAPE},out=/dev/null/x", "out=/dev/null/x: Not a directory")

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
        # Where all is set up, what cannot be tested is a failure.
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    unittest.main()
