# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lending across real nodes: the nearest first, none beyond the limits, and a recall when the owner wakes."""

import pathlib
import signal

import lib
import nodes
import tap

# Not the first node, and on the second board of the machine with two distance levels.
HOME = nodes.MACHINE["nodes"] // 2 + 1
HOME_CPUS = nodes.node_cpus(HOME)
N_NODES = len(nodes.nodes_with_cpus())
DISTANCES = nodes.distances(HOME)
OTHERS = [node for node in nodes.nodes_with_cpus() if node != HOME]
NEAR, FAR = min(DISTANCES[node] for node in OTHERS), max(DISTANCES)
NEAR_CPUS = set().union(*(nodes.node_cpus(node) for node in OTHERS if DISTANCES[node] == NEAR))
# The one of the nearest nodes whose CPUs are lent first.
OWNER = min(node for node in OTHERS if DISTANCES[node] == NEAR and nodes.KEEPER not in nodes.node_cpus(node))


class Steal(nodes.NodesTest):
    def allow(self, **steal):
        self.write_policy(Placement={"Nodes": str(HOME)}, Steal=steal)

    def start(self, n_wanted, **steal):
        """A daemon, and enough busy threads that they want n CPUs more than their home HOME has."""
        self.allow(**steal)
        daemon = self.daemon().ready()
        busy = self.workload(f"--threads={len(HOME_CPUS) + n_wanted}")
        self.wait_home(daemon, busy)
        return daemon, busy

    def wait_refused(self, daemon, busy, reason, value, limit):
        """It gives the reason for lending nothing, and lends nothing."""
        lib.wait_until(f"{reason}: {value} against {limit}", lambda:
                       any((r["value"], r["limit"]) == (value, limit) for r in self.refusals(daemon, reason)))
        self.ticks(daemon)
        self.assertEqual(self.moves(daemon, "lend"), [])
        self.assertEqual(busy.masks(), {self.list_of(HOME_CPUS)})
        status = daemon.ctl("status")
        self.assertGreater(status["refused"][reason], 0)
        self.assertEqual(status["lends"], 0)

    def lends_by_tick(self, daemon):
        ticks = {}
        for move in self.moves(daemon, "lend"):
            ticks.setdefault(move["tick"], []).append(move)
        return ticks

    def consistent(self, daemon, busy):
        """Every thread has the mask that the daemon reports, and a borrower runs on its lent CPU."""
        lent = {lease["tid"]: lease["cpu"] for lease in self.leases(daemon)}
        home = self.list_of(HOME_CPUS)
        masks = lib.affinity(busy.pid)
        expected = {tid: self.list_of(HOME_CPUS | {lent[tid]}) if tid in lent else home for tid in masks}
        return lent and masks == expected and all(nodes.last_cpu(busy.pid, tid) == cpu for tid, cpu in lent.items())

    def test_nearest_first(self):
        """It is not known which CPUs are idle in a tick, but of those the nearest are lent first. Waits for a tick in
        which some of every distance are lent."""
        daemon, busy = self.start(len(NEAR_CPUS) + 2 if NEAR < FAR else 2)
        expected = {DISTANCES[node] for node in OTHERS}
        lib.wait_until("CPUs of all distances to be lent in one tick",
                       lambda: any({m["distance"] for m in moves} == expected
                                   for moves in self.lends_by_tick(daemon).values()))
        for tick, moves in self.lends_by_tick(daemon).items():
            given = [move["distance"] for move in moves]
            self.assertEqual(given, sorted(given), f"tick {tick}")
            for move in moves:
                self.assertIn(move["cpu"], nodes.node_cpus(move["node"]))
                self.assertEqual(move["distance"], DISTANCES[move["node"]])
                self.assertTrue(move["cross_node"])
                self.assertEqual(move["from"], self.list_of(HOME_CPUS))
                self.assertEqual(move["to"], self.list_of(HOME_CPUS | {move["cpu"]}))
        lib.wait_until("the threads to run where they were lent to", lambda: self.consistent(daemon, busy))
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})

    def test_limits(self):
        """By default nothing is lent across nodes on a machine of more than two. A limit of one node less than there
        are is not enough, nor is a distance below the nearest; when both allow it, it lends."""
        daemon, busy = self.start(2, NodeLimit="", MaxDistance="")
        self.wait_refused(daemon, busy, "node-limit", N_NODES, 2)
        self.allow(NodeLimit=str(N_NODES - 1))
        daemon.ctl_run("reload").check_returncode()
        self.wait_refused(daemon, busy, "node-limit", N_NODES, N_NODES - 1)
        self.allow(NodeLimit=str(N_NODES), MaxDistance=str(NEAR - 1))
        daemon.ctl_run("reload").check_returncode()
        self.wait_refused(daemon, busy, "max-distance", NEAR, NEAR - 1)
        self.allow(NodeLimit=str(N_NODES), MaxDistance=str(NEAR))
        daemon.ctl_run("reload").check_returncode()
        self.wait_lent(daemon)
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})

    def test_max_distance_between_two_levels(self):
        if NEAR == FAR:
            self.skipTest("all nodes are equally far")
        daemon, busy = self.start(len(NEAR_CPUS) + 2, MaxDistance="")  # 30 by default
        self.wait_lent(daemon)
        refused = lib.wait_until("the far ones to be refused", lambda: self.refusals(daemon, "max-distance"))
        self.assertEqual({(r["value"], r["limit"]) for r in refused}, {(FAR, 30)})
        self.ticks(daemon)
        self.assertEqual({move["distance"] for move in self.moves(daemon, "lend")}, {NEAR})
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})


