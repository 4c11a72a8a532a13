# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tours: cases that need the same guest and do not disturb each other, one after the other in one boot.

A boot takes as long as a short case. A case that leaves something behind fails (guest/run.sh checks), so the next one
gets the guest as the first did. When a guest dies during a case, the cases that had not begun get another guest.
"""

import json
import pathlib
import re
import tempfile
from dataclasses import dataclass, field

from . import SUITES, USUAL_SUITES, LabError, guest, image, machine, note, pack, package, release, tap
from .case import Case

# A boot is repeated only when no job had begun: a job that ends its guest has failed. Under multi-threaded TCG (a
# shell) 6.12 oopses in some boots while it patches its text, and may do so later, when something is switched on: no
# job causes that oops. A CPU that spins in the kernel may well be caused by the job.
RETRIES_MAX = 2
EMULATED = re.compile(r"\bOops: int3: |\bint3: 0000 \[#1\]")


@dataclass(frozen=True)
class Tour:
    suite: str
    machine: str
    cases: tuple[Case, ...]

    @property
    def title(self) -> str:
        return f"{self.suite}/{self.machine}: {' '.join(case.name for case in self.cases)}"


@dataclass
class Result:
    """One case on one machine and suite. `problems` is empty when it passed. `logs` are its own, `guest_logs` the
    guest's."""

    name: str
    suite: str
    logs: pathlib.Path
    guest_logs: pathlib.Path
    problems: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    all_skipped: bool = False
    results: list[str] = field(default_factory=list)
    console_tail: list[str] = field(default_factory=list)
    points: int = 0
    seconds: float = 0
    boots: int = 1

    @property
    def verdict(self) -> str:
        if self.problems:
            return "failed"
        return "skipped" if self.all_skipped else "passed"


def plan(cases: list[Case], suites: list[str] | None = None, machines: list[str] | None = None) -> list[Tour]:
    """Every case on each of its suites and machines, in as few guests as possible."""
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        for suite in SUITES:
            # A case for a release is also for its newer kernels.
            if not {suite, release(suite)} & set(case.suites) or suite not in (suites or USUAL_SUITES):
                continue
            for name in machines or case.machines:
                alone = case.name if case.alone else ""
                key = (suite, name, case.kernel_args, case.parallel, case.cost, case.cost_args, case.image, case.boot_limit_sec, alone)
                groups.setdefault(key, []).append(case)
    return [Tour(suite, name, tuple(group)) for (suite, name, *_), group in groups.items()]


def plugin_option(case: Case, shape: machine.Machine, build: pathlib.Path, logs: pathlib.Path) -> str:
    """QEMU's option for the plugin that keeps the time; it writes its counters to `cost` beside the console."""
    if not case.parallel:
        return ""
    plugin = build / "tests" / "vm" / "cost" / "numacost.so"
    if not plugin.exists():
        raise LabError(f"{plugin} is not there: build with -Dvm=true")
    words = [str(plugin), machine.cost_arguments(shape), f"out={logs / 'cost'}", *case.cost_args.split()]
    return ",".join(words)


def prepare(tour: Tour, build: pathlib.Path, work: pathlib.Path, logs: pathlib.Path) -> guest.Guest:
    """The guest of a tour, not started yet. `work` is for the second disk."""
    first = tour.cases[0]
    shape = machine.load(tour.machine)
    qemu = guest.version()
    disk_image = image.ensure(tour.suite, first.image)
    packages = package.ensure(release(tour.suite)) if first.image == "service" else []
    info = {"suite": tour.suite, "cases": [case.name for case in tour.cases], "machine": shape.describe(), "cost": first.cost,
            "qemu": list(qemu)}
    disk = pack.make_disk(build, info, tour.cases, packages, work)
    return guest.Guest(disk_image, shape, disk, logs, first.kernel_args, plugin_option(first, shape, build, logs),
                       [case.limit_sec for case in tour.cases], first.boot_limit_sec, first.boots, seed=first.seed)


