# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads of one process, each with memory of its own, all on the same node: they separate, and the memory of each
goes with it."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import lib
import nodes
import tap

FAR, HOME = 0, 1
# More than a node has CPUs. If a process lives on one node, all its memory goes there, and its use is not examined.
THREADS = 4
MB = 16
SORTER = pathlib.Path(__file__).with_name("sorter.py")
# Slow enough to do something meanwhile.
SLOW = "4M"
# The daemon is killed when the threads that examine memory, or those that move it, are at work for the n-th time: at
# once, and when they have been at work for a while.
KILLS = [(n, late_sec) for late_sec in (0, 0.005) for n in (1, 2, 3)]
# This many extra tries may end with sampling given up, in a guest too slow for the 20 ms that protecting pages may
# take.
SPARE_TRIES = 6
GIVEN_UP_SEC = 2
BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")


class Thread:
    def __init__(self, line):
        self.tid, self.address, self.rounds = (int(word) for word in line.split())


def at_work(pid, prefix):
    """Whether a thread of that name runs, is runnable, or waits for a lock in the kernel."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, _, rest = (task / "stat").read_text(encoding="ascii").partition("(")[2].rpartition(")")
            if name.startswith(prefix) and rest.split()[0] in "RD":
                return True
    return False


def pages(pid, address):
    """Pages of the mapping that contains an address, by node."""
    best = None
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8", errors="replace").splitlines():
        if int(line.split()[0], 16) <= address:
            best = line
    return {int(word[1:].partition("=")[0]): int(word.partition("=")[2]) for word in best.split() if word[0] == "N"}


class Sorting(nodes.NodesTest):
    def setUp(self):
        super().setUp()
        self.balance(False)
        self.addCleanup(self.balance, False)

    def balance(self, on):
        BALANCING.write_text(str(int(on)), encoding="ascii")

    def policy(self, **memory_keys):
        # Its threads pause now and then, and would fit on a node.
        self.write_policy(Workload={"ExpectWidth": str(THREADS)}, Placement={"Mode": "spread", "Nodes": ""},
                          Steal={"Steal": "no"}, Memory=memory_keys)

    def sorter(self):
        state = self.directory / "threads"
        state.unlink(missing_ok=True)
        cpus = ",".join(map(str, sorted(nodes.node_cpus(FAR))))
        work = lib.Workload(self, [sys.executable, str(SORTER), str(THREADS), str(MB), cpus, str(state)], self.mark,
                            preexec_fn=lambda: os.sched_setaffinity(0, self.everything))
        work.state = state
        lib.wait_until("all threads", lambda: len(self.threads(work)) == THREADS)
        for thread in self.threads(work):
            self.assertEqual(set(pages(work.pid, thread.address)), {FAR})
        return work

    def threads(self, work):
        self.assertTrue(work.alive(), "memory is not what it was")
        return [Thread(line) for line in work.state.read_text(encoding="ascii").splitlines()] if work.state.exists() else []

    def take_back(self, work):
        """All memory goes back to its first node, as far as it can be moved."""
        others = ",".join(str(node) for node in nodes.nodes_with_cpus() if node != FAR)
        subprocess.run(["migratepages", str(work.pid), others, str(FAR)], check=False, timeout=lib.DEADLINE_SEC)

    def rounds(self, work, n):
        """Waits until each thread has checked all of its memory that many more times."""
        ends = {thread.tid: thread.rounds + n for thread in self.threads(work)}
        lib.wait_until(f"{n} rounds", lambda: all(thread.rounds >= ends[thread.tid] for thread in self.threads(work)))

    def wait(self, daemon, what, predicate):
        try:
            return lib.wait_until(what, predicate)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl('show', '50-test')}\n{daemon.ctl('tasks', '50-test')}\n"
                                 f"{daemon.log()}") from None

    def seats(self, daemon, work):
        """Those of its threads that have a home node."""
        tids = {thread.tid for thread in self.threads(work)}
        return {task["tid"]: task["home_node"] for task in daemon.ctl("tasks", "50-test")
                if task["tid"] in tids and task["home_node"] >= 0}

    def arrived(self, daemon, work):
        seats = self.seats(daemon, work)
        for thread in self.threads(work):
            at = pages(work.pid, thread.address)
            if thread.tid not in seats or at.get(seats[thread.tid], 0) * 10 < 9 * sum(at.values()):
                return False
        return len(set(seats.values())) == 2

    def known(self, daemon, work):
        workers = {thread.tid for thread in self.threads(work)}
        return all(task["use"] for task in daemon.ctl("tasks", "50-test") if task["tid"] in workers)

    def sorting_daemon(self, work, record=None):
        """Returns when each thread is with its memory. If sampling is given up, another daemon starts anew."""
        for _ in range(SPARE_TRIES):
            if record:
                record.unlink(missing_ok=True)
            daemon = self.daemon(*([f"--record={record}"] if record else [])).ready()
            for what, is_so in (("the threads to be known", self.known), ("each to be with its memory", self.arrived)):
                self.wait(daemon, what, lambda is_so=is_so: is_so(daemon, work) or daemon.ctl("status")["use_failed"])
            if self.arrived(daemon, work):
                return daemon
            print("# looking was given up", flush=True)
            daemon.stop()
            self.take_back(work)
        raise AssertionError("looking was given up too often")

    def test_write(self):
        self.policy(Evidence="write")
        work = self.sorter()
        begin = time.monotonic()
        record = self.directory / "record"
        daemon = self.sorting_daemon(work, record)
        status = daemon.ctl("status")
        print(f"# after {time.monotonic() - begin:.1f} s: {daemon.ctl('moves')[-3:]}", flush=True)
        self.assertEqual(status["use_evidence"], "write", status["use_why"])
        orders = [move for move in self.moves(daemon, "move-pages") if move["rule"] == "follow-use"]
        self.assertTrue(orders)
        self.rounds(work, 2)
        # No more than has to move.
        show = daemon.ctl("show", "50-test")
        print(f"# {show['use_blocks']}, {show['scan_skipped']}, {show['scan_covered_permille']}", flush=True)
        self.assertLess(show["memory_moved_bytes"], (MB << 20) * THREADS * 3 // 4)
        self.assertLessEqual(show["use_stall_usec"], 200000)
        workers = {thread.tid for thread in self.threads(work)}
        # Shared memory, the heap of the interpreter, is seen again sooner than each thread's own.
        self.wait(daemon, "most of what each uses to be its own", lambda: all(
            task["use_private_permille"] >= 500 for task in daemon.ctl("tasks", "50-test")
            if task["use"] and task["tid"] in workers))
        # Files and pages of the kernel itself are in every process.
        self.assertGreater(show["scan_skipped"].get("unsuitable", 0), 0)
        daemon.stop()
        self.rounds(work, 1)
        self.assertEqual(work.masks(), {self.full})
        # Decisions of that time, including moves of memory, are repeated from the recording, byte for byte.
        replay = daemon.ctl("replay", str(record))
        print(f"# {replay['plans']} plans replayed, {replay['by_use']} of memory by use, {record.stat().st_size} bytes", flush=True)
        self.assertEqual((replay["same"], replay["different"]), (replay["plans"], []))
        self.assertGreaterEqual(replay["by_use"], len(orders))

    def watch_at_work(self, daemon, pid, name, n):
        """Returns when a thread of that name has been seen at work that many times, while it is; False when sampling
        was given up."""
        busy, end, ask = True, time.monotonic() + lib.DEADLINE_SEC, time.monotonic() + GIVEN_UP_SEC
        while n > 0:
            before, busy = busy, at_work(daemon.process.pid, name)
            n -= busy and not before
            if time.monotonic() > ask:
                if daemon.ctl("status")["use_failed"]:
                    print(f"# looking was given up: {daemon.ctl('explain', str(pid))['use_state']}", flush=True)
                    return False
                ask = time.monotonic() + GIVEN_UP_SEC
            self.assertLess(time.monotonic(), end, f"waiting for {name} to be at work\n{daemon.log()}")
            time.sleep(0.001)
        return True

    def check_restored(self, work):
        """By the next daemon, before it does anything else: this one has no policies."""
        nothing = self.directory / "nothing"
        nothing.mkdir(exist_ok=True)
        daemon = self.daemon(policies=nothing).ready()
        self.assertEqual(work.masks(), {self.full}, daemon.log())
        daemon.stop()

    def kill_at_work(self, work, name, n, late_sec):
        """Returns whether the daemon was seen at that before it was killed."""
        begin = time.monotonic()
        daemon = self.daemon().ready()
        seen = self.watch_at_work(daemon, work.pid, name, n)
        time.sleep(late_sec)
        daemon.kill()
        masks = work.masks()
        # Memory moves to where threads have been put.
        self.assertTrue(name == "looker" or self.full not in masks, masks)
        self.check_restored(work)
        self.rounds(work, 1)
        print(f"# {name} at work for the {n}. time and {late_sec} s: {seen}, with {masks}, {time.monotonic() - begin:.1f} s", flush=True)
        return seen

    def test_killed_while_looking(self):
        # Even when it has settled, which ends with rounds a minute apart.
        self.policy(Evidence="write")
        work = self.sorter()
        spare = SPARE_TRIES
        for instant in KILLS:
            while not self.kill_at_work(work, "looker", *instant):
                spare -= 1
                self.assertGreaterEqual(spare, 0, "looking was given up too often")
            self.take_back(work)

    def test_killed_while_moving(self):
        """All of it goes to a home, which does not depend on how fast a guest samples."""
        keys = {"Placement": {"Mode": "fixed", "Nodes": str(HOME)}, "Steal": {"Steal": "no"}}
        self.write_policy(**keys, Memory={"Evidence": "residency", "RateLimit": SLOW})
        work = self.sorter()
        for instant in KILLS:
            self.assertTrue(self.kill_at_work(work, "mover/", *instant))
            self.take_back(work)
        # A daemon that is not disturbed completes it.
        self.write_policy(**keys, Memory={"Evidence": "residency"})
        daemon = self.daemon().ready()
        self.assertEqual(self.wait_home(daemon, work), {self.list_of(nodes.node_cpus(HOME))})
        self.wait(daemon, "all memory to be there", lambda: all(
            set(pages(work.pid, thread.address)) == {HOME} for thread in self.threads(work)))
        daemon.stop()
        self.assertEqual(work.masks(), {self.full})
        self.rounds(work, 1)

    def test_kernel(self):
        """If the kernel balances, its own faults can be evidence. They say nothing about blocks: moving pages is left
        to the kernel then."""
        self.policy(Evidence="kernel")
        work = self.sorter()
        self.balance(True)
        daemon = self.daemon().ready()
        self.assertEqual(daemon.ctl("show", "50-test")["use_evidence"], "kernel")
        self.wait(daemon, "the threads to be known", lambda: any(
            task["use"] for task in daemon.ctl("tasks", "50-test")))
        self.assertEqual(self.moves(daemon, "move-pages"), [])
        daemon.stop()
        self.rounds(work, 1)

    def test_beside(self):
        """While the kernel balances as well."""
        self.policy(Evidence="auto")
        work = self.sorter()
        self.balance(True)
        daemon = self.sorting_daemon(work)
        self.assertEqual(daemon.ctl("status")["use_evidence"], "write")
        self.assertEqual(self.refusals(daemon, "kernel-balances"), [])
        self.rounds(work, 2)
        self.assertTrue(self.arrived(daemon, work))
        daemon.stop()
        self.assertEqual(work.masks(), {self.full})
        self.rounds(work, 1)

    def test_tracked(self):
        """For a process whose soft-dirty bits somebody else has used, the kernel's faults are the evidence, if it
        balances."""
        self.policy(Evidence="auto")
        work = self.sorter()
        pathlib.Path(f"/proc/{work.pid}/clear_refs").write_text("4", encoding="ascii")
        self.balance(True)
        daemon = self.daemon().ready()
        self.assertEqual(daemon.ctl("show", "50-test")["use_evidence"], "write")

        def of_kernel():
            process = daemon.ctl("explain", str(work.pid))
            return process["use_evidence"] == "kernel" and process["use_state"] == "looking"

        self.wait(daemon, "the kernel to be asked", of_kernel)
        self.assertIn("in vain", daemon.ctl("explain", str(work.pid))["use_why"])
        self.wait(daemon, "the threads to be known", lambda: any(
            task["use"] for task in daemon.ctl("tasks", "50-test")))
        daemon.stop()
        self.assertEqual(work.masks(), {self.full})
        self.rounds(work, 1)

    def test_dry_run(self):
        """Sampling would change the process (I11)."""
        self.policy(Evidence="write")
        work = self.sorter()
        daemon = self.daemon("--dry-run").ready()
        self.ticks(daemon, 10)
        status = daemon.ctl("status")
        self.assertEqual(status["use_evidence"], "residency", status)
        self.assertEqual(status["use_processes"], 0)
        daemon.stop()
        self.rounds(work, 1)


if __name__ == "__main__":
    tap.main()
