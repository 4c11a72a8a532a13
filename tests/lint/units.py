#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The unit is one that systemd understands, is shut in tightly, and has the capabilities that the code needs and no others.

usage: units.py SOURCE_ROOT NUMAPLACED NUMAPLACECTL
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

# The exposure of `systemd-analyze security` that must not be passed, in tenths.
EXPOSURE_MAX = 20

# What the code does that needs a capability, or a system call that the other filters shut out. What is granted must be used,
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
    """`code` is {path: text} of what the daemon is made of."""
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


def analyze(verb, unit):
    """Runs systemd-analyze on the text of a unit."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "numaplaced.service")
        with open(path, "w", encoding="utf-8") as f:
            f.write(unit)
        return subprocess.run(["systemd-analyze", "--no-pager", *verb, path], capture_output=True, text=True, check=False)


def check_verify(unit):
    # Without the manual pages, which are not installed yet, and without what is wrong with other people's units.
    run = analyze(["verify", "--man=no", "--recursive-errors=no"], unit)
    said = (run.stdout + run.stderr).strip()
    if run.returncode != 0 or said:
        yield f"{UNIT}: systemd-analyze verify: {said or run.returncode}"


def check_exposure(unit):
    run = analyze(["security", "--offline=yes", f"--threshold={EXPOSURE_MAX}"], unit)
    level = re.search(r"Overall exposure level.*: ([0-9.]+)", run.stdout)
    if run.returncode != 0 or not level:
        yield f"{UNIT}: exposure {level[1] if level else run.stderr.strip()}, at most {EXPOSURE_MAX / 10}"


def check_names(read):
    """The files of the bus and of polkit name what the unit and the header name."""
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
            ((good,), None),
            ((good + "Frobnicate=yes\n",), "Frobnicate"),
            (("[Service]\nExecStart=/nonexistent/program\n",), "/nonexistent/program"),
        ],
    )
    lint.self_test(check_exposure, [((good,), "exposure 9")])
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
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, daemon, ctl = (os.path.abspath(path) for path in sys.argv[1:])

    def read(path):
        return lint.read(root, path)

    # What acts, probes and is the daemon, and what it is told by; numaplacectl runs elsewhere.
    code = {path: read(path) for path in lint.walk(root, "src") if path.endswith(".c") and not path.startswith("src/ctl/")}
    unit = read(UNIT)
    problems = [*check_names(read), *check_needs(unit, code)]
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not installed: the unit itself was not checked")
        if not problems:
            sys.exit(77)
        lint.finish(problems, 1)
    test_ourselves(read)

    unit = unit.replace("@sbindir@/numaplaced", daemon).replace("@bindir@/numaplacectl", ctl)
    problems += [*check_verify(unit), *check_exposure(unit)]
    lint.finish(problems, 4)


main()
