#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every header compiles alone and twice, with no warning, and begins as all do.

usage: headers.py SOURCE_ROOT COMPILER [ARGUMENT...]
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import lint

FLAGS = "-std=gnu17 -D_GNU_SOURCE -DHASH_NONFATAL_OOM=1 -fsyntax-only -Wall -Wextra -Wundef -Wstrict-prototypes".split()
FLAGS += "-Wno-unused-parameter -Wno-missing-field-initializers -Werror".split()
LIBRARIES = ["hwloc", "libsystemd", "json-c", "smartcols", "ncursesw"]
SPDX = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"


def library_flags():
    flags = []
    for name in LIBRARIES:
        try:
            run = subprocess.run(["pkg-config", "--cflags", name], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return flags
        flags += run.stdout.split() if run.returncode == 0 else []
    return flags


def check_text(path, text):
    if not text.startswith(SPDX):
        yield f"{path}:1: expected {SPDX.strip()}"
    if "\n#pragma once\n" not in text:
        yield f"{path}: expected #pragma once"


def check_compiles(compiler, directories, name):
    """`name` is what a source file would write between the quotes."""
    command = compiler + FLAGS + [f"-I{d}" for d in directories] + ["-x", "c", "-"]
    source = f'#include "{name}"\n#include "{name}"\ntypedef int nothing_else;\n'
    run = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        yield f"{name} does not compile alone:\n{run.stderr.rstrip()}"


def test_ourselves(compiler):
    lint.self_test(
        check_text,
        [
            (("x.h", SPDX + "#pragma once\n"), None),
            (("x.h", "#pragma once\n" + "\n#pragma once\n"), "x.h:1: expected /* SPDX"),
            (("x.h", SPDX + "/* #pragma once */\n"), "expected #pragma once"),
        ],
    )
    snippets = {
        "good.h": "#pragma once\n#include <stddef.h>\ntypedef struct A { size_t n; } A;\n",
        "type.h": "#pragma once\nsize_t missing(void);\n",
        "once.h": "typedef struct A { int n; } A;\n",
        "warning.h": "#pragma once\nint old_style();\n",
    }
    with tempfile.TemporaryDirectory() as directory:
        for name, text in snippets.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write(text)
        lint.self_test(
            lambda name: check_compiles(compiler, [directory], name),
            [
                (("good.h",), None),
                (("type.h",), "type.h does not compile alone"),
                (("once.h",), "once.h does not compile alone"),
                (("warning.h",), "warning.h does not compile alone"),
            ],
        )


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root, compiler = sys.argv[1], sys.argv[2:] + library_flags()
    test_ourselves(compiler)

    directories = [os.path.join(root, "src"), os.path.join(root, "include")]
    problems, names = [], []
    for start in ("src", "include"):
        for path in lint.walk(root, start):
            if path.endswith(".h"):
                problems += check_text(path, lint.read(root, path))
                names.append(os.path.relpath(path, start))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda name: list(check_compiles(compiler, directories, name)), names):
            problems += found
    lint.finish(problems, len(names))


main()
