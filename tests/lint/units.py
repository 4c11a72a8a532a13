#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The units are such that systemd understands, and shut in tightly; the daemon has the capabilities that its code needs and no others, and
the exporter has none.

usage: units.py SOURCE_ROOT NUMAPLACED NUMAPLACECTL EXPORTER
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

import lint

UNIT = "units/numaplaced.service.in"
EXPORTER, SOCKET = "units/numaplace-exporter.service.in", "units/numaplace-exporter.socket"
METRICS, METRICS_SOCKET = "units/numaplace-metrics@.service.in", "units/numaplace-metrics.socket"

# The highest allowed exposure in `systemd-analyze security`, in tenths.
EXPOSURE_MAX = {UNIT: 20, EXPORTER: 14, METRICS: 14}

# Code that needs a capability, or a system call that the other filters exclude. What is granted must be used, and
# what is used must be granted.
NEEDS = [
    ("CAP_SYS_NICE", None, r"SYS_sched_setaffinity|\b(?:sched_setaffinity|move_pages|numa_move_pages)\s*\("),
    ("CAP_SYS_PTRACE", None, r'"(?:exe|environ|numa_maps)"'),
    ("CAP_DAC_READ_SEARCH", None, r'"(?:environ|pagemap)"'),
    ("CAP_DAC_OVERRIDE", None, r'"clear_refs"'),
    ("CAP_SYS_RESOURCE", None, r"proc/pressure/cpu"),
    ("CAP_PERFMON", "perf_event_open", r"\bSYS_perf_event_open\b|__NR_perf_event_open\b"),
    ("CAP_SYS_ADMIN", None, r"\b(?:mount|setns|unshare)\s*\("),
    (None, "capset", r"\bSYS_capset\b"),
]


def settings(text, key):
    """All words given to a key, comments left out."""
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return [word for line in lines if line.startswith(key + "=") for word in line.partition("=")[2].split()]


def check_needs(unit, code):
    """`code` is {path: text} of the daemon's sources."""
    granted, filters = settings(unit, "CapabilityBoundingSet"), settings(unit, "SystemCallFilter")
    for capability in sorted(set(granted) - {need[0] for need in NEEDS}):
        yield f"{UNIT}: {capability} is granted, but tests/lint/units.py does not know what for"
    for capability, call, pattern in NEEDS:
        users = [path for path, text in code.items() if re.search(pattern, text)]
        if users and call and call not in filters:
            yield f"{UNIT}: {call} is not in SystemCallFilter=, but {users[0]} needs it"
        if call in filters and not users:
            yield f"{UNIT}: {call} is in SystemCallFilter=, but nothing in src needs it"
        if not capability:
            continue
        if capability in granted and not users:
            yield f"{UNIT}: {capability} is granted, but nothing in src needs it"
        if users and capability not in granted:
            yield f"{UNIT}: {capability} is not granted, but {users[0]} needs it"
        if capability in granted and not re.search(rf"^#   {capability}\s+\S", unit, re.MULTILINE):
            yield f"{UNIT}: {capability} is not explained in a comment"


