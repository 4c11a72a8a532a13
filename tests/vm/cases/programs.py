# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of the placement benchmark: workloads that measure themselves, and programs that only end."""

import json
import os
import shutil
import subprocess
import time

import series
import tap

RUN_LIMIT_SEC = 300
# Often enough to distinguish a second from half a second.
SAMPLE_HZ = 10
# When runs should have settled: uneven loads, and others.
AFTER_SEC = (3, 5)
LOCAL = {"local90_s": 0.90, "local95_s": 0.95}
STALLS_SEC = (0.001, 0.005, 0.010, 0.020)


def nodes_with_cpus():
    return sum(bool(cpus) for cpus in tap.info()["machine"]["cpus"])


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_LIMIT_SEC, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class Workload:
    """A workload of the project. The CPUs are divided among the threads of its `n_processes`, unless `n_threads` says
    how many each has. None processes: one for each node; 0: the workload decides."""

    sample_hz = SAMPLE_HZ

    def __init__(self, name, n_processes=1, n_threads=None, memory=True, options=(), orders=False):
        self.name = name
        self.n_threads = n_threads
        self.orders = orders
        self.exe = f"/lab/bin/{name}"
        self.wanted = n_processes
        self.memory = memory
        self.options = options

    @property
    def n_processes(self):
        return nodes_with_cpus() if self.wanted is None else self.wanted

    def threads(self):
        return self.n_threads or os.cpu_count() // self.n_processes

    def places(self, memory, bind):
        """Where memory starts, and where the threads run; `bind` is how they are bound, if they are."""
        if not self.memory:
            return [f"--bind={bind}"] if bind else []
        if bind:
            # Some threads that lend run away from their process's memory.
            return [f"--bind={bind}", f"--placement={'process' if bind == 'lend' else 'local'}"]
        return ["--bind=start", "--placement=local"] if memory == "placed" else [f"--placement={memory}"]

    def argv(self, pair, bind):
        argv = [self.name, f"--scale={pair['scale']}", f"--window={pair['window']}", *self.options]
        argv += self.places(pair["memory"], bind)
        argv += [f"--order={pair['order']}"] if self.orders else []
        if self.n_processes:
            # The defaults follow from the CPUs the program may use, which the system under test may change.
            argv += [f"--threads={self.threads()}", f"--processes={self.n_processes}"]
        if self.memory:
            argv += [f"--sample={self.sample_hz}"]
            argv += [f"--bytes={pair['bytes']}"] if pair.get("bytes") else []
        return argv

    def run(self, pair, bind="", arguments=()):
        return figures(json.loads(run([*self.argv(pair, bind), *arguments])))


class Uneven(Workload):
    """Threads for one and a half nodes, of which in every other process a third works. Ten samples a second would
    keep a CPU busy for an eighth, which could otherwise be lent."""

    sample_hz = 2

    def threads(self):
        return os.cpu_count() // nodes_with_cpus() * 3 // 2


class Program:
    """A program that only ends, after work that `--scale` multiplies; its figure is the time from start to end."""

    memory = False
    n_processes = 1

    def __init__(self, name, work, argv):
        self.name = name
        self.exe = shutil.which(name)
        self.work = work
        self.argv = argv

    def run(self, pair, bind="", arguments=()):
        work = max(1, int(self.work * pair["scale"]))
        argv = [self.name, *[word.format(work=work) for word in self.argv], *arguments]
        for mark in ("on", str(pair["window"])):
            run(["window", mark])
        start = time.monotonic()
        run(argv)
        seconds = time.monotonic() - start
        for mark in (str(pair["window"] + 1), "off"):
            run(["window", mark])
        return {"seconds": seconds, "operations": work, "processes": 1}


def figures(result):
    """The figures of a workload's result that the benchmark uses."""
    samples, changes = result["samples"], result["changes_s"]
    # When the first thread has ended, the others have less company, and become faster or slower.
    until = result["all_work_s"]
    found = {}
    if samples:
        found |= {key: series.local_since(samples, share) for key, share in LOCAL.items()}
        found |= {f"rate_after_{sec}s": series.rate(samples, sec, until) for sec in AFTER_SEC}
    if samples and changes:
        times = series.relocal(samples, LOCAL["local90_s"], changes)
        found["relocal90_s"] = None if None in times else max(times)
        found["recovered_s"] = series.recovered(samples, changes[0], until)
    if result["laps"]:
        found["stall_worst_s"] = result["lap_worst_s"]
        counts = {round(at_least, 5): n for at_least, n in result["laps_of_s"]}
        found["stalls"] = [counts[sec] for sec in STALLS_SEC]
    return {**result, **found}


PROGRAMS = {
    "numa01": Workload("numa01", n_processes=2, orders=True),
    "numa01-thread-alloc": Workload("numa01-thread-alloc", n_processes=2, orders=True),
    "numa02": Workload("numa02", orders=True),
    "multi-heap": Workload("multi-heap", n_processes=None, orders=True),
    "stream": Workload("stream"),
    "ping-pong": Workload("ping-pong", n_processes=0, memory=False),
    # With --scale=4 and more, figures begin after the placer has had half a minute.
    "ping-pong-settled": Workload("ping-pong", n_processes=0, memory=False, options=["--window-after=30"]),
    "phase-changer": Workload("phase-changer", orders=True),
    "reader": Workload("reader"),
    "uneven": Uneven("uneven", n_processes=None, orders=True),
    "uneven-swap": Uneven("uneven", n_processes=None, options=["--swap"], orders=True),
    "stall": Workload("stall"),
    "stall-pair": Workload("stall", n_processes=None),
    # Short: forks are expensive in a guest.
    # Two threads, so that CPUs stay idle: are they better together or apart?
    "stream-two": Workload("stream", n_threads=2),
    "numa02-two": Workload("numa02", n_threads=2, orders=True),
    # Pairs of threads that share memory which no other thread uses.
    "numa02-pairs": Workload("numa02", options=["--sharers=2"], orders=True),
    "ranks": Workload("stream", n_processes=2, n_threads=1),
    "forker": Program("forker", 8000, ["--processes=4", "--limit={work}"]),
    "hackbench": Program("hackbench", 400, ["-s", "512", "-g", "2", "-l", "{work}"]),
}
