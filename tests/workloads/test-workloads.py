#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a measured workload promises: all of its work, its result on one line, and nothing left behind.

usage: test-workloads.py PROGRAM
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

PROGRAM = sys.argv[1]
NAME = pathlib.Path(PROGRAM).name

# For a sanitized build, on a machine that is building at the same time. Only a hang reaches it.
DEADLINE_SEC = 120

# Steps of a thread at --scale=1 (None: time decides), operations in a step, and what an operation adds to the sum of
# the data.
WORK = {
    "multi-heap": (40960, 8, 64),
    "numa01": (20480, 1, 1024),
    "numa01-thread-alloc": (20480, 1, 1024),
    "numa02": (20480, 1, 1024),
    "phase-changer": (20480, 1, 1024),
    "ping-pong": (10000, 1, 1),
    "reader": (20480, 1, 1),
    "stall": (None, 256, 1),
    "stream": (4096, 1, 1),
    "uneven": (None, 8, 64),
}
# Duration at --scale=1 of workloads that run for a fixed time.
TIMED_SEC = 20
# Smaller than the default, which is for guests.
ALWAYS = ["--bytes=16M"] if NAME == "stall" else []

KEYS = {
    "workload", "seconds", "all_work_s", "operations", "unit", "operations_of", "sum", "complete", "processes", "threads",
    "bytes", "placement", "bind", "window", "local_start", "remote_start", "nodes_start", "local_end",
    "remote_end", "nodes_end", "samples", "pass_first_s", "pass_last_s", "pass_min_s",
    "pass_max_s", "changes", "changes_s", "lap_worst_s", "laps", "laps_of_s",
}
ORDERED = {"numa01", "numa01-thread-alloc", "numa02", "multi-heap", "phase-changer", "uneven"}
if NAME in ORDERED:
    KEYS.add("order")


def wait_until(what, predicate):
    end = time.monotonic() + DEADLINE_SEC
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"waited {DEADLINE_SEC} s for: {what}")
        time.sleep(0.01)


def has_memory():
    return NAME != "ping-pong"


def nodes_with_memory():
    """The numbers of the nodes, or [0] where there are none."""
    found = []
    for path in pathlib.Path("/sys/devices/system/node").glob("node[0-9]*"):
        if "MemTotal:        0 kB" not in (path / "meminfo").read_text(encoding="ascii"):
            found.append(int(path.name[4:]))
    return sorted(found) or [0]


