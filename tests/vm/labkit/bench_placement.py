# SPDX-License-Identifier: LGPL-2.1-or-later
"""./dev lab bench placement: how long workloads take whose memory starts in the wrong place, by the system that
corrects it.

A round is a guest for each chosen workload, in which it runs once under every chosen system. cases/placement.py
describes the systems, and what is measured in the guest. Each round begins with another system. Guests have a clock
of their own (cost/README.md), so one per CPU of the host can run side by side, and none is slower for it. A repeated
round gives the same figures; each has a seed of its own, so rounds differ as boots of a machine do. A table of all
rounds takes hours for large machines: with --keep the results of a guest are written to a file, and are not measured
again.
"""

import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import shlex
import statistics
from dataclasses import dataclass, field

from . import SUITES, LabError, case, note, tour

WORKLOADS = ("numa01", "numa01-thread-alloc", "numa02", "multi-heap", "stream", "ping-pong", "phase-changer", "reader")
SYSTEMS = ("none", "kernel", "kernel-tuned", "numad", "numaplace", "hard")
# Only on request: they answer one question each.
MORE_WORKLOADS = ("ping-pong-settled", "uneven", "uneven-swap", "stall", "stall-pair", "stream-two", "numa02-two", "numa02-pairs",
                  "ranks", "forker", "hackbench")
MORE_SYSTEMS = ("numaplace-beside", "numaplace-residency", "numaplace-write", "numaplace-idle", "waker", "pinned")
# Workloads that run for a fixed time and count.
TIMED = ("uneven", "uneven-swap", "stall", "stall-pair")
STALLS = ("stall", "stall-pair")
UNBOUND = ("forker", "hackbench")
LENDING = ("uneven", "uneven-swap")
BEST, UNPLACED = "hard", "none"
MEMORY = ("main", "process", "placed")
ORDERS = ("random", "sequential")
# Two marks for each run; 254 and 255 are the warm-up's.
WINDOWS_MAX = 127
# By far more than any run takes, with --scale=1, by the guest's clock.
RUN_SEC = 60
LOCAL = ("user_local", "kernel_local", "line_local")
REMOTE = ("user_remote", "kernel_remote", "line_remote")
# Figures of runs that have them, and their numbers of digits.
MEDIANS = {"remote_share": 4, "system_cpu_s": 2, "pages_moved": 0, "local90_s": 2, "local95_s": 2, "relocal90_s": 2,
           "recovered_s": 2, "last_home_s": 2, "late_homes": 1, "daemon_cpu_s": 2, "mover_cpu_s": 2}
# Phases of series.phases() in cases, with their headings: the time lost compared with `hard`, out of its duration.
PHASES = {"home": "home", "evidence": "evidence", "moving": "moving", "steady": "then", "tail": "tail"}
HEAD = ("workload", "system", "s", "range", "to hard", "to none", "remote", "95 % local, s", f"lost, s: {', '.join(PHASES.values())}",
        "system CPU, s", "daemon, of it moving, s", "pages moved", "")


@dataclass
class Row:
    """A workload under a system: the results of its runs, and what went wrong."""

    workload: str
    system: str
    runs: list[dict] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def applies(workload: str, system: str) -> bool:
    return workload in LENDING if system == "pinned" else system != BEST or workload not in UNBOUND


def plan(workloads: list[str], systems: list[str], number: int, **same) -> list[dict]:
    """The runs of a round, in order; `same` holds for each."""
    first = number % len(systems)
    turned = systems[first:] + systems[:first]
    pairs = [(workload, system) for workload in workloads for system in turned if applies(workload, system)]
    if len(pairs) > WINDOWS_MAX:
        raise LabError(f"{len(pairs)} pairs of workload and system: expected up to {WINDOWS_MAX}")
    return [{"workload": workload, "system": system, "window": 2 * i, **same}
            for i, (workload, system) in enumerate(pairs)]


def windows(lines: list[str]) -> dict[int, dict[str, int]]:
    """Window -> the counters of all CPUs between its two marks, from the report of the cost plugin."""
    marks = {}
    for line in lines:
        event = json.loads(line)
        if event["event"] == "mark":
            sums = {key: sum(cpu[key] for cpu in event["cpus"]) for key in (*LOCAL, *REMOTE)}
            marks[event["number"]] = sums
    return {number: {key: marks[number + 1][key] - start[key] for key in start}
            for number, start in marks.items() if number % 2 == 0 and number + 1 in marks}


def remote_share(counters: dict[str, int]) -> float | None:
    """The share that came from another node, of the lines that came from memory or from another CPU's cache."""
    remote = sum(counters[key] for key in REMOTE)
    total = remote + sum(counters[key] for key in LOCAL)
    return remote / total if total else None


