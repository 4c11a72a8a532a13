# SPDX-License-Identifier: LGPL-2.1-or-later
"""Homes that the daemon chooses on real nodes: processes go to their memory, groups get as many nodes as they need."""

import os
import pathlib
import subprocess

import lib
import nodes
import tap

PROCESS = {"GroupBy": "process"}
AUTO = {"Mode": "auto", "Nodes": ""}
NODES = nodes.nodes_with_cpus()
PER_NODE = min(len(nodes.node_cpus(node)) for node in NODES)


class Numa01(lib.Workload):
    """As many processes as there are nodes."""

    def __init__(self, test, threads, *args):
        self.threads = threads
        argv = ["numa01", f"--processes={len(NODES)}", f"--threads={threads}", "--seconds=600", "--bytes=4M", *args]
        super().__init__(test, argv, test.mark, stdout=subprocess.DEVNULL,
                         preexec_fn=lambda: os.sched_setaffinity(0, test.everything))
        self.pids = lib.wait_until("its processes", self.all_pids)

    def all_pids(self):
        """Waits until all threads exist, besides the first one of each process, which has touched the memory."""
        path = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        pids = [int(word) for word in path.read_text(encoding="ascii").split()]
        return len(pids) == len(NODES) and all(len(lib.affinity(pid)) > self.threads for pid in pids) and pids


def memory_node(pid):
    """The node with most of its writable memory."""
    pages = dict.fromkeys(NODES, 0)
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if any(word.startswith("anon=") for word in words):
            for node in NODES:
                pages[node] += sum(int(word.partition("=")[2]) for word in words if word.startswith(f"N{node}="))
    return max(NODES, key=lambda node: pages[node])


class Homes(nodes.NodesTest):
    def home(self, daemon, pid):
        return daemon.ctl("explain", str(pid)).get("home_nodes", "")

    def wait(self, daemon, what, predicate):
        try:
            lib.wait_until(what, predicate)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl_run('show', '50-test').stdout}\n"
                                 f"{daemon.ctl_run('moves').stdout}\n{daemon.log()}") from None

    def moves_of(self, daemon, work):
        """Without those of the program that forked them, which waits."""
        return [move for move in daemon.ctl("moves") if move["pid"] in work.pids]

    def assert_masks(self, pid, cpus):
        for tid, mask in lib.affinity(pid).items():
            self.assertEqual(mask, self.list_of(cpus), f"{pid}/{tid}")

    def test_processes_go_to_their_memory(self):
        self.write_policy(Workload=PROCESS, Placement=AUTO, Steal={"Steal": "no"})
        daemon = self.daemon().ready()
        # One thread each: a node that is full and also used by others (such as this program) would be left again.
        work = Numa01(self, 1, "--placement=process")
        expected = [str(memory_node(pid)) for pid in work.pids]
        self.assertEqual(sorted(expected), sorted(map(str, NODES)))
        self.wait(daemon, "each process on the node of its memory",
                  lambda: [self.home(daemon, pid) for pid in work.pids] == expected)
        masks = [{self.list_of(nodes.node_cpus(int(node)))} for node in expected]
        self.wait(daemon, "their masks", lambda: [set(lib.affinity(pid).values()) for pid in work.pids] == masks)
        # They are where they belong: nothing changes any more.
        before = self.moves_of(daemon, work)
        self.ticks(daemon, 20)
        self.assertEqual(self.moves_of(daemon, work), before)
        daemon.stop()
        for pid in work.pids:
            self.assert_masks(pid, self.everything)

    def test_no_node_twice(self):
        """All memory is on one node, which has room for one of them: the others get a node each."""
        self.write_policy(Workload=PROCESS, Placement=AUTO, Steal={"Steal": "no"})
        daemon = self.daemon().ready()
        work = Numa01(self, PER_NODE, f"--placement=node:{NODES[0]}")
        expected = sorted(str(node) for node in NODES)
        self.wait(daemon, "a node for each process",
                  lambda: sorted(self.home(daemon, pid) for pid in work.pids) == expected)
        daemon.stop()

    def test_as_many_nodes_as_it_needs(self):
        self.write_policy(Workload={"GroupBy": "workload", "MinAgeSec": "0"}, Placement={**AUTO, "SettleSec": "1s"},
                          Steal={"Steal": "no"})
        daemon = self.daemon().ready()
        small = self.workload(f"--threads={PER_NODE}")
        self.wait(daemon, "a home of one node", lambda: self.home(daemon, small.pid) in map(str, NODES))
        home = self.home(daemon, small.pid)
        self.assert_masks(small.pid, nodes.node_cpus(int(home)))
        large = self.workload(f"--threads={PER_NODE}")
        if len(NODES) > 2:
            self.wait(daemon, "a home of two nodes", lambda: len(nodes.cpus_of(self.home(daemon, small.pid))) == 2)
            self.assertEqual(self.home(daemon, large.pid), self.home(daemon, small.pid))
        else:
            self.wait(daemon, "the whole machine", lambda: small.masks() == large.masks() == {self.full})
        large.end()
        # Not within a minute of the last change, if that would be back and forth.
        if len(NODES) > 2:
            self.wait(daemon, "a home of one node again", lambda: self.home(daemon, small.pid) in map(str, NODES))
        daemon.stop()
        self.assertEqual(small.masks(), {self.full})


if __name__ == "__main__":
    tap.main()