def stat_of(pid):
    """The fields of /proc/PID/stat from the state on, or None when it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()
    return None


def group_of(pgid):
    """The processes of a process group that have not ended."""
    pids = []
    for name in os.listdir("/proc"):
        stat = stat_of(name) if name.isdigit() else None
        if stat and int(stat[2]) == pgid and stat[0] not in "ZX":
            pids.append(int(name))
    return pids


def cpu_ticks(pid):
    stat = stat_of(pid)
    return int(stat[11]) + int(stat[12])


def n_threads(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


class Running:
    """The workload in a process group of its own."""

    def __init__(self, test, *args):
        self.process = subprocess.Popen([PROGRAM, *ALWAYS, *args], stdin=subprocess.DEVNULL, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        start_new_session=True)
        self.pid = self.process.pid
        test.addCleanup(self.end)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def children(self):
        return [pid for pid in group_of(self.pid) if pid != self.pid]

    def workers(self):
        """The processes whose threads work: the children, or the first process when there are none."""
        return self.children() or [self.pid]

    def wait_threads(self, processes, threads):
        """Waits until all threads of all processes exist; each process has its main thread besides."""
        wait_until("its threads", lambda: len(self.workers()) == processes and
                   all(n_threads(pid) > threads for pid in self.workers()))

    def finish(self):
        out, err = self.process.communicate(timeout=DEADLINE_SEC)
        return self.process.returncode, out, err


def run(*args):
    done = subprocess.run([PROGRAM, *ALWAYS, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=DEADLINE_SEC)
    return done.returncode, done.stdout, done.stderr


class Case(unittest.TestCase):
    def parse(self, status, out, err):
        """The result, after checking what holds for every result."""
        self.assertEqual(status, 0, err)
        self.assertEqual(err, "")
        self.assertEqual(out.count("\n"), 1, out)
        result = json.loads(out)
        self.assertEqual(set(result), KEYS)
        self.assertEqual(result["workload"], NAME)
        self.assertEqual(result["operations"], sum(result["operations_of"]))
        self.assertEqual(result["sum"], result["operations"] * WORK[NAME][2])
        self.assertEqual(len(result["operations_of"]), result["threads"])
        for when in ("start", "end"):
            if result["local_" + when] is not None:
                self.assertAlmostEqual(result["local_" + when] + result["remote_" + when], 1, delta=1e-5)
                self.assertAlmostEqual(sum(result["nodes_" + when]), 1, delta=1e-4)
        return result

    def result(self, *args):
        return self.parse(*run(*args))

    def steps(self, scale):
        return int(WORK[NAME][0] * scale) * WORK[NAME][1]

    def expected(self, processes, threads, scale):
        """Operations of each thread: in ping-pong only those of the first half of each group count, the senders."""
        if NAME == "ping-pong":
            return ([self.steps(scale)] * (threads // 2) + [0] * (threads // 2)) * processes
        return [self.steps(scale)] * (processes * threads)

    def check_work(self, result, processes, threads, scale):
        if WORK[NAME][0] is not None:
            self.assertEqual(result["operations_of"], self.expected(processes, threads, scale))
            return
        # The amount depends on the machine; which threads work does not.
        self.assertGreaterEqual(result["seconds"], TIMED_SEC * scale)
        fewer = max(1, threads // 3)
        works = [NAME != "uneven" or process % 2 == 0 or index < fewer for process in range(processes) for index in range(threads)]
        self.assertEqual([n > 0 for n in result["operations_of"]], works)


class Work(Case):
    def test_all_work_is_done(self):
        for processes, threads in ((1, 2), (1, 4), (3, 2)):
            with self.subTest(processes=processes, threads=threads):
                result = self.result(f"--processes={processes}", f"--threads={threads}", "--scale=0.01")
                self.check_work(result, processes, threads, 0.01)
                self.assertIs(result["complete"], True)
                self.assertEqual((result["processes"], result["threads"]), (processes, processes * threads))
                self.assertGreater(result["seconds"], 0)

    def test_scale_multiplies(self):
        result = self.result("--processes=1", "--threads=2", "--scale=0.02")
        self.check_work(result, 1, 2, 0.02)

    def test_defaults_use_all_cpus(self):
        result = self.result("--scale=0.001")
        if NAME in ("ping-pong", "uneven"):
            self.assertEqual((result["processes"], result["threads"]), (4, 32) if NAME == "ping-pong" else (2, 6))
        else:
            self.assertEqual(result["threads"] % result["processes"], 0)
            self.assertGreaterEqual(result["threads"], 1)
            self.assertLessEqual(result["threads"], max(len(os.sched_getaffinity(0)), result["processes"]))

    def test_seconds_counts(self):
        result = self.result("--processes=2", "--threads=2", "--seconds=0.3")
        self.assertIs(result["complete"], True)
        # It must not end early; how late it may end depends on the machine. One step is always done.
        self.assertGreaterEqual(result["seconds"], 0.3)
        self.assertLessEqual(result["all_work_s"], result["seconds"])
        self.assertTrue(all(n > 0 for n in result["operations_of"][::2]), result)

    def test_passes_are_timed(self):
        result = self.result("--processes=1", "--threads=2", "--scale=0.2")
        self.assertGreater(result["pass_min_s"], 0)
        self.assertLessEqual(result["pass_min_s"], result["pass_first_s"])
        self.assertLessEqual(result["pass_min_s"], result["pass_last_s"])
        self.assertLessEqual(result["pass_last_s"], result["pass_max_s"])
        self.assertLessEqual(result["pass_max_s"], result["seconds"])

    def test_window(self):
        for window, number in ((), 0), (("--window=254",), 254), (("--window=none",), None):
            with self.subTest(window=window):
                result = self.result(*window, "--processes=2", "--threads=2", "--scale=0.01")
                self.assertEqual(result["window"], number)

    def test_bound_threads(self):
        self.assertEqual(self.result("--scale=0.001")["bind"], "none")
        for option, bind in (("--bind", "run"), ("--bind=start", "start")):
            with self.subTest(option=option):
                result = self.result(option, "--processes=2", "--threads=2", "--scale=0.01")
                self.assertEqual(result["bind"], bind)
                self.check_work(result, 2, 2, 0.01)

    @unittest.skipIf(NAME not in ORDERED, "visits no lines")
    def test_order(self):
        """The same amount of work, in another order."""
        for order in ("random", "sequential"):
            result = self.result(f"--order={order}", "--processes=2", "--threads=3", "--scale=0.01")
            self.assertEqual(result["order"], order)
            self.check_work(result, 2, 3, 0.01)

    def test_laps_are_counted(self):
        result = self.result("--processes=1", "--threads=2", "--scale=0.01")
        if NAME != "stall":
            self.assertEqual((result["laps"], result["laps_of_s"], result["lap_worst_s"]), (0, [], None))
            return
        # One for every four lines that were touched.
        self.assertEqual(result["laps"] * 4, result["operations"])
        counts = [n for _, n in result["laps_of_s"]]
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertLessEqual(counts[0], result["laps"])
        self.assertGreater(result["lap_worst_s"], 0)
        for at_least, n in result["laps_of_s"]:
            self.assertEqual(n > 0, result["lap_worst_s"] >= at_least)


@unittest.skipUnless(NAME in ("numa02", "phase-changer", "ping-pong", "uneven"), "has no option of its own")
class Own(Case):
    @unittest.skipUnless(NAME == "phase-changer", "only phase-changer has phases")
    def test_phases(self):
        for phases, changes in ((1, 0), (2, 1), (3, 2)):
            for amount in ("--scale=0.02", "--seconds=0.3"):
                with self.subTest(phases=phases, amount=amount):
                    result = self.result(f"--phases={phases}", "--threads=2", amount)
                    # On a busy machine a thread may sleep through a phase that has ended.
                    self.assertLessEqual(result["changes"], 2 * changes)
                    if amount.startswith("--scale"):
                        self.assertEqual(result["changes"], 2 * changes)
                    times = result["changes_s"]
                    self.assertEqual(len(times) > 0, result["changes"] > 0)
                    self.assertEqual(times, sorted(times))
                    self.assertTrue(all(0 < time < result["seconds"] for time in times), times)

    @unittest.skipUnless(NAME == "numa02", "only numa02 has sharers")
    def test_sharers(self):
        for sharers, threads in ((2, 4), (2, 3), (4, 3)):
            with self.subTest(sharers=sharers, threads=threads):
                result = self.result(f"--sharers={sharers}", f"--threads={threads}", "--scale=0.02")
                self.assertEqual(result["operations_of"], self.expected(1, threads, 0.02))

    @unittest.skipUnless(NAME == "ping-pong", "only ping-pong has pipes")
    def test_pipes(self):
        result = self.result("--pipe", "--processes=2", "--threads=6", "--scale=0.01")
        self.assertEqual(result["operations_of"], self.expected(2, 6, 0.01))

    @unittest.skipUnless(NAME == "uneven", "only uneven has parts")
    def test_swap(self):
        result = self.result("--swap", "--seconds=1")
        self.assertEqual(len(result["operations_of"]), 6)
        # All threads of the second process work in the second half. On a busy machine a thread may sleep through its
        # part.
        self.assertGreater(sum(n > 0 for n in result["operations_of"]), 4)
        self.assertGreaterEqual(result["changes_s"][0], 0.5)

    @unittest.skipUnless(NAME == "uneven", "only uneven lends")
    def test_lend(self):
        result = self.result("--bind=lend", "--seconds=0.3")
        self.assertEqual(result["bind"], "lend")
        self.assertEqual([n > 0 for n in result["operations_of"]], [True, True, True, True, False, False])


@unittest.skipUnless(has_memory(), "has no memory worth placing")
class Placement(Case):
    def placed(self, placement, *args):
        status, out, err = run(f"--placement={placement}", "--processes=2", "--threads=2", "--scale=0.01",
                               *args)
        if status == 1 and ("not permitted" in err or "not implemented" in err):
            self.skipTest(err.strip())
        result = self.parse(status, out, err)
        if result["nodes_start"] is None:
            self.skipTest("the kernel does not tell where pages are")
        self.assertEqual(result["placement"], placement)
        self.check_work(result, 2, 2, 0.01)
        return result

    def test_main_is_one_node(self):
        result = self.placed("main")
        self.assertEqual([share for share in result["nodes_start"] if share], [1])

    def test_node(self):
        for node in nodes_with_memory():
            with self.subTest(node=node):
                self.assertEqual(self.placed(f"node:{node}")["nodes_start"], [0] * node + [1])

    def test_process(self):
        nodes = nodes_with_memory()[:2]
        shares = self.placed("process")["nodes_start"]
        self.assertEqual([shares[node] for node in nodes], [1 / len(nodes)] * len(nodes))

    def test_interleave(self):
        nodes = nodes_with_memory()
        shares = self.placed("interleave")["nodes_start"]
        for node in nodes:
            # Huge pages are interleaved in pieces of 2 MiB: far from equal in a small array.
            self.assertGreater(shares[node], 0.2 / len(nodes))

    def test_local(self):
        result = self.placed("local", "--bind")
        self.assertEqual(result["local_start"], 1)

    def test_unknown_node(self):
        missing = nodes_with_memory()[-1] + 1
        status, _, err = run(f"--placement=node:{missing}")
        self.assertEqual((status, err.count("\n")), (2, 1), err)

    def test_samples(self):
        result = self.result("--sample=20", "--processes=2", "--threads=2", "--seconds=0.5", "--bind",
                             "--placement=local")
        if result["local_start"] is None:
            self.skipTest("the kernel does not tell where pages are")
        # The first, the last, and those in between that the machine allowed.
        self.assertGreaterEqual(len(result["samples"]), 2)
        times, operations, local = zip(*result["samples"])
        self.assertEqual((list(times), list(operations)), (sorted(times), sorted(operations)))
        self.assertEqual(operations[-1], result["operations"])
        if NAME != "reader":  # all of its threads read all of its memory
            self.assertEqual((result["local_end"], local[-1]), (1, 1))
        self.assertEqual(self.result("--scale=0.01")["samples"], [])

    def test_bytes(self):
        result = self.result("--bytes=3M", "--processes=1", "--threads=4", "--scale=0.005")
        self.assertEqual(result["bytes"], (12 if NAME == "numa01-thread-alloc" else 3) << 20)
        self.check_work(result, 1, 4, 0.005)

    def test_ballast(self):
        """It is resident, and not part of what is worked on or sampled."""
        for option, mb in ([], 0), (["--ballast=96M"], 96):
            running = Running(self, "--seconds=600", "--processes=1", "--threads=2", "--bytes=12M", *option)
            running.wait_threads(1, 2)
            status = pathlib.Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8", errors="replace")
            resident = next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmRSS:"))
            self.assertGreaterEqual(resident, mb)
            self.assertLess(resident, mb + 90)
            running.process.terminate()
            result = self.parse(*running.finish())
            self.assertEqual(result["bytes"], (24 if NAME == "numa01-thread-alloc" else 12) << 20)


@unittest.skipUnless(has_memory(), "has no memory worth damaging")
class Damage(Case):
    def largest_mapping(self, pid):
        """(start, end) of the mapping with the most resident pages."""
        best, area = 0, None
        text = pathlib.Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            if "-" in line.split()[0]:
                now = tuple(int(x, 16) for x in line.split()[0].split("-"))
            elif line.startswith("Rss:") and int(line.split()[1]) > best:
                best, area = int(line.split()[1]), now
        return area

    def test_damage_is_found(self):
        """A few lines are overwritten from outside while it works: the run must fail with a message."""
        running = Running(self, "--seconds=600", "--processes=1", "--threads=2", "--bytes=32M")
        running.wait_threads(1, 2)
        start, end = self.largest_mapping(running.pid)
        with open(f"/proc/{running.pid}/mem", "r+b", buffering=0) as memory:
            for at in range(start, end, 256 << 10):
                os.pwrite(memory.fileno(), b"\xa5" * 64, at)
        # Damage that shows only during the work must be noticed: some blocks are visited again after this.
        before = cpu_ticks(running.pid)
        wait_until("some more work", lambda: cpu_ticks(running.pid) > before + 20)
        running.process.terminate()
        status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""), err)
        self.assertIn("damaged", err)


class End(Case):
    def nothing_left(self, running):
        wait_until("all its processes to end", lambda: not group_of(running.pid))

    def test_sigterm_ends_it_with_its_result(self):
        for processes in (1, 2):
            with self.subTest(processes=processes):
                running = Running(self, "--seconds=600", f"--processes={processes}", "--threads=2")
                running.wait_threads(processes, 2)
                running.process.terminate()
                result = self.parse(*running.finish())
                self.assertIs(result["complete"], False)
                self.assertLess(result["seconds"], 600)
                self.nothing_left(running)

    def test_sigterm_to_the_group(self):
        running = Running(self, "--scale=1000", "--processes=2", "--threads=2")
        running.wait_threads(2, 2)
        os.killpg(running.pid, signal.SIGTERM)
        result = self.parse(*running.finish())
        self.assertIs(result["complete"], False)
        self.assertLess(result["seconds"], DEADLINE_SEC)
        self.nothing_left(running)

    def test_killed_child_fails_it(self):
        running = Running(self, "--seconds=600", "--processes=3", "--threads=2")
        running.wait_threads(3, 2)
        os.kill(running.children()[1], signal.SIGKILL)
        status, out, err = running.finish()
        self.assertEqual((status, out), (1, ""))
        self.assertIn("was killed by signal 9", err)
        self.nothing_left(running)

    def test_killed_parent_leaves_nobody(self):
        running = Running(self, "--seconds=600", "--processes=2", "--threads=2")
        running.wait_threads(2, 2)
        running.process.kill()
        running.process.wait()
        self.nothing_left(running)


class Arguments(Case):
    BAD = ["--threads=0", "--threads=x", "--threads=-1", "--threads=2.5", "--threads=99999",
           "--processes=0", "--processes=65", "--scale=0", "--scale=-1", "--scale=nan", "--scale=x",
           "--seconds=0", "--seconds=inf", "--nonsense", "word", "--bind=1", "--bind=lent", "--window=255", "--window=x"]
    BAD_WITH_MEMORY = ["--bytes=0", "--bytes=1Q", "--bytes=M", "--bytes=63K --threads=2", "--bytes=-1M",
                       "--placement=there", "--placement=node:", "--placement=node:127", "--sample=0",
                       "--sample=x"]

    def test_bad_arguments(self):
        bad = self.BAD + ["--scale=1 --seconds=1"]
        bad += self.BAD_WITH_MEMORY if has_memory() else ["--bytes=1M"]
        own = {"numa02": ["--sharers=0", "--sharers=16"], "phase-changer": ["--phases=0", "--bind=lend"],
               "ping-pong": ["--threads=3", "--sample"]}
        bad += own.get(NAME, ["--phases=2"])
        for args in bad:
            with self.subTest(args=args):
                status, out, err = run(*args.split())
                self.assertEqual((status, out), (2, ""), err)
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn(NAME + ": ", err)

    def test_help(self):
        status, out, err = run("--help")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("--processes=N", out)
        self.assertEqual("--placement" in out, has_memory())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
