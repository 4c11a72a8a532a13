#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplace-json(5) describes every key that the code puts into a dictionary, with its type, and no other.

A call that writes a key is one of the functions in DAEMON and CTL, or of a function that passes a parameter on to one of
them as its key: put(dict, "gain_waits_permille", "gain_waits_noise_permille", mean). Keys that are neither a literal nor
such a parameter are made at run time, and each has to be in MADE, with the reason why the page need not list it.

usage: keys.py SOURCE_ROOT
"""

import re
import sys

import lint

PAGE = "man/numaplace-json.5"

# Functions that write, and the type of the value; the key is the second argument.
DAEMON = {"dict_string": "s", "dict_text": "s", "dict_cpus": "s", "dict_nodes": "s", "dict_bool": "b", "dict_i32": "i",
          "dict_node_of": "i", "dict_u32": "u", "dict_u64": "t", "dict_strings": "as", "dict_numbers": "au",
          "dict_counters": "a{st}", "dict_list_begin": "aa{sv}"}
# JSON does not distinguish integer types, and the code does not show the type of a variable. None: any type.
CTL = {"json_set_text": "string", "json_set_set": "string", "json_set_nodes": "string", "json_set_number": "number",
       "json_set": None, "json_object_object_add": None}
VALUES = {"boolean": "boolean", "int": "number", "int64": "number", "uint64": "number", "double": "number", "string": "string"}
JSON = {"s": "string", "b": "boolean", **dict.fromkeys("iuxtd", "number")}

# Where they are defined.
NOT_READ = {"src/daemon/views/dict.c", "src/ctl/ctl.c:json_set", "src/ctl/ctl.c:json_set_number", "src/ctl/ctl.c:json_set_set",
            "src/ctl/ctl.c:json_set_nodes", "src/ctl/ctl.c:json_set_text"}

# Keys made at run time: where, and as what expression.
MADE = {
    ("src/ctl/bus-json.c", "key"): "keys of the bus, printed as they are",
    ("src/ctl/verbs/metrics.c", "labels[i]"): "labels belong to a metric's name; the page names them under labels",
    ("src/ctl/verbs/simulate/simulate.c", "sim_metric_names[m]"): "numaplace.scenario(5) has them; a unit test compares",
    ("src/ctl/verbs/simulate/simulate.c", "spec->workloads[w].name"): "the user's own names",
}

# The sections of the page that list the keys of a file, or of one of its functions.
VIEWS = "src/daemon/views/"
VERBS = "src/ctl/verbs/"
SECTIONS = {
    "src/daemon/manager/assign.c": ["Assignment"],
    "src/daemon/manager/fence.c:describe_host": ["Status"],
    "src/daemon/manager/fence.c:describe_means": ["Means"],
    "src/daemon/manager/neighbours.c": ["Status"],
    VIEWS + "describe-evidence.c": ["Use"],
    VIEWS + "describe-evidence.c:describe_use": ["Task"],
    VIEWS + "describe-memory.c": ["Memory"],
    VIEWS + "describe-memory.c:put_node": ["Memory", "Status"],
    VIEWS + "describe-memory.c:describe_free_memory": ["Status"],
    VIEWS + "describe-memory.c:describe_mover": ["Status"],
    VIEWS + "describe-past.c:describe_move": ["Move"],
    VIEWS + "describe-past.c:put_row": ["Step"],
    VIEWS + "describe-past.c:put_step": ["Step"],
    VIEWS + "describe-past.c:describe_gain": ["Gain"],
    VIEWS + "describe-status.c": ["Status"],
    VIEWS + "describe-would.c": ["Would"],
    VIEWS + "describe.c:topology_nodes": ["Topology"],
    VIEWS + "describe.c:topology_llcs": ["Topology"],
    VIEWS + "describe.c:topology_domains": ["Topology"],
    VIEWS + "describe.c:describe_topology": ["Topology"],
    VIEWS + "describe.c:describe_cpus": ["CPU"],
    VIEWS + "describe.c:describe_cpu_loads": ["CPU loads"],
    VIEWS + "describe.c:workload_groups": ["Workload"],
    VIEWS + "describe.c:workload_keys": ["Workload"],
    VIEWS + "describe.c:describe_workload_keys": ["Workload"],
    VIEWS + "describe.c:list_groups": ["Group"],
    VIEWS + "describe.c:describe_leases": ["Lease"],
    VIEWS + "describe.c:describe_task": ["Task"],
    VIEWS + "explain.c": ["Explanation"],
    VIEWS + "explain.c:put_refusal": ["Refusal"],
    VIEWS + "explain.c:put_refusals": ["Explanation", "Workload"],
    "src/ctl/ctl.c:print_failure": ["Errors"],
    "src/ctl/top/snapshot.c": ["top"],
    VERBS + "diagnose.c": ["diagnose"],
    VERBS + "metrics.c": ["metrics"],
    VERBS + "policy/enable.c": ["enable and disable"],
    VERBS + "policy/list.c:add_policy": ["policy list"],
    VERBS + "policy/list.c": ["policy cat"],
    VERBS + "policy/match-report.c": ["policy match"],
    VERBS + "policy/verify.c": ["policy verify"],
    VERBS + "report/report.c": ["report"],
    VERBS + "simulate/replay.c": ["replay"],
    VERBS + "simulate/simulate.c": ["simulate"],
    VERBS + "topology.c": ["Topology"],
}

DEFINITION = re.compile(r"^(static )?(?:inline )?[\w ]+[ *](\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
CALL = re.compile(STRING.pattern + r"|\b(\w+)\(")
NOISE = re.compile(STRING.pattern + r"|'(?:[^'\\]|\\.)'|/\*.*?\*/", re.DOTALL)


def arguments(text, start):
    """The arguments of the call whose opening parenthesis is before `start`."""
    found, depth, begin, i = [], 0, start, start
    while i < len(text):
        if text[i] == '"':
            i = STRING.match(text, i).end()
            continue
        if depth == 0 and text[i] in ",)":
            found.append(" ".join(text[begin:i].split()))
            begin = i + 1
            if text[i] == ")":
                return found
        depth += (text[i] in "([{") - (text[i] in ")]}")
        i += 1
    return found


class Function:
    def __init__(self, path, match):
        self.path, self.static, self.name = path, match[1], match[2]
        self.parameters = [re.split(r"[ *]", p.split("[")[0])[-1] for p in arguments(match[3] + ")", 0)]
        self.calls = [(call[1], arguments(match[4], call.end())) for call in CALL.finditer(match[4]) if call[1]]
        # A function of its file only, or a global one.
        self.key = (path if self.static else None, self.name)


def functions(sources):
    for path, text in sources.items():
        text = NOISE.sub(lambda m: m[0] if m[0][0] == '"' else "0", text)
        for match in DEFINITION.finditer(text):
            function = Function(path, match)
            if path not in NOT_READ and f"{path}:{function.name}" not in NOT_READ:
                yield function


def types_of(call, types):
    """What a call writes, as far as this can be determined."""
    made = re.match(r"json_object_new_(\w+)\(", call[2]) if len(call) > 2 else None
    return {VALUES.get(made[1])} if types == {None} and made else types


def find_keys(sources, base, made):
    """[(function, key, types)]. Functions that pass a parameter on as the key become writers, until there are no
    more."""
    writers = {(None, name): {1: {kind}} for name, kind in base.items()}
    every = list(functions(sources))
    found, before = [], None
    while before != str(writers):
        before, found = str(writers), []
        for function in every:
            for name, call in function.calls:
                positions = writers.get((function.path, name)) or writers.get((None, name), {})
                for position, types in list(positions.items()):
                    key, types = call[position], types_of(call, types)
                    if key in function.parameters and (function.path, key) not in made:
                        own = writers.setdefault(function.key, {}).setdefault(function.parameters.index(key), set())
                        own |= types
                    elif key != "NULL":
                        found.append((function, key, types))
    return found


def sections_of(page):
    """{section: {key: types}} of the two parts that describe dictionaries."""
    part = re.search(r"^\.Sh BUS DICTIONARIES\n(.*?)^\.Sh (?!DICTIONARIES)", page, re.MULTILINE | re.DOTALL)
    sections = {}
    for title, text in re.findall(r"^\.Ss (.*)\n((?:(?!\.S[sh] ).*\n)*)", part[1] if part else "", re.MULTILINE):
        keys = sections.setdefault(title, {})
        for item in re.findall(r"^\.It (.*)", text, re.MULTILINE):
            for key, kind in re.findall(r"\bSy (\w+) No (\S+)", item):
                keys.setdefault(key, set()).add(kind)
    return sections


def missed(sources, base):
    """Calls that are not in a function recognized here."""
    for path, text in sources.items():
        if path not in {name.split(":")[0] for name in NOT_READ}:
            text = NOISE.sub(lambda m: m[0] if m[0][0] == '"' else "0", text)
            n = sum(call[1] in base for call in CALL.finditer(text))
            seen = sum(name in base for function in functions({path: text}) for name, _ in function.calls)
            if seen != n:
                yield f"{path}: {n - seen} of {n} calls that write a key are in no function that is recognized"


def agree(written, described, base):
    if base is DAEMON:
        return written == described
    described = {JSON.get(kind) for kind in described}
    return written - {None} <= described if None in written else written == described


def check(page, daemon, ctl, sections, made):
    described = sections_of(page)
    described_by = dict.fromkeys(described, False)
    for base, sources in ((DAEMON, daemon), (CTL, ctl)):
        written = {}
        yield from missed(sources, base)
        for function, key, types in find_keys(sources, base, made):
            where = f"{function.path}:{function.name}"
            titles = sections.get(where) or sections.get(function.path)
            if not key.startswith('"'):
                if (function.path, key) not in made:
                    yield f"{where}: the key {key} is made at run time: {PAGE} cannot be compared with it"
            elif not titles:
                yield f"{where}: writes {key}, and SECTIONS does not say where {PAGE} has it"
            for title in titles or () if key.startswith('"') else ():
                written.setdefault(title, {}).setdefault(key.strip('"'), set()).update(types)
        for title, keys in written.items():
            page_keys = described.get(title, {})
            described_by[title] = True
            for key in sorted(set(keys) - set(page_keys)):
                yield f"{PAGE}: {title} has no {key}, which the code writes"
            for key in sorted(set(page_keys) - set(keys)):
                yield f"{PAGE}: {title} has {key}, which no code writes"
            for key in sorted(set(keys) & set(page_keys)):
                if not agree(keys[key], page_keys[key], base):
                    yield (f"{PAGE}: {title} has {key} as {' and '.join(sorted(page_keys[key]))}, "
                           f"the code writes {' and '.join(sorted(str(kind) for kind in keys[key]))}")
    yield from (f"{PAGE}: no code writes anything of {title}" for title, known in described_by.items() if not known)


def test_ourselves():
    def page(bus, verb=""):
        return (f".Sh BUS DICTIONARIES\n.Ss Status\n.Bl -tag\n{bus}.El\n.Sh DICTIONARIES OF NUMAPLACECTL\n"
                f".Ss top\n.Bl -tag\n{verb}.El\n.Sh SEE ALSO\n.It Sy other No s\n")

    daemon = {"d.c": 'static void put(Dict *dict, const char *key)\n{\n    dict_u32(dict, key, 1); /* "no" */\n}\n'
                     'void status(Dict *dict)\n{\n    put(dict, "a");\n    dict_list_begin(dict, NULL);\n'
                     '    dict_string(dict, "b", "x, \\"y\\")");\n}\n'}
    ctl = {"c.c": 'int top(json_object *o)\n{\n    return json_set(o, "n", json_object_new_int(f(1, 2))) < 0 ||\n'
                  '           json_set(o, "l", list) < 0;\n}\n'}
    good, verb = ".It Sy a No u , Sy b No s\nText.\n", ".It Sy n No t\n.It Sy l No aa{sv}\n"
    sections, both = {"d.c": ["Status"], "c.c": ["top"]}, page(good, verb)

    def more(body):
        return {"d.c": daemon["d.c"] + f"void more(Dict *dict, int i)\n{{\n    {body}\n}}\n"}

    lint.self_test(
        check,
        [
            ((both, daemon, ctl, sections, {}), None),
            ((page(".It Sy b No s\n", verb), daemon, ctl, sections, {}), "Status has no a, which the code writes"),
            ((page(good + ".It Sy c No s\n", verb), daemon, ctl, sections, {}), "Status has c, which no code writes"),
            ((page(good.replace("a No u", "a No t"), verb), daemon, ctl, sections, {}), "Status has a as t, the code writes u"),
            ((page(good + ".It Sy b No t\n", verb), daemon, ctl, sections, {}), "Status has b as s and t, the code writes s"),
            ((page(good, verb.replace("n No t", "n No s")), daemon, ctl, sections, {}), "top has n as s, the code writes number"),
            ((page(good, ".It Sy n No t\n"), daemon, ctl, sections, {}), "top has no l, which the code writes"),
            ((both, more('dict_bool(dict, "d", true);'), ctl, sections, {}), "Status has no d, which the code writes"),
            ((both, more("dict_bool(dict, names[i], true);"), ctl, sections, {}), "the key names[i] is made at run time"),
            ((both, more("dict_bool(dict, names[i], true);"), ctl, sections, {("d.c", "names[i]"): "why"}), None),
            ((both, {**daemon, "e.c": 'void e(Dict *d)\n{\n    dict_bool(d, "d", 1);\n}\n'}, ctl, sections, {}), "e.c:e: writes"),
            ((both, daemon, {}, sections, {}), "no code writes anything of top"),
            ((both, {**daemon, "e.c": 'MACRO(dict_bool(d, "d", 1))\n'}, ctl, sections, {}), "e.c: 1 of 1 calls"),
        ],
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    daemon, ctl = ({path: lint.read(root, path) for path in lint.walk(root, start) if path.endswith(".c")}
                   for start in ("src/daemon", "src/ctl"))
    problems = list(check(lint.read(root, PAGE), daemon, ctl, SECTIONS, MADE))
    # Names that no longer exist would hide what replaces them.
    every = {**daemon, **ctl}
    names = set(every) | {f"{function.path}:{function.name}" for function in functions(every)}
    problems += [f"SECTIONS: there is no {name}" for name in SECTIONS if name not in names]
    used = {(function.path, key) for base, sources in ((DAEMON, daemon), (CTL, ctl))
            for function, key, _ in find_keys(sources, base, MADE)}
    problems += [f"MADE: {path} has no {key}" for path, key in MADE if (path, key) not in used]
    lint.finish(problems, len(used))


main()
