#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the functions of src use each other: each is reachable from a main(), files do not need each other in circles, and no folder is
so full that one has to search in it.

usage: graph.py SOURCE_ROOT
"""

import os
import re
import sys

import lint

FILES_MAX = 20
CIRCLE_MAX = 2
# Functions that only tests and benchmarks reach, by file: they read from memory what programs read from files, or
# inspect what programs only use. Their number may only decrease.
UNREACHED = {
    "src/daemon/config.c": 1,
    "src/plan/pack/cost.c": 1,
    "src/sim/result.c": 1,
    "src/sim/scenario/scenario.c": 1,
    "src/world/touches.c": 2,
}

# The verbs of numaplacectl are in a table that the build makes from this list: ['policy list', 'verbs/policy/list.c'].
VERBS = "src/ctl/meson.build"
VERB = re.compile(r"^ *\['([a-z -]+)', '[\w/-]+\.c'\],$", re.MULTILINE)

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# Members of structures are not functions.
WORD = re.compile(r"(?<![.\w>])[A-Za-z_]\w*\b")
# Parameters and local variables hide functions of the same name.
DECLARED = re.compile(r"\b(?!return\b|else\b|case\b|goto\b)[A-Za-z_]\w*[\s*]+([a-z_]\w*)\s*(?=[,;)=\[])")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)\s*", re.DOTALL)
MACRO = re.compile(r"#[ \t]*define[ \t]+(\w+)(.*)", re.DOTALL)
FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\([^{}]*\)\s*\{", re.DOTALL)
VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*=")
INVOCATION = re.compile(r"([A-Z_]+)\s*\(([^{}=]*)\)\s*;?\s*$")


def items(text):
    """The top-level parts of a file, one by one: directives, declarations, definitions."""
    text = COMMENT_OR_TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    lines, item, depth = iter(text.split("\n")), [], 0
    for line in lines:
        if depth == 0 and line.lstrip().startswith("#"):
            while line.endswith("\\"):
                line = line[:-1] + "\n" + next(lines)
            yield line.strip()
            continue
        item.append(line)
        depth += line.count("{") - line.count("}")
        stripped = line.rstrip()
        done = stripped.endswith(";") or stripped == "}" or (stripped.endswith(")") and INVOCATION.match("\n".join(item).strip()))
        if depth == 0 and done:
            yield "\n".join(item).strip()
            item = []


def parse(path, text):
    """(name, whether it is static, whether it is code, words) of the definitions of a file."""
    for item in items(text):
        item = ATTRIBUTE.sub("", item)
        head = item.split("{")[0]
        macro, variable, invocation = MACRO.match(item), VARIABLE.search(head), INVOCATION.match(item)
        local = path.endswith(".c") and bool(re.match(r"(?:static|typedef)\b", item))
        if macro:
            yield macro[1], path.endswith(".c"), False, set(WORD.findall(macro[2]))
        elif item.startswith(("#", "static_assert")):
            continue
        elif invocation:
            # DEFINE_CLEANUP(Type *, thing_free) makes thing_free_p().
            for word in WORD.findall(invocation[2]):
                yield word + "_p", path.endswith(".c"), False, {word}
        elif variable and "(" not in head[:variable.start()]:
            yield variable[1], local, False, set(WORD.findall(item))
        elif FUNCTION.search(item) and not item.startswith(("struct", "typedef", "enum", "union")):
            yield FUNCTION.search(item)[1], local, True, words_of(item)
        elif function_of_struct(item):
            yield function_of_struct(item), local, True, words_of(item)


def words_of(function):
    return set(WORD.findall(function[function.index("{"):])) - set(DECLARED.findall(function))


def function_of_struct(item):
    """The name of a function that returns a struct, which begins like a definition of a struct."""
    found = re.match(r"(?:struct|enum|union)\s+\w+[\s*]+(\w+)\s*\([^{}]*\)\s*\{", item)
    return found and found[1]


class Graph:
    def __init__(self, sources):
        """`sources`: {path: text}"""
        self.words, self.code, self.shared = {}, set(), {}
        for path, text in sources.items():
            for name, local, code, words in parse(path, text):
                key = (path, name)
                self.words[key] = self.words.get(key, set()) | words
                if code:
                    self.code.add(key)
                if not local and name != "main":
                    self.shared[name] = key
        self.uses = {key: {found for word in words if (found := self.find(key[0], word)) and found != key}
                     for key, words in self.words.items()}

    def find(self, path, word):
        return (path, word) if (path, word) in self.words else self.shared.get(word)

    def reached(self):
        seen, todo = set(), [key for key in self.words if key[1] == "main"]
        while todo:
            key = todo.pop()
            if key not in seen:
                seen.add(key)
                todo += self.uses[key]
        return seen

    def unreached(self):
        seen = self.reached()
        return sorted(key for key in self.code if key not in seen)

    def files(self):
        """{file: the files it needs functions or variables of}, without headers"""
        needs = {}
        for (path, _), uses in self.uses.items():
            needs.setdefault(path, set()).update(other for other, _ in uses if other != path and other.endswith(".c"))
        return {path: others for path, others in needs.items() if path.endswith(".c")}


def circles(needs):
    """Tarjan's strongly connected components of more than one file."""
    index, low, stack, found = {}, {}, [], []

    def visit(path):
        index[path] = low[path] = len(index)
        stack.append(path)
        for other in sorted(needs.get(path, ())):
            if other not in index:
                visit(other)
                low[path] = min(low[path], low[other])
            elif other in stack:
                low[path] = min(low[path], index[other])
        if low[path] == index[path]:
            at = stack.index(path)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for path in sorted(needs):
        if path not in index:
            visit(path)
    return found


