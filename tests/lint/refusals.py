#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplaced(8) explains every reason of a refusal and every verdict of explain, numaplace-json(5) every rule of a move,
and no other.

usage: refusals.py SOURCE_ROOT
"""

import re
import sys

import lint

PAGE = "man/numaplaced.8"
MOVES = "man/numaplace-json.5"
REASONS = "src/plan/names.c"
VERDICTS = "src/daemon/views/explain.c"

REASON = re.compile(r'\[PLAN_REASON_\w+\]\s*=\s*\{\s*"([\w-]+)"')
RULE = re.compile(r'\[PLAN_RULE_\w+\]\s*=\s*\{\s*"([\w-]+)"')
VERDICT = re.compile(r'\(Verdict\)\s*\{\s*"([\w-]+)"')


def lists(page):
    """The lists of the section: for each, its items as (name, text)."""
    section = re.search(r"^\.Ss Refusals\n(.*?)(?=^\.S[sh] |\Z)", page, re.MULTILINE | re.DOTALL)
    for items in re.findall(r"^\.Bl .*?\n(.*?)^\.El$", section[1] if section else "", re.MULTILINE | re.DOTALL):
        yield re.findall(r"^\.It Ql ([\w-]+)\n(.*?)(?=^\.It |\Z)", items, re.MULTILINE | re.DOTALL)


def compare(names, source, page, path):
    for name in sorted(set(source) - set(names)):
        yield f"{page}: {name} of {path} is missing"
    for name in sorted(set(names) - set(source)):
        yield f"{page}: {path} has no {name}"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{page}: {name} is explained twice"


def check_rules(page, rules):
    section = re.search(r"^\.Ss Move\n(.*?)(?=^\.S[sh] |\Z)", page, re.MULTILINE | re.DOTALL)
    items = re.search(r"^\.It Sy rule .*?\n\.Bl .*?\n(.*?)^\.El$", section[1] if section else "", re.MULTILINE | re.DOTALL)
    names = re.findall(r"^\.It Ql ([\w-]+)$", items[1] if items else "", re.MULTILINE)
    yield from compare(names, RULE.findall(rules), MOVES, REASONS)


def check(page, reasons, verdicts):
    found = list(lists(page))
    if len(found) != 2:
        yield f"{PAGE}: {len(found)} lists of refusals, expected the reasons and the verdicts"
        return
    for items, source, path in zip(found, (REASON.findall(reasons), VERDICT.findall(verdicts)), (REASONS, VERDICTS)):
        yield from compare([name for name, _ in items], source, PAGE, path)
        for name, text in items:
            if len(re.findall(r"[.;] *$", text, re.MULTILINE)) < 2:
                yield f"{PAGE}: {name} needs a sentence on what it is and one on what to do"


def test_ourselves():
    def page(reasons, verdicts="z"):
        text = {name: f".It Ql {name}\nIt is.\nDo that.\n" for name in "abz"} | {"c": ".It Ql c\nIt is.\n"}
        parts = ["".join(text[name] for name in names) for names in (reasons, verdicts)]
        return ".Ss Refusals\n" + "".join(f".Bl -tag\n{part}.El\n" for part in parts) + ".Ss More\n.Bl -tag\n.El\n"

    source = '[PLAN_REASON_A] = {"a", "x"},\n[PLAN_REASON_B] =\n    {"b", "x"},'
    verdicts = 'return (Verdict){"z", "x"};'
    lint.self_test(
        check,
        [
            ((page("ab"), source, verdicts), None),
            ((page("a"), source, verdicts), "b of src/plan/names.c is missing"),
            ((page("abz"), source, verdicts), "names.c has no z"),
            ((page("aba"), source, verdicts), "a is explained twice"),
            ((page("ab", "za"), source, verdicts), "explain.c has no a"),
            ((page("abc"), source + '[PLAN_REASON_C] = {"c"', verdicts), "c needs a sentence"),
            ((page("ab").replace(".Ss Refusals", ".Ss Other"), source, verdicts), "0 lists"),
        ],
    )
    moves = ".Ss Move\n.It Sy rule No s\nIt:\n.Bl -tag\n.It Ql a\nIt is.\n.El\n.It Sy outcome No s\n.Bl -tag\n.It Ql z\n.El\n"
    rule = '[PLAN_RULE_A] = {"a", "x"},'
    lint.self_test(
        check_rules,
        [
            ((moves, rule), None),
            ((moves, rule + '[PLAN_RULE_B] = {"b", "x"},'), "b of src/plan/names.c is missing"),
            ((moves.replace(".El", ".It Ql b\n.El", 1), rule), "names.c has no b"),
            ((moves.replace("rule", "role"), rule), "a of src/plan/names.c is missing"),
        ],
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    page, names = lint.read(root, PAGE), lint.read(root, REASONS)
    problems = [*check(page, names, lint.read(root, VERDICTS)), *check_rules(lint.read(root, MOVES), names)]
    lint.finish(problems, len(REASON.findall(names)) + len(RULE.findall(names)))


main()