def analyze(verb, files):
    """Runs systemd-analyze on the first of some units, {name: text}, which may refer to each other."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write(text)
        return subprocess.run(["systemd-analyze", "--no-pager", *verb, os.path.join(directory, next(iter(files)))], capture_output=True,
                              text=True, check=False)


def name_of(path):
    return os.path.basename(path).removesuffix(".in")


def check_verify(path, unit, **others):
    # Without the manual pages, which are not installed yet, and without problems in units of other projects.
    run = analyze(["verify", "--man=no", "--recursive-errors=no"], {name_of(path): unit, **others})
    said = (run.stdout + run.stderr).strip()
    if run.returncode != 0 or said:
        yield f"{path}: systemd-analyze verify: {said or run.returncode}"


def check_exposure(path, unit):
    run = analyze(["security", "--offline=yes", f"--threshold={EXPOSURE_MAX[path]}"], {name_of(path): unit})
    level = re.search(r"Overall exposure level.*: ([0-9.]+)", run.stdout)
    if run.returncode != 0 or not level:
        yield f"{path}: exposure {level[1] if level else run.stderr.strip()}, at most {EXPOSURE_MAX[path] / 10}"


def check_exporter(path, unit):
    """Reads from a socket and writes to another one."""
    if settings(unit, "CapabilityBoundingSet") or "CapabilityBoundingSet=" not in unit.split("\n") or settings(unit, "DynamicUser") != ["yes"]:
        yield f"{path}: expected DynamicUser=yes and no capability at all"


def check_names(read):
    """The files of the bus and of polkit have the names that the unit and the header have."""
    header = read("include/numaplace/bus.h")
    name = re.search(r'NUMAPLACE_BUS_NAME\s+"(.*)"', header)[1]
    actions = set(re.findall(r'NUMAPLACE_ACTION_\w+\s+"(.*)"', header))

    service = read("units/org.numaplace1.service")
    if settings(service, "Name") != [name]:
        yield f"units/org.numaplace1.service: expected Name={name}"
    if settings(service, "SystemdService") != settings(read(UNIT), "Alias"):
        yield f"units/org.numaplace1.service: SystemdService= is not the Alias= of {UNIT}"

    policy = ElementTree.fromstring(read("units/org.numaplace1.conf"))
    names = {rule.get("own") or rule.get("send_destination") or rule.get("receive_sender") for rule in policy.iter("allow")}
    if policy.tag != "busconfig" or names != {name}:
        yield f"units/org.numaplace1.conf: is about {', '.join(sorted(names))}, expected {name}"

    rules = ElementTree.fromstring(read("units/org.numaplace1.policy"))
    found = {action.get("id") for action in rules.iter("action")}
    if rules.tag != "policyconfig" or found != actions:
        yield f"units/org.numaplace1.policy: actions {sorted(found)}, expected {sorted(actions)}"


def test_ourselves(read):
    nice = "#   CAP_SYS_NICE  places\nCapabilityBoundingSet=CAP_SYS_NICE\nSystemCallFilter=@system-service\n"
    places = {"src/act/x.c": "syscall(SYS_sched_setaffinity, 1);"}
    samples = {"src/probe/x.c": "syscall(SYS_perf_event_open, 1);", **places}
    perf = nice.replace("=CAP_SYS_NICE", "=CAP_SYS_NICE CAP_PERFMON") + "#   CAP_PERFMON  samples\n"
    lint.self_test(
        check_needs,
        [
            ((nice, places), None),
            ((nice, {}), "CAP_SYS_NICE is granted, but nothing"),
            ((nice.replace("NICE\nS", "NICE CAP_KILL\nS"), places), "CAP_KILL is granted, but tests/lint/units.py"),
            ((nice.replace("#   CAP", "# CAP"), places), "CAP_SYS_NICE is not explained"),
            ((nice, {"src/probe/x.c": 'f("clear_refs")', **places}), "CAP_DAC_OVERRIDE is not granted, but src/probe/x.c"),
            ((perf, samples), "perf_event_open is not in SystemCallFilter="),
            ((perf + "SystemCallFilter=perf_event_open\n", samples), None),
            ((nice + "SystemCallFilter=capset\n", places), "capset is in SystemCallFilter=, but nothing"),
        ],
    )
    good = f"[Service]\nExecStart={sys.executable}\n"
    lint.self_test(
        check_verify,
        [
            ((UNIT, good), None),
            ((UNIT, good + "Frobnicate=yes\n"), "Frobnicate"),
            ((UNIT, "[Service]\nExecStart=/nonexistent/program\n"), "/nonexistent/program"),
        ],
    )
    lint.self_test(check_exposure, [((UNIT, good), "exposure 9"), ((EXPORTER, good), "at most 1.4")])
    alone = "DynamicUser=yes\nCapabilityBoundingSet=\n"
    lint.self_test(
        check_exporter,
        [
            ((EXPORTER, alone), None),
            ((EXPORTER, "DynamicUser=yes\n"), "no capability"),
            ((EXPORTER, alone + "CapabilityBoundingSet=CAP_KILL\n"), "no capability"),
            ((METRICS, "CapabilityBoundingSet=\n"), "DynamicUser=yes"),
        ],
    )
    changed = {"units/org.numaplace1.service": "Name=org.numaplace1\nSystemdService=other.service\n"}
    lint.self_test(
        check_names,
        [
            ((read,), None),
            ((lambda path: changed.get(path) or read(path),), "is not the Alias="),
            ((lambda path: read(path).replace('own="org.numaplace1"', 'own="org.x"'),), "org.numaplace1, org.x"),
            ((lambda path: read(path).replace('id="org.numaplace1.override"', 'id="org.x"'),), "actions ['org.numaplace1.m"),
        ],
    )


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    root, daemon, ctl, exporter = (os.path.abspath(path) for path in sys.argv[1:])

    def read(path):
        return lint.read(root, path)

    # The rooms of the daemon, and the settings it gets; numaplacectl runs elsewhere.
    code = {path: read(path) for path in lint.walk(root, "src") if path.endswith(".c") and not path.startswith("src/ctl/")}
    unit = read(UNIT)
    exports = {path: read(path) for path in (EXPORTER, METRICS)}
    problems = [*check_names(read), *check_needs(unit, code)]
    for path, text in exports.items():
        problems += check_exporter(path, text)
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not installed: the unit itself was not checked")
        if not problems:
            sys.exit(77)
        lint.finish(problems, 1)
    test_ourselves(read)

    unit = unit.replace("@sbindir@/numaplaced", daemon).replace("@bindir@/numaplacectl", ctl)
    problems += [*check_verify(UNIT, unit), *check_exposure(UNIT, unit)]
    for path, socket in ((EXPORTER, SOCKET), (METRICS, METRICS_SOCKET)):
        text = exports[path].replace("@bindir@/numaplace-exporter", exporter)
        problems += [*check_exposure(path, text), *check_verify(path, text, **{name_of(socket): read(socket)})]
    lint.finish(problems, 10)


main()
