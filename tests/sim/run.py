#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a scenario of this directory, whose expectations must hold for at least 20 seeds, and its twins: the same with its
mechanism switched off, whose expectations must fail. A scenario that holds without what it is about shows nothing.

usage: run.py NUMAPLACECTL NAME [SEEDS]    the scenario NAME.scenario, with no more seeds than that, and its twins
       run.py --complete NAME...           every scenario of this directory is among the names, and has a twin

NUMAPLACE_SIM_SEEDS in the environment is a number of seeds, too; the smaller one counts.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SEEDS_MIN = 20
SEEDS_TWIN = 5  # one failure is enough, but it may be in any of them

# Scenarios that are compared with the lab.
LAB_TWINS = [
    ("all memory is near", {"RemoteLatencyNSec=900": "RemoteLatencyNSec=450"}),
    ("threads touch their own memory first, where they run", {"FirstTouch=process": "FirstTouch=thread", "StartNodes=0": ""}),
    ("no lending", {"Scope=machine": "Steal=no"}),
]

# Changes that switch off the mechanism: line of the scenario -> line of the twin, wherever it is. The first element
# names the mechanism.
TWINS = {
    "homes-churn": [
        ("nobody has a home", {"Mode=auto": "Mode=none"}),
        ("all groups have one home", {"GroupBy=process": "GroupBy=workload"}),
    ],
    "homes-freeze": [
        ("it has too little memory to converge", {"PrivateMemory=64M": "PrivateMemory=15M"}),
    ],
    "homes-grow": [
        ("nobody has a home", {"Mode=auto": "Mode=none"}),
        ("never a second node", {"Mode=auto": "Mode=auto\nMaxNodes=1"}),
    ],
    "homes-loans": [
        ("nothing is lent", {"Scope=machine": "Steal=no"}),
        ("never a second node", {"Policies=job": "Policies=bound"}),
    ],
    "homes-revert": [
        ("what was done is not looked at again", {"SettleSec=5s": "SettleSec=1h"}),
    ],
    "homes-wide": [
        ("nobody has a home", {"Mode=auto": "Mode=none"}),
        ("homes for all together", {"GroupBy=process": "GroupBy=workload"}),
    ],
    "lab-multi-heap": LAB_TWINS,
    "lab-numa01": LAB_TWINS,
    "lab-numa01-thread-alloc": LAB_TWINS,
    "lab-numa02": LAB_TWINS,
    "lab-steal": [
        ("no lending", {"LeaseSec=60s": "Steal=no"}),
    ],
    "s-apart": [
        ("no thread has a node", {"[Variant write]": "[Variant write]\nOff=apart stays"}),
        ("it is not known whose memory it is", {"Evidence=write": "Evidence=residency"}),
        ("memory stays where it is", {"Evidence=write": "Evidence=write\nFollow=no"}),
    ],
    "s-back": [("what has moved stays for a minute", {"Mode=auto": "Mode=auto\nMinResidencySec=1min"})],
    "s-near": [("being apart costs the same where all is near", {"Policies=auto": "Policies=auto\nOff=sorted"})],
    "s-stays": [("memory stays where it is", {"Policies=auto": "Policies=auto\nOff=stays"})],
    "s-streams": [
        ("what is used alone counts as shared", {"[Variant gathered-auto]": "[Variant gathered-auto]\nOff=alone"}),
        ("it is not known who uses what", {"Mode=auto": "Mode=auto\n[Policy each Memory]\nEvidence=residency"}),
    ],
    "s-feed": [
        ("no thread has a node", {"Mode=spread": "Mode=fixed\nNodes=0-3"}),
        ("no feedback", {"ScanSize=512M": "ScanSize=512M\nScanFeedback=no"}),
        ("no new phase", {"PhaseSec=40s": "PhaseSec=0"}),
    ],
    "s-fork": [
        ("the new rule allows what the old one did", {"ForkImbalance=new": "ForkImbalance=old"}),
        ("threads are awake when they are born", {"AsleepSec=50ms": "AsleepSec=0"}),
    ],
    "s-flip": [("nobody has a home", {"Mode=auto": "Mode=none"})],
    "s-fork-homes": [
        ("nobody has a home", {"Mode=spread": "Mode=none"}),
        ("nobody is spread", {"Mode=spread": "Mode=compress"}),
        ("a single thread may share its memory", {"[Variant auto]": "[Variant auto]\nOff=alone"}),
    ],
    "s-hyst": [("no veto", {"NiceTries=2": "NiceTries=0"})],
    "s-hyst-homes": [("any gain is enough", {"MinGainPermille=30": "MinGainPermille=0"})],
    "s-ilv": [
        ("nearly all of it may stay on one node", {
            "Mode=auto": "Mode=auto\n[Policy auto Memory]\nEvenOut=no\nEvidence=residency",
        }),
        ("spread, but not dealt out", {
            "Mode=interleave": "Mode=spread",
            "[Policy interleave Placement]": "[Policy interleave Memory]\nEvidence=residency\n[Policy interleave Placement]",
        }),
        ("the narrow one needs both nodes", {"Threads=8": "Threads=16"}),
    ],
    "s-jvm": [("nobody has a home", {"Mode=auto": "Mode=none"})],
    "s-ovl": [("nobody looks at the CPUs", {"Daemon=yes": "Daemon=no"})],
    "s-own": [
        ("both are brought together at once", {"Daemon=yes": "Off=await-apart"}),
        ("nobody sees who uses what", {"Mode=auto": "Mode=auto\n[Policy auto Memory]\nEvidence=residency"}),
        ("what each has touched is elsewhere", {"FirstTouch=thread": "FirstTouch=process"}),
    ],
    "s-cache": [
        ("it stays on one node", {"Policies=auto": "Policies=auto\nOff=stripe-shared"}),
        ("nobody sees that it is shared", {"Mode=auto": "Mode=auto\n[Policy auto Memory]\nEvidence=residency"}),
    ],
    "s-pressed": [
        ("what threads use alone presses on no node", {"Policies=auto": "Policies=auto\nOff=alone"}),
        ("P5 allows three on a node", {"Mode=auto": "Mode=auto\nAllowedImbalance=3"}),
    ],
    "s-buddies": [
        ("pairs are split", {"Daemon=yes": "Off=buddies"}),
        ("nobody sees who uses what", {"Mode=auto": "Mode=auto\n[Policy auto Memory]\nEvidence=residency"}),
        ("all share all", {"SharedBy=2": ""}),
    ],
    "s-teams": [
        ("teams are split", {"Daemon=yes": "Off=buddies"}),
        ("all share all", {"SharedBy=8": ""}),
    ],
    "s-neighbours": [("never a second node", {"Mode=auto": "Mode=auto\nMaxNodes=1"})],
    "s-siblings": [("never a second node", {"Mode=auto": "Mode=auto\nMaxNodes=1"})],
    "s-cpuset": [("all that is wanted in it counts on its nodes", {"Policies=auto": "Policies=auto\nOff=reach"})],
    "s-pairs-stay": [("they get the node of their memory", {"Policies=auto": "Policies=auto\nOff=here"})],
    "s-pairs-pool": [("threads with a node each keep them", {"Off=here": "Off=here pool"})],
    "s-ring-pool": [
        ("threads with a node each keep them", {"Policies=auto": "Policies=auto\nOff=pool"}),
        ("how fast they get on is not counted", {"[Workload ring]": "Counters=no\n[Workload ring]"}),
    ],
    "s-stall": [
        ("what is counted decides nothing", {"Policies=auto": "Policies=auto\nOff=stall"}),
        ("nothing is counted", {"[Workload work]": "Counters=no\n[Workload work]"}),
        ("they have ten misses at once", {"MemoryBound=3%": "MemoryBound=3%\nMissOverlap=10"}),
    ],
    "s-traffic": [
        ("what a node gives decides nothing", {"Policies=auto": "Policies=auto\nOff=traffic"}),
        ("firmware says that it gives more", {"FirmwareBandwidth=48G": "FirmwareBandwidth=400G"}),
        ("nothing is counted", {"[Workload streams]": "Counters=no\n[Workload streams]"}),
    ],
    "s-untold": [
        ("bandwidth decides nothing", {"Policies=auto": "Policies=auto\nOff=traffic"}),
        ("nothing is counted", {"NodeBandwidth=48G": "NodeBandwidth=48G\nCounters=no"}),
    ],
    "s-fed": [
        ("what a node gives decides nothing", {"Policies=auto": "Policies=auto\nOff=traffic"}),
        ("firmware does not say what it gives", {"FirmwareBandwidth=32G": ""}),
        ("nothing is counted", {"[Workload bound]": "Counters=no\n[Workload bound]"}),
    ],
    "s-lone": [("it stays together", {"Policies=auto": "Policies=auto\nOff=slower"})],
    "s-slower": [
        ("it stays together", {"Policies=auto": "Policies=auto\nOff=slower"}),
        (
            "nothing is counted",
            {"[Workload service]": "Counters=no\n[Workload service]"},
        ),
    ],
    "s-straddle": [("cpusets have whole nodes", {"Daemon=yes": "Off=reach"})],
    "s-one-too-many": [("nobody makes room", {"Policies=auto": "Policies=auto\nOff=push"})],
    "s-divided": [("no team has nodes", {"Daemon=yes": "Off=divided"}), ("all share all", {"SharedBy=3": ""})],
    "s-serial": [
        ("the first home is for one", {"Daemon=yes": "Off=begun"}),
        ("it is given at once", {"Daemon=yes": "Off=in-place"}),
        ("all are there from the beginning", {"SerialSec=1200ms": ""}),
    ],
    "s-spills": [("teams are whole", {"Daemon=yes": "Off=spill"})],
    "s-few": [("all are together", {"Daemon=yes": "Off=few"}), ("all share all", {"SharedBy=4": ""})],
    "s-bound": [("who is bound is not counted where it is", {"Daemon=yes": "Off=bound"})],
    "s-reach": [("all who wait for a CPU count on its node", {"Daemon=yes": "Off=reach"})],
    "s-newcomers": [("each job's memory lies apart from it", {"FirstTouch=thread": "FirstTouch=interleave"})],
    "s-others": [("what nobody manages does not count", {"Daemon=yes": "Off=others"})],
    "s-in-vain": [("all get a home", {"Daemon=yes": "Off=in-vain"})],
    "s-idle-core": [
        ("nobody is pushed", {"Daemon=yes": "Off=push"}),
        ("siblings cost nothing", {"Daemon=yes": "Off=siblings"}),
    ],
    "s-pauses": [("they want no more than on average", {"Daemon=yes": "Off=pauses"})],
    "s-pool": [("what they want at times is what they want", {"Daemon=yes": "Off=pauses"})],
    "s-parts": [("the cgroup is one group", {"Daemon=yes": "Off=parts"})],
    "s-widen": [("what each uses alone does not count", {"Daemon=yes": "Off=alone"})],
    "s-beside": [("what is wide gets a home of several nodes", {"[Variant blind]": "[Variant blind]\nOff=beside"})],
    "s-starves": [("it waits for its memory", {"Daemon=yes": "Off=starves"})],
    "s-level": [
        ("no thread changes its node", {"[Variant daemon]": "[Variant daemon]\nOff=relieve"}),
        ("it is not known who waits for memory", {"Counters=yes": "Counters=no"}),
    ],
    "s-room": [("threads go where others are", {"Daemon=yes": "Off=room"})],
    "s-pref": [
        ("nobody has a home", {"Mode=compress": "Mode=none"}),
        ("each for itself", {"GroupBy=workload": "GroupBy=process"}),
    ],
    "s-pinned": [
        ("memory stays", {"Policies=job": "Policies=job\nOff=pinned"}),
        ("it is there already", {"AffinitySec=10ms": ""}),
    ],
    "s-ping-pong": [
        ("one thread uses it all", {"Threads=16": "Threads=1"}),
        ("nobody looks who uses what", {"Evidence=write": "Evidence=residency"}),
    ],
    "s-push": [("nobody claims a core", {"IdleClaim=yes": "IdleClaim=no"})],
    "s-push-homes": [
        ("nobody has a home", {"Mode=auto": "Mode=none"}),
        ("homes where they were born", {"Mode=auto": "Mode=auto\nNodes=0"}),
    ],
    "s-rate": [
        ("memory stays", {"RateLimit=128M": "RateLimit=128M\nFollow=no"}),
        ("no rate", {"RateLimit=128M": "RateLimit=0"}),
    ],
    "s-retry": [
        ("nobody has a home", {"Mode=spread": "Mode=none"}),
        ("the first try is far ahead", {"MinAgeSec=0": "MinAgeSec=1h"}),
    ],
    "s-settle": [("the period is always the same", {"ScanMaxSec=1min": "ScanMaxSec=1s"})],
    "s-shell": [("short jobs are spread", {"Mode=auto": "Mode=interleave"})],
    "s-steal1": [("no stealing", {"Steal=yes": "Steal=no"})],
    "s-steal2": [
        ("no lending", {"Steal=yes": "Steal=no"}),
        ("nothing lent beyond the node", {"Scope=machine": "Scope=node"}),
    ],
    "s-swap": [("nobody has a home", {"Mode=auto": "Mode=none"})],
    "s-uneven": [
        ("nobody lives on loans", {"[Variant homes]": "[Variant homes]\nOff=loans"}),
        ("nobody has a home", {"Mode=auto": "Mode=none"}),
        ("nothing is lent, so it gets both nodes", {"Mode=auto": "Mode=auto\n[Policy p Steal]\nSteal=no"}),
    ],
    "s-veto": [("no veto", {"NiceTries=2": "NiceTries=0", "NiceTries=5": "NiceTries=0"})],
    "s-vma": [("no scan is completed by force", {"ForceComplete=yes": "ForceComplete=no"})],
    "s-vma-daemon": [
        ("no scan is completed by force", {"ForceComplete=yes": "ForceComplete=no"}),
        ("nobody looks who uses what", {"Evidence=write": "Evidence=residency"}),
        ("no thread has a node", {"Policies=forced": "Policies=forced\nOff=apart"}),
    ],
    "s-wa": [
        ("groups have no home", {"Mode=fixed": "Mode=none"}),
        ("stealing on any number of nodes", {"StealNodeLimit=2": "StealNodeLimit=8"}),
    ],
    "s-wa-homes": [
        ("groups have no home", {"Mode=compress": "Mode=none"}),
        ("all groups have one home", {"GroupBy=process": "GroupBy=workload"}),
    ],
}