def log_directory(build: pathlib.Path, name: str) -> pathlib.Path:
    logs = (build / "lab" / name).resolve()
    logs.mkdir(parents=True, exist_ok=True)
    for old in logs.iterdir():
        old.unlink()
    return logs


def case_result(tour: Tour, case: Case, build: pathlib.Path, guest_logs: pathlib.Path) -> Result:
    name = case.name if len(case.machines) == 1 else f"{case.name}@{tour.machine}"
    return Result(name, tour.suite, log_directory(build, f"{tour.suite}-{name}"), guest_logs)


def run(tour: Tour, build: pathlib.Path, on_line=None) -> list[Result]:
    """Runs all cases of a tour. The logs stay in BUILD/lab/SUITE-CASE[@MACHINE], the guest's in
    BUILD/lab/SUITE@MACHINE-CASE, named after the first case in it."""
    done: list[Result] = []
    while len(done) < len(tour.cases):
        rest = Tour(tour.suite, tour.machine, tour.cases[len(done):])
        done += run_guest(rest, build, on_line)
    return done


def run_guest(tour: Tour, build: pathlib.Path, on_line) -> list[Result]:
    """The results of the cases that ended with this guest: at least the first."""
    logs = log_directory(build, f"{tour.suite}@{tour.machine}-{tour.cases[0].name}")
    results = [case_result(tour, case, build, logs) for case in tour.cases]
    with tempfile.TemporaryDirectory(prefix=".disk-", dir=build) as work:
        vm = prepare(tour, build.resolve(), pathlib.Path(work), logs)
        vm.on_line = on_line
        ended = boot(vm, results[0])
    begun = max(ended.series.begun, 1)
    for number, result in enumerate(results[:begun]):
        judge(result, ended, number, begun == number + 1)
    return results[:begun]


def is_emulated(console: pathlib.Path) -> bool:
    return bool(EMULATED.search(console.read_text(encoding="utf-8", errors="replace")))


def boot(vm: guest.Guest, result: Result) -> guest.Ended:
    while True:
        ended = vm.run()
        result.seconds += ended.seconds
        emulated = ended.reason and is_emulated(vm.logs / "console")
        if (ended.series.begun and not emulated) or result.boots > RETRIES_MAX:
            return ended
        (vm.logs / "console").rename(vm.logs / f"console-boot{result.boots}")
        why = "was broken by the emulation" if emulated else "ended before the job began"
        note(f"{result.suite}/{result.name}: boot {result.boots} {why}, booting again: {ended.reason}; its console's end:")
        for line in guest.tail(vm.logs / f"console-boot{result.boots}", guest.RETRY_TAIL_LINES):
            note(f"| {line}")
        result.boots += 1


def judge(result: Result, ended: guest.Ended, number: int, last: bool) -> None:
    """Only the last case of a guest can have ended it."""
    output: tap.Output = ended.series.outputs[number]
    result.problems = output.problems() + ([ended.reason] if ended.reason and last else [])
    result.skipped, result.all_skipped = output.skipped, output.all_skipped()
    result.results, result.points = output.results, output.points
    if number < len(ended.job_seconds):
        result.seconds = ended.job_seconds[number]
    if result.problems:
        result.console_tail = ended.console_tail()
    record = {"case": result.name, "suite": result.suite, "verdict": result.verdict, "problems": result.problems,
              "skipped": result.skipped, "seconds": round(result.seconds, 1), "boots": result.boots,
              "boot_seconds": ended.boot_seconds and round(ended.boot_seconds, 1)}
    (result.logs / "result.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (result.logs / "results.jsonl").write_text("".join(f"{line}\n" for line in output.results), encoding="utf-8")
    (result.logs / "output").write_text("".join(f"{line}\n" for line in ended.lines[number]), encoding="utf-8")
