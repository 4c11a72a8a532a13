#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./dev build DIR` deletes no directory that is not a build.

usage: dev.py SOURCE_ROOT
"""

import pathlib
import subprocess
import sys
import tempfile

import lint


def check_refused(dev, directory):
    """A copy of `dev` that has nothing to build is told to build into a directory below it."""
    with tempfile.TemporaryDirectory() as root:
        script, kept = pathlib.Path(root, "dev"), pathlib.Path(root, "work", "precious")
        # Where it would go on, it ends: nothing is installed by a test.
        script.write_text(dev.replace("cmd_setup()\n{\n", "cmd_setup()\n{\n    exit 9\n"), encoding="utf-8")
        kept.parent.mkdir()
        kept.touch()
        run = subprocess.run(["bash", script, "build", directory], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 1 or run.stderr != f"./dev: build: {directory} is no build directory, and would be deleted\n":
        yield f"dev: build {directory}: exit status {run.returncode}, {run.stderr!r}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    dev = lint.read(sys.argv[1], "dev")
    lint.self_test(check_refused, [((dev, "new"), "exit status 9"), ((dev, "work"), None)])
    lint.finish([problem for directory in (".", "work", "work/precious") for problem in check_refused(dev, directory)], 3)


main()