def simulate(ctl, path, *options):
    """The JSON value of a run."""
    run = subprocess.run([ctl, "--json=short", "simulate", str(path), *options], capture_output=True, text=True,
                         check=False)
    # 1 is also the status of a failed expectation; a scenario that cannot be run prints no value.
    if run.returncode not in (0, 1) or not run.stdout:
        sys.exit(f"{path}: {run.stderr}")
    value = json.loads(run.stdout)
    assert value["held"] == (run.returncode == 0), run
    return value


def complain(value, what):
    print(f"# {what}")
    for e in value["expectations"]:
        print(f"#   line {e['line']}: {'held' if e['held'] else 'FAILED'}: {e['text']}: {e['cases_held']} of {e['cases']}, "
              f"found {e['median']} [{e['low']}..{e['high']}]")
    return 1


def run_scenario(ctl, path, seeds):
    value = simulate(ctl, path, *([f"--seeds={seeds}"] if seeds else []))
    least = seeds or SEEDS_MIN
    if value["seeds"] < least or not value["expectations"]:
        return complain(value, f"{path.name}: expected at least {least} seeds and one expectation")
    if not value["held"]:
        return complain(value, f"{path.name}: its expectations must hold")
    print(f"# {path.name}: {len(value['expectations'])} expectations hold for {value['seeds']} seeds")
    return 0


