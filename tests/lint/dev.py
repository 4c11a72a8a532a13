#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./dev build DIR` deletes no directory that is not a build, and `./dev setup` does without a browser.

usage: dev.py SOURCE_ROOT
"""

import os
import pathlib
import re
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


def check_without_browser(dev):
    """The package manager has no package of chromium, as on Ubuntu; all else is installed."""
    dev = re.sub(r"^(needs|needs_lab)\(\)\n\{\n.*?^\}$", r"\1() { :; }", dev, flags=re.MULTILINE | re.DOTALL)
    dev = re.sub(r"^command -v chromium-headless-shell\b[^\n]*?\|(?=[^|]*\|[^|]*$)", "false|", dev, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as root:
        script = pathlib.Path(root, "dev")
        script.write_text(dev, encoding="utf-8")
        for name in ("apt-get", "sudo"):
            pathlib.Path(root, name).write_text("#!/bin/sh\nexit 100\n", encoding="utf-8")
            pathlib.Path(root, name).chmod(0o755)
        run = subprocess.run(["bash", script, "setup"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                             env=os.environ | {"PATH": f"{root}:{os.environ['PATH']}"})
    if run.returncode != 0 or "-- no chromium: " not in run.stderr:
        yield f"dev: setup without a browser: exit status {run.returncode}, {run.stderr!r}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    dev = lint.read(sys.argv[1], "dev")
    lint.self_test(check_refused, [((dev, "new"), "exit status 9"), ((dev, "work"), None)])
    lint.self_test(check_without_browser, [((dev.replace(") || note", ")"),), "exit status")])
    problems = [problem for directory in (".", "work", "work/precious") for problem in check_refused(dev, directory)]
    lint.finish([*problems, *check_without_browser(dev)], 4)


main()
