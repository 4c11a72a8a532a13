#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every message id of the header is used in the code and has an entry in the message catalog, which journalctl can read.

usage: catalog.py SOURCE_ROOT
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import lint

HEADER = "include/numaplace/messages.h"
CATALOG = "units/numaplace.catalog"
FIELDS_OF = "src/daemon/manager/remember.c"


def entries(catalog):
    """{id: text} of the entries."""
    parts = re.split(r"^-- ([0-9a-f]*)\n", catalog, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check(header, catalog, code, fields):
    """`code` is the text of all of src; `fields` are those of the records, which an entry may refer to."""
    ids = dict(re.findall(r'^#define (NUMAPLACE_MESSAGE_\w+)\s+"(\w+)"', header, re.MULTILINE))
    found = entries(catalog)
    for name, number in ids.items():
        if not re.fullmatch("[0-9a-f]{32}", number):
            yield f"{HEADER}: {name} is not 32 hexadecimal digits"
        elif number not in found:
            yield f"{CATALOG}: no entry for {name}"
        if not re.search(rf"\b{name}\b", code):
            yield f"{HEADER}: {name} is used nowhere in src"
    if len(set(ids.values())) != len(ids):
        yield f"{HEADER}: an id is there twice"
    for number, text in found.items():
        if number not in ids.values():
            yield f"{CATALOG}: {number} is not in {HEADER}"
        if not re.match(r"Subject: .+\nDefined-By: numaplace\nDocumentation: man:.+\n\n\S", text):
            yield f"{CATALOG}: {number}: expected Subject, Defined-By, Documentation, an empty line and a text"
        for field in re.findall(r"@(\w+)@", text):
            if field not in fields:
                yield f"{CATALOG}: {number}: no record has the field {field}"
    if catalog.count("\n-- ") != len(found):
        yield f"{CATALOG}: an entry is there twice"


def check_compiles(catalog, n):
    """journalctl makes a database of the catalog, with the same number of entries."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "usr/lib/systemd/catalog"))
        with open(os.path.join(root, "usr/lib/systemd/catalog/numaplace.catalog"), "w", encoding="utf-8") as f:
            f.write(catalog)
        for verb in ("--update-catalog", "--list-catalog"):
            run = subprocess.run(["journalctl", f"--root={root}", verb], capture_output=True, text=True, check=False)
            if run.returncode != 0:
                yield f"{CATALOG}: journalctl {verb}: {run.stderr.strip()}"
                return
        if run.stdout.count("\n") != n:
            yield f"{CATALOG}: journalctl found {run.stdout.count(chr(10))} entries, expected {n}"


def test_ourselves():
    number, other = "0" * 31 + "a", "0" * 31 + "b"
    header = f'#define NUMAPLACE_MESSAGE_X "{number}"\n'
    entry = f"\n-- {number}\nSubject: It works\nDefined-By: numaplace\nDocumentation: man:x(1)\n\nIt does, @PID@.\n"
    lint.self_test(
        lambda header, catalog, code: check(header, catalog, code, {"PID"}),
        [
            ((header, entry, "f(NUMAPLACE_MESSAGE_X)"), None),
            ((header, "", "f(NUMAPLACE_MESSAGE_X)"), "no entry for NUMAPLACE_MESSAGE_X"),
            ((header, entry, "f(NUMAPLACE_MESSAGE_XX)"), "is used nowhere"),
            ((header, entry + entry.replace(number, other), "f(NUMAPLACE_MESSAGE_X)"), "is not in include"),
            ((header, entry + entry, "f(NUMAPLACE_MESSAGE_X)"), "an entry is there twice"),
            ((header, entry.replace("Subject: It works\n", ""), "f(NUMAPLACE_MESSAGE_X)"), "expected Subject"),
            ((header, entry.replace("PID", "PDI"), "f(NUMAPLACE_MESSAGE_X)"), "no record has the field PDI"),
        ],
    )
    if shutil.which("journalctl"):
        lint.self_test(check_compiles, [((entry, 1), None), ((entry.replace("-- ", "--"), 1), "journalctl")])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    catalog = lint.read(root, CATALOG)
    code = "\n".join(lint.read(root, path) for path in lint.walk(root, "src") if path.endswith(".c"))
    fields = set(re.findall(r'"(NUMAPLACE_[A-Z]+)"', lint.read(root, FIELDS_OF)))
    problems = list(check(lint.read(root, HEADER), catalog, code, fields))
    if not problems and not shutil.which("journalctl"):
        print("journalctl is not installed: whether it can read the catalog was not checked")
        sys.exit(77)
    problems += [] if problems else check_compiles(catalog, len(entries(catalog)))
    lint.finish(problems, len(entries(catalog)))


main()
