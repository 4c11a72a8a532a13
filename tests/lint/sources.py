#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SOURCES.md names every mechanism once, and nothing that is not there; ARCHITECTURE.md is short, and names nothing that is
not there.

usage: sources.py SOURCE_ROOT
"""

import os
import re
import sys

import lint

N_MECHANISMS = 20
COLUMNS = ["", "mechanism", "text", "in the code", "shown by", "the text's number", "ours", "why they differ"]
NOT_YET = "not yet"
WORDS_MAX = 1800  # of ARCHITECTURE.md; readers who need more read the head of the file

SPAN = re.compile(r"`([^`]+)`")
# "src/plan/cpu/steal.c: steal_lend()"; the function is optional.
PLACE = re.compile(r"^((?:src|tests|policies|man|include)/[^\s:]+)(?:: (\w+)\(\))?$")
SCENARIO = re.compile(r"\bS-[A-Z0-9]+\b")
# (command, where its argument must exist)
COMMANDS = [
    (re.compile(r"^meson test (\w+)/([\w-]+)$"), lambda m: f"tests/unit/{m[1]}/test-{m[2]}.c"),
    (re.compile(r"^\./dev lab run ([\w-]+)$"), lambda m: f"tests/vm/cases/{m[1]}.case"),
    (re.compile(r"^\./dev bench (tick|plan|pack|sim|homes)\b"), lambda m: f"tests/bench/bench-{m[1]}.c"),
    (re.compile(r"^\./dev bench ([\w-]+)"), lambda m: f"tests/bench/{m[1]}.py"),
    (re.compile(r"^\./dev run\b"), lambda m: "tests/demo/demo.py"),
    (re.compile(r"^numaplacectl simulate (\S+)"), lambda m: m[1]),
]


def table(text, first_column):
    """The rows, as lists of cells, of the table whose head has `first_column` in its second column."""
    rows, found = [], False
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            found = False
        elif cells[0] == "" and len(cells) > 1 and cells[1] == first_column:
            found = True
        elif found and not set(cells[0]) <= {"-"}:
            rows.append(cells)
    return rows


def check_span(span, where, read):
    """`read(path)` returns a file's text, or None when there is none."""
    place = PLACE.match(span)
    if place:
        text = read(place[1])
        if text is None:
            yield f"{where}: {place[1]} does not exist"
        elif place[2] and not re.search(rf"\b{place[2]}\s*\(", text):
            yield f"{where}: {place[1]} has no {place[2]}()"
        return
    for pattern, path in COMMANDS:
        match = pattern.match(span)
        if match:
            if read(path(match)) is None:
                yield f"{where}: `{span}` needs {path(match)}, which does not exist"
            return
    if span.startswith(("src/", "tests/", "./dev", "meson", "numaplacectl")):
        yield f"{where}: `{span}` is no place or command that could be checked"


def is_command(span):
    return any(pattern.match(span) for pattern, _ in COMMANDS)


def check_row(cells, where, state, scenarios, read):
    """`state` is the state in this version, `scenarios` the scenarios, as in the table of mechanisms."""
    if len(cells) != len(COLUMNS):
        yield f"{where}: {len(cells)} columns, expected {len(COLUMNS)}"
        return
    row = dict(zip(COLUMNS, cells))
    code, ours = row["in the code"], row["ours"]
    for name in COLUMNS[1:-1]:
        if not row[name]:
            yield f"{where}: nothing under \"{name}\""
    if (code == NOT_YET) != (state == "no"):
        yield f"{where}: \"{code}\", but the table of mechanisms says \"{state}\""
    if code != NOT_YET and not any(PLACE.match(span) for span in SPAN.findall(code)):
        yield f"{where}: expected \"{NOT_YET}\" or a place in the code"
    if code == NOT_YET and ours != "none":
        yield f"{where}: a number of ours for what is not there yet"
    if code != NOT_YET and not row["why they differ"]:
        yield f"{where}: does not say why the numbers differ"
    if re.search(r"\d", ours) and not any(is_command(span) for span in SPAN.findall(ours)):
        yield f"{where}: a number of ours without the command it comes from"
    missing = set(SCENARIO.findall(scenarios)) - set(SCENARIO.findall(row["shown by"]))
    for name in sorted(missing):
        yield f"{where}: {name} is not under \"shown by\""


def check(sources, read):
    mechanisms = {cells[0]: cells for cells in table(sources, "what it is")}
    rows = table(sources, "mechanism")
    expected = [f"P{n}" for n in range(1, N_MECHANISMS + 1)]
    if [cells[0] for cells in rows] != expected:
        yield f"SOURCES.md: rows {' '.join(cells[0] for cells in rows)}, expected {expected[0]} to {expected[-1]}"
        return
    for cells in rows:
        known = mechanisms.get(cells[0])
        if not known:
            yield f"SOURCES.md, {cells[0]}: not in the table of mechanisms"
            continue
        yield from check_row(cells, f"SOURCES.md, {cells[0]}", known[-1], known[3], read)
    for span in SPAN.findall(sources):
        yield from check_span(span, "SOURCES.md", read)