def collect(rows: dict[tuple[str, str], Row], pairs: list[dict], results: list[str], cost: list[str], problem: str) -> None:
    """Adds a guest to the rows. Runs that a guest did not reach before it died have failed as well."""
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
    """Times of a workload are comparable only for the same work: runs with another amount than most have failed."""
    for workload in {row.workload for row in rows} - set(TIMED):
        mine = [row for row in rows if row.workload == workload]
        done = [run["operations"] for row in mine for run in row.runs]
        usual = statistics.mode(done) if done else 0
        for row in mine:
            row.errors += [f"{run['operations']} operations, others did {usual}" for run in row.runs if run["operations"] != usual]
            row.runs = [run for run in row.runs if run["operations"] == usual]


def median(values: list) -> float | None:
    """None means "never": more than any number."""
    middle = statistics.median(math.inf if value is None else value for value in values)
    return None if math.isinf(middle) else middle


def rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def cost(run: dict) -> float:
    return run["seconds"] / run["operations"]


def ratio(row: Row, other: Row | None, figure) -> float | None:
    """Ratio of the medians of a figure; None when either row has no such figure."""
    mine, others = ([figure(run) for run in (found.runs if found else [])] for found in (row, other))
    if not mine or not others or None in mine or None in others:
        return None
    return round(statistics.median(mine) / statistics.median(others), 3)


def profile(row: Row, best: Row | None) -> dict[str, dict[str, float]]:
    """{phase: seconds, and how many of them would not have been needed at the speed of `best`}: medians of the runs."""
    if not best or not best.runs or any("phases" not in run for run in row.runs):
        return {}
    cost_best = statistics.median(cost(run) for run in best.runs)
    found = {}
    for name in PHASES:
        spans = [run["phases"].get(name, [0, 0]) for run in row.runs]
        lost = [seconds - operations * cost_best for seconds, operations in spans]
        if any(name in run["phases"] for run in row.runs):
            found[name] = {"s": round(median([seconds for seconds, _ in spans]), 3), "lost_s": round(median(lost), 3)}
    return found


def figures(row: Row, best: Row | None, unplaced: Row | None) -> dict:
    """A line of --json."""
    found = {"workload": row.workload, "system": row.system, "runs": len(row.runs), "failed": len(row.errors)}
    if row.errors:
        found["error"] = row.errors[0]
    if not row.runs:
        return found
    seconds = [run["seconds"] for run in row.runs]
    found["kernel"] = row.runs[0]["kernel"]
    found |= {"median_s": round(median(seconds), 3), "range_s": round(max(seconds) - min(seconds), 3),
              "runs_s": [round(value, 3) for value in seconds],
              "operations_per_s": round(median([1 / cost(run) for run in row.runs])),
              "ratio_to_hard": ratio(row, best, cost), "ratio_to_none": ratio(row, unplaced, cost)}
    for after in ("after_3s", "after_5s"):
        found[f"throughput_{after}"] = ratio(row, best, lambda run, after=after: run.get(f"rate_{after}"))
    for key, digits in MEDIANS.items():
        values = [run[key] for run in row.runs if key in run]
        if values:
            found[key] = rounded(median(values), digits)
    if phases := profile(row, best):
        found["profile"] = phases
    stalls = [run for run in row.runs if "stalls" in run]
    if stalls:
        found["stall_worst_s"] = round(max(run["stall_worst_s"] for run in stalls), 5)
        found["stall_worst_of_s"] = [round(run["stall_worst_s"], 5) for run in stalls]
        found["stalls"] = [sum(counts) for counts in zip(*(run["stalls"] for run in stalls))]
    notes = dict.fromkeys(run["note"] for run in row.runs if run["note"])
    found["note"] = "; ".join(notes)
    return found


def cell(value, form: str, missing: str = "-") -> str:
    return missing if value is None else format(value, form)


def seconds_or_never(found: dict, key: str) -> str:
    return cell(found[key], ".2f", "never") if key in found else "-"


