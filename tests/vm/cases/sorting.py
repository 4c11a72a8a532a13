# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two threads of one process, each with memory of its own on the same node: they part, and the memory of each goes with it."""

import os
import pathlib
import signal
import sys
import time

import lib
import nodes
import tap

FAR = 0
MB = 24
SORTER = pathlib.Path(__file__).with_name("sorter.py")
# So slow that there is time to do something meanwhile.
SLOW = "4M"
BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")


class Thread:
    def __init__(self, line):
        self.tid, self.address, self.rounds = (int(word) for word in line.split())


def pages(pid, address):
    """Pages of the mapping that holds an address, by node."""
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
        self.write_policy(Placement={"Mode": "spread", "Nodes": ""}, Steal={"Steal": "no"}, Memory=memory_keys)

    def sorter(self):
        state = self.directory / "threads"
        state.unlink(missing_ok=True)
        cpus = ",".join(map(str, sorted(nodes.node_cpus(FAR))))
        work = lib.Workload(self, [sys.executable, str(SORTER), "2", str(MB), cpus, str(state)], self.mark,
                            preexec_fn=lambda: os.sched_setaffinity(0, self.everything))
        work.state = state
        lib.wait_until("both threads", lambda: len(self.threads(work)) == 2)
        for thread in self.threads(work):
            self.assertEqual(set(pages(work.pid, thread.address)), {FAR})
        return work

    def threads(self, work):
        self.assertTrue(work.alive(), "memory is not what it was")
        return [Thread(line) for line in work.state.read_text(encoding="ascii").splitlines()] if work.state.exists() else []

    def rounds(self, work, n):
        """Waits until each thread has looked at all of its memory so often again."""
        ends = {thread.tid: thread.rounds + n for thread in self.threads(work)}
        lib.wait_until(f"{n} rounds", lambda: all(thread.rounds >= ends[thread.tid] for thread in self.threads(work)))

    def wait(self, daemon, what, predicate):
        try:
            return lib.wait_until(what, predicate)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl('show', '50-test')}\n{daemon.ctl('tasks', '50-test')}\n"
                                 f"{daemon.log()}") from None

    def seats(self, daemon, work):
        """Of its threads, those that live on a node of their own: which."""
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

    def test_write(self):
        self.policy(Evidence="write")
        work = self.sorter()
        begin = time.monotonic()
        daemon = self.daemon().ready()
        status = daemon.ctl("status")
        self.wait(daemon, "the threads to be known", lambda: all(
            task["use"] for task in daemon.ctl("tasks", "50-test") if task["tid"] in
            {thread.tid for thread in self.threads(work)}))
        self.wait(daemon, "each to be with its memory", lambda: self.arrived(daemon, work))
        print(f"# after {time.monotonic() - begin:.1f} s: {daemon.ctl('moves')[-3:]}", flush=True)
        self.assertEqual(status["use_evidence"], "write", status["use_why"])
        orders = [move for move in self.moves(daemon, "move-pages") if move["rule"] == "follow-use"]
        self.assertTrue(orders)
        self.rounds(work, 2)
        # No more than has to move.
        show = daemon.ctl("show", "50-test")
        print(f"# {show['use_blocks']}, {show['scan_skipped']}, {show['scan_covered_permille']}", flush=True)
        self.assertLess(show["memory_moved_bytes"], (MB << 20) * 3 // 2)
        self.assertLessEqual(show["use_stall_usec"], 200000)
        for task in daemon.ctl("tasks", "50-test"):
            if task["use"]:
                self.assertGreaterEqual(task["use_private_permille"], 500)
        # Files and pages of the kernel itself are in every process.
        self.assertGreater(show["scan_skipped"].get("unsuitable", 0), 0)
        daemon.stop()
        self.rounds(work, 1)
        self.assertEqual(work.masks(), {self.full})

    def test_killed_in_the_midst(self):
        self.policy(Evidence="write", RateLimit=SLOW)
        work = self.sorter()
        daemon = self.daemon().ready()
        self.wait(daemon, "some of the memory to have moved", lambda: any(
            len(pages(work.pid, thread.address)) > 1 for thread in self.threads(work)))
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        self.rounds(work, 3)
        # The next one goes on with it.
        self.policy(Evidence="write")
        daemon = self.daemon().ready()
        self.wait(daemon, "each to be with its memory", lambda: self.arrived(daemon, work))
        self.rounds(work, 1)
        daemon.stop()

    def test_kernel(self):
        """Where the kernel balances, its own faults tell, and pages are its to move."""
        self.policy(Evidence="auto")
        self.balance(True)
        work = self.sorter()
        daemon = self.daemon().ready()
        self.assertEqual(daemon.ctl("status")["use_evidence"], "kernel")
        self.wait(daemon, "the threads to be known", lambda: any(
            task["use"] for task in daemon.ctl("tasks", "50-test")))
        self.assertEqual(self.moves(daemon, "move-pages"), [])
        daemon.stop()
        self.rounds(work, 1)

    def test_dry_run(self):
        """Looking would change the process (I11)."""
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