def check_rooms(architecture, layers):
    """The table of rooms agrees with tests/layers.txt."""
    rooms = dict(re.findall(r"^(\w+):[ ]*(.*)$", layers, re.MULTILINE))
    shown = {m[1]: m[2].strip() for m in re.finditer(r"^\| `src/(\w+)` \|.*\|([^|]*)\|$", architecture, re.MULTILINE)}
    for room in sorted(set(rooms) | set(shown)):
        if rooms.get(room) != shown.get(room):
            yield f"ARCHITECTURE.md: {room} may include \"{shown.get(room)}\", tests/layers.txt says \"{rooms.get(room)}\""


def check_architecture(text, exists):
    """`exists(path)` returns whether there is such a file or folder."""
    n = len(text.split())
    if n > WORDS_MAX:
        yield f"ARCHITECTURE.md: {n} words, at most {WORDS_MAX}"
    for span in SPAN.findall(text):
        if re.match(r"(src|tests|man|include)/[\w./-]+$", span) and not exists(span):
            yield f"ARCHITECTURE.md: {span} does not exist"


def test_ourselves():
    files = {"src/a/x.c": "int f (void);\n", "tests/unit/a/test-x.c": "", "tests/bench/null.py": ""}.get
    lint.self_test(
        lambda span: check_span(span, "here", files),
        [
            (("src/a/x.c",), None),
            (("src/a/x.c: f()",), None),
            (("meson test a/x",), None),
            (("./dev bench null --json",), None),
            (("NodeLimit=",), None),
            (("src/a/y.c: f()",), "src/a/y.c does not exist"),
            (("src/a/x.c: g()",), "has no g()"),
            (("meson test a/y",), "tests/unit/a/test-y.c, which does not exist"),
            (("./dev lab run steal",), "tests/vm/cases/steal.case, which"),
            (("./dev lint",), "could be checked"),
        ],
    )
    good = ["P1", "map", "series", "`src/a/x.c: f()`", "S-X", "1", "2 (`meson test a/x`)", "because"]
    lint.self_test(
        lambda state, scenarios, changes: check_row(
            [changes.get(i, cell) for i, cell in enumerate(good)], "here", state, scenarios, files
        ),
        [
            (("active", "S-X", {}), None),
            (("no", "S-X", {3: NOT_YET, 6: "none", 7: ""}), None),
            (("active", "S-X", {6: "none"}), None),
            (("active", "S-X", {2: ""}), 'nothing under "text"'),
            (("no", "S-X", {}), "table of mechanisms says"),
            (("active", "S-X", {3: NOT_YET, 6: "none"}), "table of mechanisms says"),
            (("active", "S-X", {3: "somewhere"}), "a place in the code"),
            (("no", "S-X", {3: NOT_YET}), "what is not there yet"),
            (("active", "S-X", {6: "2"}), "without the command"),
            (("active", "S-X", {7: ""}), "why the numbers differ"),
            (("active", "S-X, S-Y", {}), "S-Y is not"),
        ],
    )
    lint.self_test(
        lambda text: check_architecture(text, lambda path: path in ("src/a/", "src/a/x.c")),
        [
            (("`src/a/` and `src/a/x.c`, `a: b`",), None),
            (("`src/a/y.c`",), "src/a/y.c does not exist"),
            (("word " * (WORDS_MAX + 1),), f"at most {WORDS_MAX}"),
        ],
    )
    lint.self_test(
        check_rooms,
        [
            (("| `src/a` | words | |\n| `src/b` | words | a |\n", "a:\nb:  a\n"), None),
            (("| `src/a` | words | |\n", "a:\nb:  a\n"), "b may include"),
            (("| `src/a` | words | b |\n", "a:\n"), "a may include"),
        ],
    )
    head = "| | mechanism | b |\n|---|---|---|\n"
    lint.self_test(
        lambda text: [] if table(text, "mechanism") == [["P1", "x", "y"]] else ["rows"],
        [((head + "| P1 | x | y |\n\n| P2 | x | y |\n",), None), (("| | other |\n|---|---|\n| P1 | x | y |\n",), "rows")],
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    def read(path):
        return lint.read(root, path) if os.path.isfile(os.path.join(root, path)) else None

    sources = lint.read(root, "SOURCES.md")
    architecture = lint.read(root, "ARCHITECTURE.md")
    problems = list(check(sources, read))
    problems += check_architecture(architecture, lambda path: os.path.exists(os.path.join(root, path)))
    problems += check_rooms(architecture, lint.read(root, "tests/layers.txt"))
    lint.finish(problems, len(table(sources, "mechanism")))


main()
