# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lint tests share: finding files, and reporting problems."""

import os
import sys

# Data, not source: captured machines and fuzzer inputs are kept byte for byte.
DATA = {os.path.join("tests", "fixtures"), os.path.join("tests", "fuzz", "corpus")}


def walk(root, start=""):
    """Yields the paths, relative to `root`, of every file below `start` that is not build output, data or hidden."""
    for where, directories, files in os.walk(os.path.join(root, start)):
        at = os.path.relpath(where, root)
        at = "" if at == "." else at
        directories[:] = sorted(
            d
            for d in directories
            if (not d.startswith(".") or d == ".ci")
            and d not in ("__pycache__", "subprojects")
            and os.path.join(at, d) not in DATA
            and not (at == "" and d.startswith("build"))  # as in .gitignore: packages and the lab's images, too
            and not os.path.exists(os.path.join(where, d, "meson-private"))
        )
        for name in sorted(files):
            yield os.path.join(at, name)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", newline="") as f:
        return f.read()


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def finish(problems, checked):
    """Ends the test. Having checked nothing is a failure, too."""
    for problem in problems:
        print(problem)
    if not checked:
        print("nothing was checked: is the source directory right?")
    print(f"{checked} checked, {len(problems)} problems")
    sys.exit(1 if problems or not checked else 0)


def self_test(check, cases):
    """Runs `check(*arguments)` on snippets of known quality, so that a check that no longer finds anything is
    noticed. A case is (arguments, a text that its only problem must contain, or None when there must be none)."""
    for arguments, expected in cases:
        found = list(check(*arguments))
        good = not found if expected is None else len(found) == 1 and expected in found[0]
        if not good:
            print(f"self-test: {arguments!r} gave {found!r}, expected {expected!r}")
            sys.exit(1)
