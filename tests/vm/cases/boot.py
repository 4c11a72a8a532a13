# SPDX-License-Identifier: LGPL-2.1-or-later
"""The guest is the machine that its machine file describes, both for the kernel and for numaplace."""

import json
import os
import pathlib
import subprocess
import unittest

import tap

INFO = tap.info()
MACHINE = INFO["machine"]
NODES = pathlib.Path("/sys/devices/system/node")
CPUS = pathlib.Path("/sys/devices/system/cpu")
# Suites differ in the version of the kernel.
RELEASES = {"bookworm": "6.1.", "trixie": "6.12.", "backports": "7."}
MB = 1 << 20
# Memory that the kernel reserves before it counts: its image, and its page descriptors.
KEPT_MB = 64
# On machines with memory above 4 GB it reserves as much for devices. The descriptors, 64 bytes for each 4 KiB, exceed
# the rest.
LARGE_MB = 4096
BOUNCE_MB = 64
PAGES_PER_DESCRIPTOR_PAGE = 64


def left_mb(mb: int) -> int:
    """The least memory of a node that must remain."""
    large = sum(MACHINE["memory_mb"]) > LARGE_MB
    return max(0, mb - KEPT_MB - (BOUNCE_MB + mb // PAGES_PER_DESCRIPTOR_PAGE if large else 0))


def members(text: str) -> list[int]:
    """The kernel's list form, as "0-2,5"."""
    found = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


def read(path: pathlib.Path) -> str:
    return path.read_text(encoding="ascii")


def chunks(cpus: list[int], size: int) -> list[list[int]]:
    return [cpus[i:i + size] for i in range(0, len(cpus), size)]


class Kernel(unittest.TestCase):
    def test_release(self):
        self.assertTrue(os.uname().release.startswith(RELEASES[INFO["suite"]]), os.uname().release)

    def test_nodes(self):
        self.assertEqual(members(read(NODES / "online")), list(range(MACHINE["nodes"])))
        self.assertEqual(members(read(NODES / "has_cpu")), [n for n, cpus in enumerate(MACHINE["cpus"]) if cpus])
        self.assertEqual(members(read(NODES / "has_memory")), [n for n, mb in enumerate(MACHINE["memory_mb"]) if mb])

    def test_cpus(self):
        for node, cpus in enumerate(MACHINE["cpus"]):
            self.assertEqual(members(read(NODES / f"node{node}" / "cpulist")), cpus)
        self.assertEqual(members(read(CPUS / "online")), sum(MACHINE["cpus"], []))

    def test_distances(self):
        rows = [[int(word) for word in read(NODES / f"node{n}" / "distance").split()] for n in range(MACHINE["nodes"])]
        self.assertEqual(rows, MACHINE["distances"])

    def test_memory(self):
        for node, mb in enumerate(MACHINE["memory_mb"]):
            total_kb = int(read(NODES / f"node{node}" / "meminfo").split("MemTotal:")[1].split()[0])
            self.assertLessEqual(total_kb, mb * 1024)
            self.assertGreaterEqual(total_kb, left_mb(mb) * 1024)

    def test_threads(self):
        for cpus in MACHINE["cpus"]:
            for core in chunks(cpus, MACHINE["threads"]):
                for cpu in core:
                    self.assertEqual(members(read(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list")), core)

    def test_last_level_caches(self):
        for cpus in MACHINE["cpus"]:
            for behind in chunks(cpus, max(1, len(cpus) // MACHINE["llcs"])):
                for cpu in behind:
                    self.assertEqual(members(read(CPUS / f"cpu{cpu}" / "cache" / "index3" / "shared_cpu_list")), behind)

    def test_accounting(self):
        """What the lab's kernel command line requests, and the daemon reads."""
        self.assertIn("some avg10", read(pathlib.Path("/proc/pressure/cpu")))
        self.assertEqual(read(pathlib.Path("/proc/sys/kernel/sched_schedstats")).strip(), "1")
        self.assertEqual(pathlib.Path("/proc/1/comm").read_text(encoding="ascii").strip(), "systemd")


class Numaplace(unittest.TestCase):
    def setUp(self):
        run = subprocess.run(["numaplacectl", "topology", "--json=short"], capture_output=True, text=True, check=True)
        self.topology = json.loads(run.stdout)

    def test_live(self):
        self.assertEqual(self.topology["origin"], "live")
        self.assertEqual(self.topology["rehearsal"], 0)

    def test_nodes(self):
        self.assertEqual([node["node"] for node in self.topology["nodes"]], list(range(MACHINE["nodes"])))
        self.assertEqual([members(node["cpus"]) for node in self.topology["nodes"]], MACHINE["cpus"])

    def test_memory(self):
        for node, mb in zip(self.topology["nodes"], MACHINE["memory_mb"]):
            self.assertLessEqual(node["memory_bytes"], mb * MB)
            self.assertGreaterEqual(node["memory_bytes"], left_mb(mb) * MB)

    def test_bandwidth(self):
        self.assertEqual([node["bandwidth_bytes_per_sec"] for node in self.topology["nodes"]],
                         [mb * 1000000 for mb in MACHINE["bandwidth_mb"]])

    def test_distances(self):
        self.assertTrue(self.topology["distances_known"] or MACHINE["nodes"] == 1)
        self.assertEqual(self.topology["distances"], sum(MACHINE["distances"], []))

    def test_caches_and_cores(self):
        populated = [cpus for cpus in MACHINE["cpus"] if cpus]
        expected = [part for cpus in populated for part in chunks(cpus, len(cpus) // MACHINE["llcs"])]
        self.assertEqual([members(llc["cpus"]) for llc in self.topology["llcs"]], expected)
        self.assertEqual(self.topology["n_cores"], sum(map(len, populated)) // MACHINE["threads"])


if __name__ == "__main__":
    tap.main()