def remarks(found: dict) -> str:
    """Figures of some workloads only, and what went wrong."""
    text = []
    if found["failed"]:
        text.append(f"FAILED {found['failed']} of {found['failed'] + found['runs']}: {found['error']}")
    if found["workload"] in LENDING and found["throughput_after_5s"]:
        text.append(f"after 5 s x{found['throughput_after_5s']:.2f}")
    if found["workload"] in LENDING and "recovered_s" in found:
        text.append(f"seconds to as before the swap: {seconds_or_never(found, 'recovered_s')}")
    if found["workload"].startswith("ping-pong") and "late_homes" in found:
        text.append(f"homes or lends after half a minute: {found['late_homes']:g}")
    if found["workload"] not in LENDING and "relocal90_s" in found:
        text.append(f"seconds to 90 % local after a change: {seconds_or_never(found, 'relocal90_s')}")
    if "stalls" in found:
        counts = "/".join(map(str, found["stalls"]))
        text.append(f"worst stall {found['stall_worst_s'] * 1e3:.1f} ms; from 1/5/10/20 ms: {counts}")
    return "; ".join([*text, *([found["note"]] if found["note"] else [])])


def lost(found: dict) -> str:
    """By phase, for phases that took time."""
    profile = found.get("profile", {})
    phases = [cell(profile.get(name, {}).get("lost_s"), ".2f") for name in PHASES]
    return ", ".join(phases) if profile else "-"


def table_row(found: dict) -> list[str]:
    if "median_s" not in found:
        return [found["workload"], found["system"], *["-"] * (len(HEAD) - 3), f"FAILED: {found['error']}"]
    first, last = min(found["runs_s"]), max(found["runs_s"])
    return [found["workload"], found["system"], f"{found['median_s']:.2f}", f"{first:.2f}-{last:.2f}" if found["runs"] > 1 else "-",
            cell(found["ratio_to_hard"], ".3f"), cell(found["ratio_to_none"], ".3f"), cell(found.get("remote_share"), ".1%"),
            seconds_or_never(found, "local95_s"), lost(found), cell(found["system_cpu_s"], ".2f"),
            f"{found['daemon_cpu_s']:.2f}, {found.get('mover_cpu_s', 0):.2f}", cell(found["pages_moved"], ".0f"), remarks(found)]


def table(cells: list) -> str:
    """As Markdown tables, so that it can be kept as it is. Empty columns are left out."""
    used = [i for i in range(len(cells[0])) if any(row[i] not in ("", "-") for row in cells[1:])]
    return "\n".join("| " + " | ".join(row[i] for i in used) + " |" for row in (cells[0], ["---"] * len(cells[0]), *cells[1:]))


def run_guest(number: int, workload: str, pairs: list[dict], args) -> tour.Result:
    command = f"python3 cases/placement.py {shlex.quote(json.dumps(pairs))}\n"
    found = case.Case(f"bench-placement-{workload}-{number + 1}", "placement benchmark", [args.machine], [args.suite], command,
                      kernel_args=args.kernel_args, parallel=True, cost=True, cost_args=args.cost_args, seed=number + 1,
                      limit_sec=int(120 + len(pairs) * RUN_SEC * max(args.scale, 0.5)))

    def progress(line: str) -> None:
        if line.startswith(("ok", "not ok")):
            note(f"round {number + 1}: {line}")

    return tour.run(tour.Tour(args.suite, args.machine, (found,)), args.build, on_line=progress)[0]


# What determines the figures of a guest, besides the program.
SETTINGS = ("machine", "suite", "scale", "memory", "bytes", "order", "cache_aware", "kernel_args", "cost_args")


@dataclass
class Guest:
    """The results of a guest, new or from the file."""

    results: list[str]
    cost: list[str]
    problem: str = ""


def digest(build: str) -> str:
    """Hash of the daemon that is measured; "" where there is none."""
    path = pathlib.Path(build) / "src" / "daemon" / "numaplaced"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


class Kept:
    """A file of guests, each a line of JSON, that completed all their runs, whatever they left behind."""

    def __init__(self, path: str, args):
        self.path, self.known = pathlib.Path(path) if path else None, {}
        self.settings = {**{name: getattr(args, name) for name in SETTINGS}, "daemon": digest(args.build)}
        if self.path and self.path.exists():
            for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines()):
                if not line:
                    continue
                try:
                    kept = json.loads(line)
                    self.known[self.key(kept["of"])] = Guest(kept["results"], kept["cost"])
                except (KeyError, ValueError):
                    note(f"{self.path}:{number + 1}: expected what a guest gave, ignoring it")

    @staticmethod
    def key(of: dict) -> str:
        return json.dumps(of, sort_keys=True)

    def of(self, number: int, pairs: list[dict]) -> dict:
        return {**self.settings, "round": number + 1, "runs": [[pair["workload"], pair["system"]] for pair in pairs]}

    def find(self, number: int, pairs: list[dict]) -> Guest | None:
        return self.known.get(self.key(self.of(number, pairs)))

    def add(self, number: int, pairs: list[dict], guest: Guest) -> None:
        runs, counters = [json.loads(line) for line in guest.results], windows(guest.cost)
        whole = len(runs) == len(pairs) and all("error" not in run and run["window"] in counters for run in runs)
        if not self.path or not whole:
            return
        # In one write, by any guest: no line is broken by another, and a torn line of a killed program stays by
        # itself.
        text = "\n" + json.dumps({"of": self.of(number, pairs), "results": guest.results, "cost": guest.cost}) + "\n"
        with open(self.path, "ab", buffering=0) as file:
            file.write(text.encode())


