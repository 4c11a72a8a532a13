# SPDX-License-Identifier: LGPL-2.1-or-later
"""./dev lab bench placement: how long workloads take whose memory starts in the wrong place, by who puts that right.

A round is one guest in which every chosen workload runs once under every chosen system, on the same kernel command line;
what the systems are, and what is measured in the guest, is in cases/placement.py. Rounds begin with another system each.
"""

import argparse
import json
import math
import pathlib
import shlex
import statistics
from dataclasses import dataclass, field

from . import SUITES, LabError, case, note

WORKLOADS = ("numa01", "numa01-thread-alloc", "numa02", "multi-heap", "stream", "ping-pong", "phase-changer", "reader")
SYSTEMS = ("none", "kernel", "kernel-tuned", "numad", "numaplace", "hard")
REFERENCE = "hard"
MEMORY = ("main", "process")
# Two marks for each run; 254 and 255 are the warm-up's.
WINDOWS_MAX = 127
# By far more than any run takes, with --scale=1.
RUN_SEC = 60
LOCAL = ("user_local", "kernel_local", "line_local")
REMOTE = ("user_remote", "kernel_remote", "line_remote")


@dataclass
class Row:
    """A workload under a system: what its runs gave, and what went wrong."""

    workload: str
    system: str
    runs: list[dict] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def plan(workloads: list[str], systems: list[str], number: int, scale: float, memory: str) -> list[dict]:
    """The runs of a round, in order."""
    first = number % len(systems)
    turned = systems[first:] + systems[:first]
    pairs = [(workload, system) for workload in workloads for system in turned]
    if len(pairs) > WINDOWS_MAX:
        raise LabError(f"{len(pairs)} pairs of workload and system: expected up to {WINDOWS_MAX}")
    return [{"workload": workload, "system": system, "window": 2 * i, "scale": scale, "memory": memory}
            for i, (workload, system) in enumerate(pairs)]


def windows(lines: list[str]) -> dict[int, dict[str, int]]:
    """Window -> the counters of all CPUs between its two marks, out of the cost plugin's report."""
    marks = {}
    for line in lines:
        event = json.loads(line)
        if event["event"] == "mark":
            sums = {key: sum(cpu[key] for cpu in event["cpus"]) for key in (*LOCAL, *REMOTE)}
            marks[event["number"]] = sums
    return {number: {key: marks[number + 1][key] - start[key] for key in start}
            for number, start in marks.items() if number % 2 == 0 and number + 1 in marks}


def remote_share(counters: dict[str, int]) -> float | None:
    """Of the lines that came from a memory or from another CPU's cache, how many came from another node."""
    remote = sum(counters[key] for key in REMOTE)
    total = remote + sum(counters[key] for key in LOCAL)
    return remote / total if total else None


def collect(rows: dict[tuple[str, str], Row], pairs: list[dict], results: list[str], cost: list[str],
            problem: str) -> None:
    """Adds a round to the rows. What a guest that died did not get to has failed as well."""
    counters = windows(cost)
    missing = {(pair["workload"], pair["system"]) for pair in pairs}
    for line in results:
        run = json.loads(line)
        key = run["workload"], run["system"]
        missing.discard(key)
        if "error" in run:
            rows[key].errors.append(run["error"])
        elif run["window"] not in counters:
            rows[key].errors.append("the cost plugin did not see both marks")
        else:
            rows[key].runs.append({**run, "remote_share": remote_share(counters[run["window"]])})
    for key in sorted(missing):
        rows[key].errors.append(f"not run: {problem or 'the guest did not say why'}")


def check_work(rows: list[Row]) -> None:
    """Times of a workload compare when the work was the same: the runs that did another amount than most have failed."""
    for workload in {row.workload for row in rows}:
        mine = [row for row in rows if row.workload == workload]
        done = [run["operations"] for row in mine for run in row.runs]
        usual = statistics.mode(done) if done else 0
        for row in mine:
            row.errors += [f"{run['operations']} operations, others did {usual}" for run in row.runs if run["operations"] != usual]
            row.runs = [run for run in row.runs if run["operations"] == usual]


def median(values: list) -> float | None:
    """None is "never": more than any number."""
    middle = statistics.median(math.inf if value is None else value for value in values)
    return None if math.isinf(middle) else middle


def rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def figures(row: Row, reference: Row | None) -> dict:
    """A line of --json."""
    found = {"workload": row.workload, "system": row.system, "runs": len(row.runs), "failed": len(row.errors)}
    if row.errors:
        found["error"] = row.errors[0]
    if not row.runs:
        return found
    seconds = [run["seconds"] for run in row.runs]
    middle = median(seconds)
    hard = median([run["seconds"] for run in reference.runs]) if reference and reference.runs else None
    found |= {"median_s": round(middle, 3), "range_s": round(max(seconds) - min(seconds), 3),
              "runs_s": [round(value, 3) for value in seconds], "ratio_to_hard": rounded(hard and middle / hard, 3)}
    for key, digits in (("remote_share", 4), ("system_cpu_s", 2), ("pages_moved", 0), ("converged_s", 2), ("daemon_cpu_s", 2)):
        found[key] = rounded(median([run[key] for run in row.runs]), digits)
    notes = dict.fromkeys(run["note"] for run in row.runs if run["note"])
    found["note"] = "; ".join(notes)
    return found


HEAD = ("workload", "system", "median, s", "range, s", "to hard", "remote", "95 % local, s", "system CPU, s", "pages moved", "")


def cell(value, form: str, missing: str = "-") -> str:
    return missing if value is None else format(value, form)


def table_row(found: dict) -> list[str]:
    if "median_s" not in found:
        return [found["workload"], found["system"], *["-"] * 7, f"FAILED: {found['error']}"]
    failed = f"FAILED {found['failed']} of {found['failed'] + found['runs']}: {found['error']}" if found["failed"] else ""
    first, last = min(found["runs_s"]), max(found["runs_s"])
    return [found["workload"], found["system"], f"{found['median_s']:.2f}", f"{first:.2f}-{last:.2f}",
            cell(found["ratio_to_hard"], ".2f"), cell(found["remote_share"], ".1%"), cell(found["converged_s"], ".1f", "never"),
            cell(found["system_cpu_s"], ".1f"), cell(found["pages_moved"], ".0f"),
            "; ".join(text for text in (failed, found["note"]) if text)]


def table(lines: list[dict]) -> str:
    """In the form of Markdown's tables, so that it can be kept as it is."""
    cells = [HEAD, *(table_row(line) for line in lines)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    text = ["| " + " | ".join(word.ljust(width) for word, width in zip(row, widths)) + " |" for row in cells]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def run_round(number: int, pairs: list[dict], args) -> case.Result:
    command = f"python3 cases/placement.py {shlex.quote(json.dumps(pairs))}\n"
    limit_sec = int(120 + len(pairs) * RUN_SEC * max(args.scale, 0.5))
    found = case.Case(f"bench-placement-{number + 1}", "placement benchmark", [args.machine], [args.suite], command,
                      kernel_args=args.kernel_args, cost=True, cost_args=args.cost_args, limit_sec=limit_sec)

    def progress(line: str) -> None:
        if line.startswith(("ok", "not ok")):
            note(f"round {number + 1}: {line}")

    return case.run(found, args.machine, args.suite, args.build, on_line=progress)


def names(text: str, known: tuple[str, ...], option: str) -> list[str]:
    chosen = text.split(",")
    if set(chosen) - set(known) or len(set(chosen)) != len(chosen):
        raise LabError(f"{option}={text}: expected some of {','.join(known)}, each once")
    return chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--machine", default="2x2")
    parser.add_argument("--suite", choices=SUITES, default=SUITES[0])
    parser.add_argument("--runs", type=int, default=3, help="rounds, a guest each (3)")
    parser.add_argument("--scale", type=float, default=1, help="amount of work: 1 takes some 10 s a run")
    parser.add_argument("--memory", choices=MEMORY, default=MEMORY[0],
                        help="where it starts: all on one node, or that of each process on a node of its own (main)")
    parser.add_argument("--kernel-args", default="", help="added to the kernel's command line")
    parser.add_argument("--cost-args", default="", help="more words for the cost plugin")
    parser.add_argument("--json", action="store_true", help="a JSON line for each row instead of a table")


def main(args) -> int:
    workloads, systems = names(args.workloads, WORKLOADS, "--workloads"), names(args.systems, SYSTEMS, "--systems")
    if args.runs < 1 or not args.scale > 0:
        raise LabError("--runs and --scale: expected a number above 0")
    rows = {(workload, system): Row(workload, system) for workload in workloads for system in systems}
    for number in range(args.runs):
        pairs = plan(workloads, systems, number, args.scale, args.memory)
        result = run_round(number, pairs, args)
        cost = result.logs / "cost"
        lines = cost.read_text(encoding="ascii").splitlines() if cost.exists() else []
        collect(rows, pairs, result.results, lines, "; ".join(result.problems))
    check_work(list(rows.values()))
    lines = [figures(row, rows.get((row.workload, REFERENCE))) for row in rows.values()]
    if args.json:
        for line in lines:
            print(json.dumps({"machine": args.machine, "suite": args.suite, "scale": args.scale, "memory": args.memory,
                              **line}), flush=True)
    else:
        print(table(lines), flush=True)
    failed = [line for line in lines if line["failed"]]
    for line in failed:
        note(f"FAILED: {line['workload']} with {line['system']}: {line['error']}")
    return 1 if failed else 0
