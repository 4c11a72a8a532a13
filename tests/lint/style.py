#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can be said about a source file without understanding it.

usage: style.py SOURCE_ROOT
"""

import os
import re
import sys

import lint

SPDX = "SPDX-License-Identifier: LGPL-2.1-or-later"
LINES_MAX = 1000  # never
LINES_NOTED = 600  # needs a reason
# Of code; clang-format breaks statements at 110, and leaves comments as they are.
COLUMNS_MAX = 120

SOURCE = (".c", ".h", ".py", ".sh")
TEXT = SOURCE + (".md", ".txt", ".in", ".policy", ".conf", ".service", ".build") + tuple(f".{n}" for n in range(1, 9))

# Written in two halves, because otherwise this file would report itself.
UNFINISHED = re.compile(r"\b(TO" + r"DO|XX" + r"X|FIX" + r"ME)\b")


def is_source(path, text):
    name = os.path.basename(path)
    return name.endswith(SOURCE) or name in ("meson.build", "meson_options.txt") or text.startswith("#!")


def check(path, text):
    lines = text.split("\n")
    if is_source(path, text):
        if SPDX not in "\n".join(lines[:3]):
            yield f"{path}:1: expected {SPDX} in the first three lines"
        if len(lines) - 1 > LINES_MAX:
            yield f"{path}: {len(lines) - 1} lines, at most {LINES_MAX}"
        for number, line in enumerate(lines, 1):
            match = UNFINISHED.search(line)
            if match:
                yield f"{path}:{number}: {match.group()}: finish it, or make it an issue"
    if "\r" in text:
        yield f"{path}: carriage returns; lines end in a line feed"
    for number, line in enumerate(lines, 1):
        if line.endswith((" ", "\t")):
            yield f"{path}:{number}: blanks at the end of the line"
        if len(line) > COLUMNS_MAX and path.endswith((".c", ".h")):
            yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"
        if "\t" in line and path.endswith((".c", ".h", ".py")):
            yield f"{path}:{number}: a tab; indent with four blanks"
    if text and not text.endswith("\n"):
        yield f"{path}: no line feed at the end"
    if text.endswith("\n\n"):
        yield f"{path}: an empty line at the end"


def test_ourselves():
    head = f"/* {SPDX} */\n"
    lint.self_test(
        check,
        [
            (("a.c", head + "int a;\n"), None),
            (("a.c", head + 'mkstemp("XX' + 'XXXX");\n'), None),
            (("a.c", head + "x\n" * (LINES_MAX - 1)), None),
            (("run", f"#!/bin/sh\n# {SPDX}\n"), None),
            (("meson.build", f"# {SPDX}\n"), None),
            (("a.md", "# Words, no SPDX\n"), None),
            (("a.c", "int a;\n"), "a.c:1: expected SPDX"),
            (("a.h", "\n\n\n" + head), "a.h:1: expected SPDX"),
            (("run", "#!/bin/sh\n"), "run:1: expected SPDX"),
            (("meson.build", "x\n"), "meson.build:1: expected SPDX"),
            (("a.c", head + "x\n" * LINES_MAX), f"{LINES_MAX + 1} lines, at most {LINES_MAX}"),
            (("a.py", f"# {SPDX}\n# TO" + "DO later\n"), "a.py:2: TO" + "DO"),
            (("a.c", head + "int a; \n"), "a.c:2: blanks at the end"),
            (("a.c", head + "\tint a;\n"), "a.c:2: a tab"),
            (("a.c", head + "/" * COLUMNS_MAX + "\n"), None),
            (("a.c", head + "/" * (COLUMNS_MAX + 1) + "\n"), "a.c:2: 121 columns, at most 120"),
            (("a.md", "a"), "no line feed at the end"),
            (("a.md", "a\n\n"), "an empty line at the end"),
            (("a.md", "a\r\n"), "carriage returns"),
        ],
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    problems, checked = [], 0
    for path in lint.walk(root):
        name = os.path.basename(path)
        full = os.path.join(root, path)
        if os.path.islink(full) or not (name.endswith(TEXT) or "." not in name):
            continue
        try:
            text = lint.read(root, path)
        except UnicodeDecodeError:
            problems.append(f"{path}: not UTF-8")
            continue
        problems += check(path, text)
        checked += 1
        if is_source(path, text) and text.count("\n") > LINES_NOTED:
            print(f"note: {path} has {text.count(chr(10))} lines; above {LINES_NOTED} a file needs a reason")
    lint.finish(problems, checked)


main()