class Recall(nodes.NodesTest):
    """Two workloads, each with a home: CPUs lent by one to the other are recalled when the lender wakes."""

    def awake(self, workload):
        """All threads but the first, which only waits for signals, run or wait for a CPU."""
        for tid in lib.affinity(workload.pid):
            stat = pathlib.Path(f"/proc/{workload.pid}/task/{tid}/stat").read_text(encoding="ascii", errors="replace")
            if tid != workload.pid and stat[stat.rindex(")") + 2] != "R":
                return False
        return True

    def leases_on(self, daemon, cpus):
        return {lease["tid"]: lease["cpu"] for lease in self.leases(daemon) if lease["cpu"] in cpus}

    def test_within_two_ticks(self):
        owned = nodes.node_cpus(OWNER)
        self.write_policy(Placement={"Nodes": str(HOME)}, Steal={"MaxDistance": str(NEAR)})
        self.write_policy("60-owner", mark=self.mark + "o", Placement={"Nodes": str(OWNER)}, Steal={"Steal": "no"})
        daemon = self.daemon().ready()
        owner = self.workload("--asleep", f"--threads={2 * len(owned)}", mark=self.mark + "o")
        self.wait_home(daemon, owner)
        # More than there are CPUs that near: with fewer, it would be chance which CPUs they are lent.
        busy = self.workload(f"--threads={len(HOME_CPUS | NEAR_CPUS) + 2}")
        self.wait_home(daemon, busy)
        lib.wait_until("all CPUs of the owner to be lent", lambda: len(self.leases_on(daemon, owned)) == len(owned))

        before = daemon.ctl("status")["moves"]
        lent = self.leases_on(daemon, owned)
        owner.process.send_signal(signal.SIGUSR1)
        lib.wait_until("the owner to be awake", lambda: self.awake(owner))
        tick = daemon.ctl("status")["tick"]
        lib.wait_until("the owner to have its CPUs back", lambda: not self.leases_on(daemon, owned))
        recalls = {(m["tid"], m["cpu"]): m for m in reversed(self.moves(daemon, "recall", before))}
        for lease in lent.items():
            self.assertEqual(recalls[lease]["rule"], "owner-waits")
            self.assertLessEqual(recalls[lease]["tick"], tick + 2)
        self.ticks(daemon)
        again = [m for m in self.moves(daemon, "lend", before) if m["cpu"] in owned and m["tick"] > tick + 2]
        self.assertEqual(again, [], "lent although the owner is awake")
        self.assertEqual(owner.masks(), {self.list_of(owned)})
        daemon.stop()
        self.assertEqual(owner.masks() | busy.masks(), {self.full})


if __name__ == "__main__":
    tap.main()
