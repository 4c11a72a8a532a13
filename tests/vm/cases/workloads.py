# SPDX-License-Identifier: LGPL-2.1-or-later
"""The measured workloads on real nodes: memory starts where --placement says, threads run where --bind says, and the
reported location of pages is right. Balancing is off, so that nothing else moves."""

import json
import subprocess
import time
import unittest

import lib
import series
import tap

MACHINE = tap.info()["machine"]
CPUS = MACHINE["cpus"]
MEMORY = [node for node, mb in enumerate(MACHINE["memory_mb"]) if mb]
LAST = len(CPUS) - 1
N_CPUS = sum(map(len, CPUS))

# Every thread has memory of its own, or shares it with threads bound to the same node.
PLACEABLE = ["multi-heap", "numa01", "numa01-thread-alloc", "numa02", "phase-changer", "stream"]
ALL = [*PLACEABLE, "reader"]


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=lib.DEADLINE_SEC)
    return json.loads(done.stdout)


def all_on(node):
    return [0] * node + [1]


def share_on(result, node, when="start"):
    shares = result[f"nodes_{when}"]
    return shares[node] if node < len(shares) else 0


class Start(unittest.TestCase):
    def test_main_is_the_node_of_the_first_cpu(self):
        for name in ALL:
            for node in (0, LAST):
                cpus = ",".join(str(cpu) for cpus in CPUS[node:] for cpu in cpus)
                with self.subTest(name=name, cpus=cpus):
                    result = run("taskset", "-c", cpus, name, "--scale=0.02")
                    self.assertEqual(result["nodes_start"], all_on(node))

    def test_main_leaves_a_policy_alone(self):
        result = run("numactl", f"--membind={LAST}", "numa01", "--scale=0.02")
        self.assertEqual(result["nodes_start"], all_on(LAST))

    def test_node(self):
        for name in ALL:
            for node in MEMORY:
                with self.subTest(name=name, node=node):
                    result = run(name, "--scale=0.02", f"--placement=node:{node}")
                    self.assertEqual(result["nodes_start"], all_on(node))

    def test_process(self):
        result = run("numa01", "--scale=0.02", "--placement=process", f"--processes={len(MEMORY)}")
        for node in MEMORY:
            self.assertEqual(share_on(result, node), 1 / len(MEMORY))

    def test_interleave(self):
        for name in ALL:
            with self.subTest(name=name):
                result = run(name, "--scale=0.02", "--placement=interleave")
                for node in MEMORY:
                    self.assertAlmostEqual(share_on(result, node), 1 / len(MEMORY), delta=0.1)

    def test_bound_and_local(self):
        for name in PLACEABLE:
            with self.subTest(name=name):
                result = run(name, "--scale=0.02", "--placement=local", "--bind", "--sample")
                self.assertEqual((result["local_start"], result["local_end"]), (1, 1))
                self.assertIsNotNone(series.local_since(result["samples"], 1))

    def test_bound_and_misplaced(self):
        """All memory is on one node, and the threads are spread: the local share is that of the threads on that node."""
        for name in ALL:
            with self.subTest(name=name):
                result = run(name, "--scale=0.02", "--placement=node:0", "--bind", "--sample")
                self.assertEqual(result["local_start"], len(CPUS[0]) / N_CPUS)
                self.assertIsNone(series.local_since(result["samples"], 0.9))

    def test_bound_at_the_start(self):
        """Each thread touches its memory where it is bound, and is released afterwards."""
        for name in PLACEABLE:
            with self.subTest(name=name):
                result = run(name, "--scale=0.02", "--placement=local", "--bind=start")
                self.assertEqual(result["bind"], "start")
                for node, cpus in enumerate(CPUS):
                    self.assertAlmostEqual(share_on(result, node), len(cpus) / N_CPUS, delta=0.01)

    def test_lent_threads_are_elsewhere(self):
        """The last of each process's three threads; it works only in the first process."""
        result = run("uneven", "--seconds=0.5", "--bind=lend", "--placement=process", "--sample")
        if len(CPUS) == 2:
            self.assertEqual(result["local_start"], 3 / 4)


class Watch(unittest.TestCase):
    def start(self, *args):
        """A workload on the last node with all of its memory on node 0."""
        cpus = ",".join(map(str, CPUS[LAST]))
        argv = ["taskset", "-c", cpus, *args, "--placement=node:0", "--seconds=600", "--sample=10"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_work(self, process):
        """Waits until its threads work, and have worked for a few samples."""
        end, seen = time.monotonic() + lib.DEADLINE_SEC, None
        while time.monotonic() < end:
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rpartition(")")[2].split()
            threads, ticks = int(fields[17]), int(fields[11])
            if threads > 1:
                seen = ticks if seen is None else seen
                if ticks >= seen + 50:
                    return
            time.sleep(0.05)
        self.fail("it does not work")

    def test_moved_memory_converges(self):
        process = self.start("numa02", "--bytes=16M")
        self.wait_work(process)
        subprocess.run(["migratepages", str(process.pid), "0", str(LAST)], check=True, timeout=lib.DEADLINE_SEC)
        self.wait_work(process)
        process.terminate()
        result = json.loads(process.communicate(timeout=lib.DEADLINE_SEC)[0])
        self.assertEqual((result["local_start"], result["local_end"]), (0, 1))
        self.assertEqual(result["nodes_start"], all_on(0))
        self.assertEqual(result["nodes_end"], all_on(LAST))
        since = series.local_since(result["samples"], 0.95)
        self.assertTrue(0.05 < since < result["seconds"], since)

    def test_memory_that_stays_does_not(self):
        process = self.start("numa02", "--bytes=16M")
        self.wait_work(process)
        process.terminate()
        result = json.loads(process.communicate(timeout=lib.DEADLINE_SEC)[0])
        self.assertEqual((result["local_start"], result["local_end"]), (0, 0))
        self.assertEqual({local for _, _, local in result["samples"]}, {0})
        self.assertGreater(len(result["samples"]), 1)


if __name__ == "__main__":
    tap.main()