def check_reached(sources, allowed=None):
    by_file = {}
    for path, name in Graph(sources).unreached():
        by_file.setdefault(path, []).append(name)
    for path in sorted({*by_file, *(allowed or {})}):
        names, n = by_file.get(path, []), (allowed or {}).get(path, 0)
        if len(names) > n:
            yield f"{path}: reachable from no main(): {', '.join(f'{name}()' for name in names)}"
        elif len(names) < n:
            yield f"{path}: {len(names)} functions are reachable from no main(), and UNREACHED says {n}: take that back"


def check_circles(sources):
    for circle in circles(Graph(sources).files()):
        if len(circle) > CIRCLE_MAX:
            yield f"{len(circle)} files need each other in a circle: {' '.join(circle)}"


def check_folders(counts):
    for folder, n in sorted(counts.items()):
        if n > FILES_MAX:
            yield f"{folder} has {n} source files: expected at most {FILES_MAX}"


def verb_table(text):
    """The table that the build makes from the list of verbs."""
    rows = ["&ctl_verb_" + re.sub(r"\W", "_", name) for name in VERB.findall(text)]
    return f"const CtlVerbRow *const ctl_verbs[] = {{{', '.join(rows)}, NULL}};\n"


def test_ourselves():
    used = {"src/a/a.c": "static int two(void)\n{\n    return one;\n}\n\nint main(void)\n{\n    return two();\n}\n"}
    other = "int three(void)\n{\n    /* two() */\n    return 3;\n}\n"
    table = "static const Op all[] = {{three}};\n\nint main(void)\n{\n    return all[0]();\n}\n"
    freed = "DEFINE_CLEANUP(Thing *, three)\n\nint main(void)\n{\n    CLEANUP(three_p) Thing *x;\n}\n"
    walk = "int main(void)\n{\n    return ctl_verbs[0]->run();\n}\n"
    verb = "static int three(void)\n{\n    return 3;\n}\n\nconst CtlVerbRow ctl_verb_a_b = {\n    .run = three,\n};\n"
    listed = {"src/a/a.c": walk, "src/a/b.c": verb, "src/a/t.c": verb_table("v = [\n    ['a b', 'verbs/b.c'],\n]\n")}
    back = "int three(void)\n{\n    return four();\n}\n"
    forth = "int four(void)\n{\n    return three();\n}\n"
    on = "int five(void)\n{\n    return three();\n}\nint four(void)\n{\n    return five();\n}\n"
    lint.self_test(check_reached, [
        ((used,), None),
        ((used | {"src/a/b.c": other},), "reachable from no main(): three()"),
        (({"src/a/a.c": table, "src/a/b.c": other},), None),
        (({"src/a/a.c": freed, "src/a/b.c": other},), None),
        ((used | {"src/a/b.c": other}, {"src/a/b.c": 1}), None),
        ((used, {"src/a/b.c": 1}), "0 functions are reachable from no main(), and UNREACHED says 1"),
        ((listed,), None),
        ((listed | {"src/a/t.c": verb_table("v = [\n    ['a', 'verbs/b.c'],\n]\n")},), "src/a/b.c: reachable from no main(): three()"),
        ((used | {"src/a/b.c": "struct S three(void)\n{\n}\n"},), "main(): three()"),
    ])
    lint.self_test(check_circles, [
        (({"src/a/a.c": back, "src/a/b.c": forth},), None),
        (({"src/a/a.c": back, "src/a/b.c": forth.replace("three", "five"), "src/a/c.c": on.split("int four")[0]},),
         "3 files need each other"),
        (({"src/a/a.c": back, "src/a/b.c": on},), None),
    ])
    lint.self_test(check_folders, [(({"src/a": FILES_MAX},), None), (({"src/a": FILES_MAX + 1},), "src/a has 21")])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    sys.setrecursionlimit(10000)
    test_ourselves()
    # The other half of an optional part has the same functions again.
    paths = [path for path in lint.walk(root, "src") if path.endswith((".c", ".h")) and not path.endswith("-none.c")]
    sources = {path: lint.read(root, path) for path in paths}
    sources["src/ctl/verb-table.c"] = verb_table(lint.read(root, VERBS))
    folders = [os.path.dirname(path) for path in paths]
    problems = [*check_folders({folder: folders.count(folder) for folder in folders}), *check_circles(sources),
                *check_reached(sources, UNREACHED)]
    lint.finish(problems, len(paths))


main()
