#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual pages are clean mdoc: mandoc has not even a warning.

usage: man.py SOURCE_ROOT
"""

import re
import shutil
import subprocess
import sys

import lint

PAGE = re.compile(r"^man/[^/]+\.[1-8]$")


def check(path, text):
    run = subprocess.run(
        ["mandoc", "-mdoc", "-Tlint", "-Wwarning"], input=text, capture_output=True, text=True, check=False
    )
    # Two sentences are one problem here: the page.
    if run.returncode != 0 or run.stdout:
        yield (run.stdout or run.stderr).strip().replace("mandoc: <stdin>", f"mandoc: {path}")


def test_ourselves():
    head = ".Dd January 1, 2026\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd does it\n"
    lint.self_test(
        check,
        [
            (("x.1", head), None),
            (("x.1", head + ".Sh DESCRIPTION\n.Bogus macro\n"), "x.1:8:2: ERROR: skipping unknown macro"),
            (("x.1", head + ".Sh DESCRIPTION\n.Pp\n"), "WARNING: skipping paragraph macro"),
            (("x.1", "words\n"), "x.1"),
        ],
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("mandoc"):
        print("mandoc is not installed: the manual pages were not checked")
        sys.exit(77)
    root = sys.argv[1]
    test_ourselves()

    problems, checked = [], 0
    for path in lint.walk(root, "man"):
        if PAGE.match(path):
            problems += check(path, lint.read(root, path))
            checked += 1
    lint.finish(problems, checked)


main()
