# SPDX-License-Identifier: LGPL-2.1-or-later
"""Case files, and running one: pack the second disk, run the guest, judge what it said."""

import configparser
import json
import pathlib
import re
import tempfile
from dataclasses import dataclass, field

from . import SUITES, VM, LabError, guest, image, machine, note, pack, package

KEYS = {"description", "machine", "suites", "kernelargs", "cost", "costargs", "limitsec", "bootlimitsec", "image", "boots", "command"}
# Some boots fail under multi-threaded TCG: 6.12 oopses early on while it patches its text, and QEMU 7.2 has been seen to hang
# and to abort in msix_table_mmio_write(). A boot is repeated only when the job had not begun: a job that ends its guest has
# failed. But the kernel patches its text later, too, when something is switched on, and then can meet the breakpoint that it has
# set meanwhile: nothing a job does makes it oops in that way. A CPU that spins in the kernel may well be the job's doing.
RETRIES_MAX = 2
EMULATED = re.compile(r"\bOops: int3: |\bint3: 0000 \[#1\]")


@dataclass(frozen=True)
class Case:
    name: str
    description: str
    machines: list[str]
    suites: list[str]
    command: str
    kernel_args: str = ""
    cost: bool = False
    cost_args: str = ""
    limit_sec: int = 120
    boot_limit_sec: int = 150
    image: str = ""
    boots: int = 1
    counted: bool = False


@dataclass
class Result:
    """One case on one machine and suite. `problems` is empty when it passed."""

    name: str
    suite: str
    logs: pathlib.Path
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


def names(directory: pathlib.Path = VM / "cases") -> list[str]:
    return sorted(path.stem for path in directory.glob("*.case"))


def load(name: str, directory: pathlib.Path = VM / "cases") -> Case:
    path = directory / f"{name}.case"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        return parse(name, parser["Case"])
    except FileNotFoundError:
        raise LabError(f"no case '{name}' (./dev lab list)") from None
    except (configparser.Error, KeyError, ValueError, LabError) as error:
        raise LabError(f"{path}: {error}") from error


def parse(name: str, section: configparser.SectionProxy) -> Case:
    unknown = set(section) - KEYS
    if unknown:
        raise LabError(f"unknown keys: {' '.join(sorted(unknown))}")
    machines = machine.names() if section["Machine"] == "all" else section["Machine"].split()
    suites = section.get("Suites", " ".join(SUITES)).split()
    if not machines or not suites or set(suites) - set(SUITES):
        raise LabError(f"Machine= and Suites=: expected machines, and suites out of {' '.join(SUITES)}")
    variant = section.get("Image", "")
    if variant not in ("", *image.EXTRA):
        raise LabError(f"Image=: expected one of {' '.join(image.EXTRA)}, or nothing")
    return Case(name, section["Description"], machines, suites, section["Command"].strip() + "\n",
                section.get("KernelArgs", ""), section.getboolean("Cost", False), section.get("CostArgs", ""),
                section.getint("LimitSec", 300), section.getint("BootLimitSec", 150),
                variant, section.getint("Boots", 1))


def plugin_option(case: Case, shape: machine.Machine, build: pathlib.Path, logs: pathlib.Path) -> str:
    """QEMU's option for the cost plugin; it writes its counters to `cost` beside the console."""
    if not case.cost:
        return ""
    plugin = build / "tests" / "vm" / "cost" / "numacost.so"
    if not plugin.exists():
        raise LabError(f"{plugin} is not there: build with -Dvm=true")
    words = [str(plugin), machine.cost_arguments(shape), f"out={logs / 'cost'}", *case.cost_args.split()]
    return ",".join(words)


def prepare(case: Case, machine_name: str, suite: str, build: pathlib.Path, work: pathlib.Path,
            logs: pathlib.Path) -> guest.Guest:
    """The guest of a case, not started yet. `work` is for the second disk."""
    shape = machine.load(machine_name)
    qemu = guest.version()
    disk_image = image.ensure(suite, case.image)
    packages = package.ensure(suite) if case.image == "service" else []
    info = {"suite": suite, "case": case.name, "machine": shape.describe(), "cost": case.cost, "qemu": list(qemu)}
    disk = pack.make_disk(build, info, case.command, packages, work)
    return guest.Guest(disk_image, shape, disk, logs, case.kernel_args, plugin_option(case, shape, build, logs),
                       case.limit_sec, case.boot_limit_sec, case.boots, case.counted)


def run(case: Case, machine_name: str, suite: str, build: pathlib.Path, on_line=None) -> Result:
    """Runs a case on one of its machines. The logs stay in BUILD/lab/SUITE-CASE[@MACHINE]."""
    name = case.name if len(case.machines) == 1 else f"{case.name}@{machine_name}"
    logs = (build / "lab" / f"{suite}-{name}").resolve()
    logs.mkdir(parents=True, exist_ok=True)
    for old in logs.iterdir():
        old.unlink()
    result = Result(name, suite, logs)
    with tempfile.TemporaryDirectory(prefix=".disk-", dir=build) as work:
        vm = prepare(case, machine_name, suite, build.resolve(), pathlib.Path(work), logs)
        vm.on_line = on_line
        ended = run_guest(vm, result)
    judge(result, ended)
    return result


def is_emulated(console: pathlib.Path) -> bool:
    return bool(EMULATED.search(console.read_text(encoding="utf-8", errors="replace")))


def run_guest(vm: guest.Guest, result: Result) -> guest.Ended:
    while True:
        ended = vm.run()
        result.seconds += ended.seconds
        emulated = ended.reason and is_emulated(vm.logs / "console")
        if (ended.output.begun and not emulated) or result.boots > RETRIES_MAX:
            return ended
        (vm.logs / "console").rename(vm.logs / f"console-boot{result.boots}")
        why = "was broken by the emulation" if emulated else "ended before the job began"
        note(f"{result.suite}/{result.name}: boot {result.boots} {why}, booting again: {ended.reason}; its console's end:")
        for line in guest.tail(vm.logs / f"console-boot{result.boots}", guest.RETRY_TAIL_LINES):
            note(f"| {line}")
        result.boots += 1


def judge(result: Result, ended: guest.Ended) -> None:
    output = ended.output
    result.problems = output.problems() + ([ended.reason] if ended.reason else [])
    result.skipped, result.all_skipped = output.skipped, output.all_skipped()
    result.results, result.points = output.results, output.points
    if result.problems:
        result.console_tail = ended.console_tail()
    record = {"case": result.name, "suite": result.suite, "verdict": result.verdict, "problems": result.problems,
              "skipped": result.skipped, "seconds": round(result.seconds, 1), "boots": result.boots,
              "boot_seconds": ended.boot_seconds and round(ended.boot_seconds, 1)}
    (result.logs / "result.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (result.logs / "results.jsonl").write_text("".join(f"{line}\n" for line in output.results), encoding="utf-8")
