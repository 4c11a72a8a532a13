# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of numaplacectl share: running it, and checking what it prints."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from lib import CTL, DEADLINE_SEC


def run(*args: str, env: dict | None = None, wrap=(), **kwargs) -> subprocess.CompletedProcess:
    """Runs numaplacectl with these arguments; standard output and standard error are text."""
    return subprocess.run([*wrap, CTL, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_SEC,
                          env={**os.environ, **(env or {})}, check=False, **kwargs)


class CtlTest(unittest.TestCase):
    """Assertions on a run."""

    def ctl(self, *args: str, code: int = 0, **kwargs) -> str:
        """Standard output of a run that ends with this code. Standard error is empty exactly when the code is 0."""
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        if code == 0:
            self.assertEqual(done.stderr, "", args)
        return done.stdout

    def ctl_json(self, *args: str, code: int = 0):
        """The JSON value that a run prints, in both forms; `short` is one line."""
        short = self.ctl("--json=short", *args, code=code)
        self.assertEqual(short.count("\n"), 1, args)
        value = json.loads(short)
        self.assertEqual(json.loads(self.ctl("--json=pretty", *args, code=code)), value)
        return value

    def fails(self, *args: str, code: int, says: str, **kwargs) -> None:
        """A run that prints only one line, which begins with the program's name and contains `says`."""
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "", args)
        self.assertTrue(done.stderr.startswith("numaplacectl: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def directory(self) -> pathlib.Path:
        """A temporary directory that is removed after the test."""
        holder = tempfile.TemporaryDirectory(prefix="numaplacectl-")
        self.addCleanup(holder.cleanup)
        return pathlib.Path(holder.name)
