# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nodes without CPUs or without memory: they are in the topology, homes have only nodes with CPUs, and lends go only
there."""

import lib
import nodes
import tap

CPUS = nodes.MACHINE["cpus"]
WITHOUT_CPUS = [node for node, cpus in enumerate(CPUS) if not cpus]
WITHOUT_MEMORY = [node for node, mb in enumerate(nodes.MACHINE["memory_mb"]) if not mb]
LAST = max(nodes.nodes_with_cpus())
HOME_CPUS = set(CPUS[LAST])


class Places(nodes.NodesTest):
    # At home, so that both CPUs of the other node can be idle: the system's own work needs one of them.
    KEEPER = max(HOME_CPUS)

    def test_topology(self):
        self.assertTrue(WITHOUT_CPUS or WITHOUT_MEMORY, "not the machine for this")
        daemon = self.daemon().ready()
        found = {node["node"]: node for node in daemon.ctl("topology")["nodes"]}
        self.assertEqual(sorted(found), list(range(len(CPUS))))
        self.assertEqual([node for node, what in sorted(found.items()) if not what["n_cpus"]], WITHOUT_CPUS)
        self.assertEqual([node for node, what in sorted(found.items()) if not what["memory_bytes"]], WITHOUT_MEMORY)
        daemon.stop()

    def test_a_home_needs_cpus(self):
        """A policy that names only such a node is an error. Among others, it is not part of the home."""
        if not WITHOUT_CPUS:
            self.skipTest("every node has CPUs")
        self.write_policy(Placement={"Nodes": str(WITHOUT_CPUS[0])})
        self.daemon().fails(lib.CONFIG, "50-test.policy", f"{WITHOUT_CPUS[0]}")

    def test_home_and_lends(self):
        """By default, since two nodes have CPUs: other nodes do not count for NodeLimit=."""
        self.write_policy(Placement={"Nodes": str(LAST)}, Steal={"NodeLimit": "", "MaxDistance": ""})
        daemon = self.daemon().ready()
        busy = self.workload(f"--threads={2 * len(HOME_CPUS)}")
        self.assertEqual(self.wait_home(daemon, busy), {self.list_of(HOME_CPUS)})
        self.assertEqual(daemon.ctl("show", "50-test")["home_nodes"], str(LAST))
        self.wait_lent(daemon)
        for move in self.moves(daemon, "lend"):
            self.assertIn(move["cpu"], CPUS[move["node"]])
            self.assertNotIn(move["node"], [*WITHOUT_CPUS, LAST])
            self.assertEqual(move["distance"], nodes.distances(LAST)[move["node"]])
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})


if __name__ == "__main__":
    tap.main()