def run_all(rows: dict[tuple[str, str], Row], workloads: list[str], systems: list[str], args) -> None:
    """All rounds, the guests of each side by side."""
    kept = Kept(args.keep, args)

    def guest_of(number: int, workload: str, pairs: list[dict]) -> Guest:
        guest = kept.find(number, pairs)
        if guest:
            return guest
        result = run_guest(number, workload, pairs, args)
        report = result.guest_logs / "cost"
        guest = Guest(result.results, report.read_text(encoding="ascii").splitlines() if report.exists() else [],
                      "; ".join(result.problems))
        kept.add(number, pairs, guest)
        return guest

    guests = [(number, workload, plan([workload], systems, number, scale=args.scale, memory=args.memory, bytes=args.bytes,
                                         order=args.order, cache_aware=args.cache_aware))
              for number in range(args.runs) for workload in workloads]
    with concurrent.futures.ThreadPoolExecutor(args.jobs or len(os.sched_getaffinity(0))) as pool:
        for (_, _, pairs), guest in zip(guests, pool.map(lambda guest: guest_of(*guest), guests)):
            collect(rows, pairs, guest.results, guest.cost, guest.problem)


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
    parser.add_argument("--runs", type=int, default=3, help="rounds, a guest for each workload (3)")
    parser.add_argument("--jobs", type=int, default=0, help="guests at a time (one for each CPU)")
    parser.add_argument("--scale", type=float, default=1.0, help="amount of work: 2.4 takes some 20 s a run by the guest's clock, with --order=sequential 12 (1)")
    parser.add_argument("--memory", choices=MEMORY, default=MEMORY[0],
                        help="where it starts: all on one node, that of each process on a node of its own, or where its threads "
                        "are (main)")
    parser.add_argument("--bytes", default="", help="size of the array or heap, with K, M or G, instead of the workload's own")
    parser.add_argument("--order", choices=ORDERS, default=ORDERS[0],
                        help="of the lines that are visited: each waits for memory (random), or a prefetcher sees them coming and what "
                        "counts is bandwidth (sequential)")
    parser.add_argument("--kernel-args", default="", help="added to the kernel's command line")
    parser.add_argument("--cache-aware", choices=("", "0", "1"), default="",
                        help="whether the kernel schedules by caches, where it can (as it is)")
    parser.add_argument("--cost-args", default="", help="more words for the cost plugin")
    parser.add_argument("--keep", default="", metavar="FILE", help="write to it what each guest gave, and do not measure again what is in it")
    parser.add_argument("--json", action="store_true", help="a JSON line for each row instead of a table")


def check(workloads: list[str], systems: list[str], args) -> None:
    if args.runs < 1 or args.jobs < 0 or not args.scale > 0:
        raise LabError("--runs, --jobs and --scale: expected a number above 0")
    for name in workloads:
        if not any(applies(name, system) for system in systems):
            raise LabError(f"{name}: none of {','.join(systems)} applies to it")


def main(args) -> int:
    workloads = names(args.workloads, (*WORKLOADS, *MORE_WORKLOADS), "--workloads")
    systems = names(args.systems, (*SYSTEMS, *MORE_SYSTEMS), "--systems")
    check(workloads, systems, args)
    rows = {(pair["workload"], pair["system"]): Row(pair["workload"], pair["system"]) for pair in plan(workloads, systems, 0)}
    run_all(rows, workloads, systems, args)
    check_work(list(rows.values()))
    lines = [figures(row, rows.get((row.workload, BEST)), rows.get((row.workload, UNPLACED))) for row in rows.values()]
    if args.json:
        for line in lines:
            print(json.dumps({"machine": args.machine, "suite": args.suite, "scale": args.scale, "memory": args.memory,
                              "order": args.order, **line}), flush=True)
    else:
        print(table([HEAD, *(table_row(line) for line in lines)]), flush=True)
    failed = [line for line in lines if line["failed"]]
    for line in failed:
        note(f"FAILED: {line['workload']} with {line['system']}: {line['error']}")
    return 1 if failed else 0
