#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs tests of several build directories, and ends with the ten slowest and the line "N passed, N failed, N skipped".

usage: run.py [--state FILE] STAGE..   a STAGE is DIRECTORY:SUITE,SUITE.., or several joined by a plus, which run side by side

With --state, what has passed is written into FILE and not run again as long as no file of the tree has changed, so that a long run
can be interrupted and continued. A test counts once for each directory, a case of the VM lab once. Skipped ones are named, because
a silent skip would pass for success. The exit status is not 0 when something failed, was not run, or nothing ran at all.
"""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field

SOURCE = pathlib.Path(__file__).resolve().parent.parent
VERDICTS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
# A case of the VM lab in the output of a tour (tests/vm/lab.py).
CASE = re.compile(r"^(passed|failed|skipped): (\S+) \(", re.MULTILINE)
# A tour of the lab: vm/bookworm/2x2/boot.
TOUR = re.compile(r"vm(-full|-thread)?/[^/]+/[^/]+/")
# Time limits are for hangs: a machine that is also used by others must not reach them.
TIMEOUT_MULTIPLIER = 20
N_SLOWEST = 10


@dataclass
class Outcome:
    """Result of one test. `parts`: what it consists of, as (verdict, name); a test that does not report parts counts
    as one."""

    verdict: str
    seconds: float
    parts: list = field(default_factory=list)


def tree_hash() -> str:
    """A hash of everything that git would commit."""
    listed = subprocess.run(["git", "-C", str(SOURCE), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=True).stdout
    total = hashlib.sha256()
    for name in sorted(filter(None, listed.split("\0"))):
        path = SOURCE / name
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


class State:
    """Known results of an earlier run over the same tree."""

    def __init__(self, path: pathlib.Path | None):
        self.path, self.tree, self.outcomes = path, "", {}
        if path:
            self.tree = tree_hash()
            self.load()

    def load(self) -> None:
        try:
            known = json.loads(self.path.read_text(encoding="utf-8"))
            if known["tree"] == self.tree:
                self.outcomes = {key: Outcome(**value) for key, value in known["outcomes"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def save(self, outcomes: dict[str, Outcome]) -> None:
        if not self.path:
            return
        passed = {key: asdict(outcome) for key, outcome in outcomes.items() if outcome.verdict == "passed"}
        new = self.path.with_suffix(".new")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps({"tree": self.tree, "outcomes": passed}), encoding="utf-8")
        new.rename(self.path)


def names_of(directory: str, suites: set[str]) -> list[str]:
    text = subprocess.run(["meson", "introspect", "--tests", directory], capture_output=True, text=True, check=True).stdout
    return [test["name"] for test in json.loads(text) if suites & {suite.rpartition(":")[2] for suite in test["suite"]}]


def read_log(directory: str) -> dict[str, Outcome]:
    """What `meson test` has written about finished tests."""
    outcomes = {}
    log = pathlib.Path(directory) / "meson-logs" / "testlog.json"
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else ():
        entry = json.loads(line)
        # "suites / name", or the name alone.
        name = entry["name"].rpartition(" / ")[2]
        # The lab's selftests have cases that fail on purpose.
        cases = CASE.finditer(entry.get("stdout", "")) if TOUR.match(name) else ()
        parts = [list(match.groups()) for match in cases]
        outcomes[name] = Outcome(VERDICTS.get(entry["result"], "failed"), entry["duration"], parts)
    return outcomes


class Stage:
    """Starts the tests of one build directory. `known`: those that have passed before and are not run again."""

    def __init__(self, stage: str, known: dict[str, Outcome], jobs: int):
        self.directory, _, suites = stage.partition(":")
        print(f"-- testing {self.directory}: {suites.replace(',', ', ')}", file=sys.stderr, flush=True)
        names = names_of(self.directory, set(suites.split(",")))
        self.found = {f"{self.directory}/{name}": known[f"{self.directory}/{name}"] for name in names if f"{self.directory}/{name}" in known}
        self.wanted = [name for name in names if f"{self.directory}/{name}" not in self.found]
        self.process = None
        if self.wanted:
            (pathlib.Path(self.directory) / "meson-logs" / "testlog.json").unlink(missing_ok=True)
            self.process = subprocess.Popen(["meson", "test", "-C", self.directory, "--no-rebuild", "--print-errorlogs",
                                             f"--num-processes={jobs}", f"--timeout-multiplier={TIMEOUT_MULTIPLIER}", *self.wanted])

    def outcomes(self, interrupted: bool) -> dict[str, Outcome]:
        """After the end: the results known now."""
        log = read_log(self.directory)
        for name in self.wanted:
            if name in log or not interrupted:
                self.found[f"{self.directory}/{name}"] = log.get(name, Outcome("failed", 0, [["failed", "not run"]]))
        return self.found


def run_stages(group: str, known: dict[str, Outcome]) -> tuple[dict[str, Outcome], bool]:
    """Returns the results known now, and whether the run was interrupted."""
    # One more than CPUs, because tests of a running daemon mostly wait; and one for each other stage, which uses the
    # rest.
    jobs = [len(os.sched_getaffinity(0)) + 1] + [1] * group.count("+")
    stages: list[Stage] = []
    interrupted = False
    try:
        for stage, n in zip(group.split("+"), jobs):
            stages.append(Stage(stage, known, n))
        for stage in stages:
            if stage.process:
                stage.process.wait()
    except KeyboardInterrupt:
        # meson ends its tests when it is told to end.
        interrupted = True
        for stage in stages:
            if stage.process:
                stage.process.terminate()
                stage.process.wait()
    return {key: outcome for stage in stages for key, outcome in stage.outcomes(interrupted).items()}, interrupted


def report(outcomes: dict[str, Outcome]) -> int:
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for key, outcome in outcomes.items():
        parts = outcome.parts or [[outcome.verdict, ""]]
        # A tour may fail apart from its cases.
        if outcome.verdict == "failed" and not any(verdict == "failed" for verdict, _ in parts):
            parts = [*parts, ["failed", ""]]
        for verdict, name in parts:
            counts[verdict] += 1
            if verdict != "passed":
                print(f"{verdict}: {' '.join(filter(None, (key, name)))}")
    slowest = sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:N_SLOWEST]
    print("the slowest:", *(f"  {outcome.seconds:7.1f} s  {key}" for key, outcome in slowest), sep="\n")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped", flush=True)
    return 1 if counts["failed"] or not counts["passed"] else 0


def interrupt(*_) -> None:
    raise KeyboardInterrupt


def main() -> int:
    arguments, path = sys.argv[1:], None
    if arguments[:1] == ["--state"] and len(arguments) > 1:
        path, arguments = pathlib.Path(arguments[1]), arguments[2:]
    if not arguments or any(":" not in stage for group in arguments for stage in group.split("+")):
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, interrupt)
    state, outcomes = State(path), {}
    for group in arguments:
        found, interrupted = run_stages(group, state.outcomes)
        outcomes |= found
        # Passed tests that are not in the stages so far stay known.
        state.save({**state.outcomes, **outcomes})
        if interrupted:
            print("interrupted; the same command goes on from here" if path else "interrupted", file=sys.stderr)
            return 130
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