def twin_text(path, switches):
    lines = path.read_text(encoding="utf-8").splitlines()
    for line in switches:
        if line not in lines:
            sys.exit(f"{path}: the twin changes a line that is not there: {line}")
    return "".join(switches.get(line, line) + "\n" for line in lines)


def run_twin(ctl, path, what, switches):
    with tempfile.TemporaryDirectory(prefix="numaplace-sim-") as directory:
        twin = pathlib.Path(directory) / path.name
        twin.write_text(twin_text(path, switches), encoding="utf-8")
        value = simulate(ctl, twin, f"--seeds={SEEDS_TWIN}")
    if value["held"]:
        return complain(value, f"{path.name}, {what}: its expectations must fail")
    failed = sum(not e["held"] for e in value["expectations"])
    print(f"# {path.name}, {what}: {failed} of {len(value['expectations'])} expectations fail")
    return 0


def complete(names):
    there = {path.stem for path in HERE.glob("*.scenario")}
    if there != set(names):
        sys.exit(f"not run, or not there: {sorted(there ^ set(names))}")
    if not there or not all(TWINS.get(name) for name in there) or set(TWINS) != there:
        sys.exit(f"without a twin, or a twin without scenario: {sorted(set(TWINS) ^ there)}")


def main():
    if sys.argv[1:2] == ["--complete"]:
        return complete(sys.argv[2:])
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    ctl, name = sys.argv[1:3]
    limits = [*sys.argv[3:4], *filter(None, [os.environ.get("NUMAPLACE_SIM_SEEDS")])]
    seeds = min(map(int, limits)) if limits else None
    path = HERE / f"{name}.scenario"
    failures = run_scenario(ctl, path, seeds)
    for what, switches in TWINS[name]:
        failures += run_twin(ctl, path, what, switches)
    return 1 if failures else 0


sys.exit(main())
