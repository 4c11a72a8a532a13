# SPDX-License-Identifier: LGPL-2.1-or-later
"""Case files: what a job is, and what it needs of the guest that runs it."""

import configparser
import pathlib
from dataclasses import dataclass

from . import SUITES, USUAL_SUITES, VM, LabError, image, machine

KEYS = {"description", "machine", "suites", "kernelargs", "numabalancing", "cost", "costargs", "limitsec", "bootlimitsec", "image",
        "boots", "alone", "clock", "command"}
# Whether a guest's CPUs take turns, which is fast, or run at the same time.
CLOCKS = ("turns", "parallel")


@dataclass(frozen=True)
class Case:
    """`parallel`: CPUs run at the same time, by a clock of the lab's own; they do where memory has its `cost`.
    `balancing`: whether the kernel may balance NUMA memory during the job. `seed`: for the guest's randomness: the
    layout of address spaces, and hashes."""

    name: str
    description: str
    machines: list[str]
    suites: list[str]
    command: str
    kernel_args: str = ""
    balancing: bool = True
    parallel: bool = False
    cost: bool = False
    cost_args: str = ""
    limit_sec: int = 120
    boot_limit_sec: int = 150
    image: str = ""
    boots: int = 1
    alone: bool = False
    seed: int = 1


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
    suites = section.get("Suites", " ".join(USUAL_SUITES)).split()
    if not machines or not suites or set(suites) - set(SUITES):
        raise LabError(f"Machine= and Suites=: expected machines, and suites out of {' '.join(SUITES)}")
    variant = section.get("Image", "")
    if variant not in ("", *image.EXTRA):
        raise LabError(f"Image=: expected one of {' '.join(image.EXTRA)}, or nothing")
    clock = section.get("Clock", CLOCKS[0])
    if clock not in CLOCKS:
        raise LabError(f"Clock=: expected one of {', '.join(CLOCKS)}")
    cost, boots = section.getboolean("Cost", False), section.getint("Boots", 1)
    return Case(name, section["Description"], machines, suites, section["Command"].strip() + "\n",
                section.get("KernelArgs", ""), section.getboolean("NumaBalancing", True), cost or clock == "parallel", cost,
                section.get("CostArgs", ""), section.getint("LimitSec", 300), section.getint("BootLimitSec", 150), variant, boots,
                section.getboolean("Alone", False) or boots > 1)
