# SPDX-License-Identifier: LGPL-2.1-or-later
"""Machine files: the shape of a guest, and the options of QEMU and the cost plugin for it."""

import configparser
import pathlib
from dataclasses import dataclass

from . import VM, LabError

KEYS = {"description", "nodes", "cpus", "threads", "llcs", "memorymb", "distances", "bandwidthmb"}
# The whole guest must fit a small CI machine; memory is only used when the guest touches it.
MEMORY_MB_MAX = 16384
CPUS_MAX = 64


@dataclass(frozen=True)
class Machine:
    """`cpus`, `memory_mb`: per node, 0 for none. `threads`: per core. `llcs`: per node. `distances`: one row per
    node. `bandwidth_mb`: per second, what firmware reports for each node; 0: nothing."""

    name: str
    cpus: list[int]
    threads: int
    llcs: int
    memory_mb: list[int]
    distances: list[list[int]]
    bandwidth_mb: list[int]

    @property
    def nodes(self) -> int:
        return len(self.cpus)

    def cpus_of(self, node: int) -> list[int]:
        first = sum(self.cpus[:node])
        return list(range(first, first + self.cpus[node]))

    def describe(self) -> dict:
        """What a job finds in /lab/info.json."""
        return {"name": self.name, "nodes": self.nodes, "cpus": [self.cpus_of(n) for n in range(self.nodes)],
                "threads": self.threads, "llcs": self.llcs, "memory_mb": self.memory_mb, "distances": self.distances,
                "bandwidth_mb": self.bandwidth_mb}


def numbers(section: configparser.SectionProxy, key: str, count: int) -> list[int]:
    """One number for all nodes, or one for each."""
    values = [int(word) for word in section[key].split()]
    if len(values) == 1:
        values *= count
    if len(values) != count or min(values) < 0:
        raise LabError(f"{key}={section[key]}: expected one number, or one for each of {count} nodes")
    return values


def load(name: str, directory: pathlib.Path = VM / "machines") -> Machine:
    path = directory / f"{name}.machine"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        machine = parse(name, parser["Machine"])
        check(machine)
    except FileNotFoundError:
        raise LabError(f"no machine '{name}': expected one of {' '.join(names(directory))}") from None
    except (configparser.Error, KeyError, ValueError, LabError) as error:
        raise LabError(f"{path}: {error}") from error
    return machine


def names(directory: pathlib.Path = VM / "machines") -> list[str]:
    return sorted(path.stem for path in directory.glob("*.machine"))


def parse(name: str, section: configparser.SectionProxy) -> Machine:
    unknown = set(section) - KEYS
    if unknown:
        raise LabError(f"unknown keys: {' '.join(sorted(unknown))}")
    nodes = section.getint("Nodes", 0)
    if nodes < 1:
        raise LabError("Nodes=: expected a number above 0")
    rows = [[int(word) for word in line.split()] for line in section["Distances"].strip().splitlines()]
    return Machine(name, numbers(section, "CPUs", nodes), section.getint("Threads", 1), section.getint("LLCs", 1),
                   numbers(section, "MemoryMB", nodes), rows,
                   numbers(section, "BandwidthMB", nodes) if "BandwidthMB" in section else [0] * nodes)


def check(machine: Machine) -> None:
    nodes = machine.nodes
    if machine.threads < 1 or machine.llcs < 1:
        raise LabError("Threads= and LLCs=: expected a number above 0")
    populated = {count for count in machine.cpus if count}
    if len(populated) != 1:
        # QEMU's sockets are all alike, and a node is a socket, so that it has a cache of its own.
        raise LabError("CPUs=: expected the same number on all nodes that have any")
    if populated.pop() % (machine.threads * machine.llcs):
        raise LabError("CPUs=: expected a multiple of Threads= times LLCs=")
    if not 0 < sum(machine.memory_mb) <= MEMORY_MB_MAX or sum(machine.cpus) > CPUS_MAX:
        raise LabError(f"expected up to {MEMORY_MB_MAX} MB and {CPUS_MAX} CPUs in all")
    if len(machine.distances) != nodes or any(len(row) != nodes for row in machine.distances):
        raise LabError(f"Distances=: expected {nodes} rows of {nodes} numbers")
    for i, row in enumerate(machine.distances):
        if any((value == 10) != (i == j) or not 10 <= value <= 254 for j, value in enumerate(row)):
            raise LabError("Distances=: expected 10 for a node to itself, and 11 to 254 to others")


def qemu_arguments(machine: Machine) -> list[str]:
    """CPUs are numbered node by node."""
    sockets = sum(1 for count in machine.cpus if count)
    cores = max(machine.cpus) // machine.threads // machine.llcs
    smp = f"{sum(machine.cpus)},sockets={sockets},dies={machine.llcs},cores={cores},threads={machine.threads}"
    argv = ["-m", f"{sum(machine.memory_mb)}M", "-smp", smp]
    for node in range(machine.nodes):
        option = f"node,nodeid={node}"
        if machine.cpus[node]:
            cpus = machine.cpus_of(node)
            option += f",cpus={cpus[0]}-{cpus[-1]}"
        if machine.memory_mb[node]:
            argv += ["-object", f"memory-backend-ram,id=mem{node},size={machine.memory_mb[node]}M"]
            option += f",memdev=mem{node}"
        argv += ["-numa", option + (f",initiator={initiator(machine, node)}" if any(machine.bandwidth_mb) else "")]
    for i, row in enumerate(machine.distances):
        argv += [word for j, value in enumerate(row) if i != j for word in ("-numa", f"dist,src={i},dst={j},val={value}")]
    if any(machine.bandwidth_mb):
        argv += ["-machine", "hmat=on"]
        for node, mb in enumerate(machine.bandwidth_mb):
            argv += ["-numa", f"hmat-lb,initiator={initiator(machine, node)},target={node},hierarchy=memory,"
                              f"data-type=access-bandwidth,bandwidth={mb}M"]
    return argv


def initiator(machine: Machine, node: int) -> int:
    """The node whose CPUs are nearest."""
    return min((other for other in range(machine.nodes) if machine.cpus[other]), key=lambda other: machine.distances[node][other])


def cost_arguments(machine: Machine) -> str:
    """The same shape as arguments of the cost plugin (cost/README.md)."""
    cpu_nodes = [str(node) for node in range(machine.nodes) for _ in range(machine.cpus[node])]
    rows = "/".join(":".join(str(value) for value in row) for row in machine.distances)
    llcs = f",llcs={machine.llcs}" if machine.llcs > 1 else ""
    return f"nodes={':'.join(map(str, machine.memory_mb))},cpus={':'.join(cpu_nodes)},dist={rows}{llcs}"
