# SPDX-License-Identifier: LGPL-2.1-or-later
"""A home that grows to a second node with one core, while both its threads run on the siblings of the first."""

import lib
import nodes
import tap

# The keeper is on neither.
FIRST, SECOND = nodes.nodes_with_cpus()[-2:]
BOTH = nodes.node_cpus(FIRST) | nodes.node_cpus(SECOND)
# In some of these runs the kernel spreads them before the daemon does.
ATTEMPTS = 20


class Push(nodes.NodesTest):
    def give(self, home, **steal):
        self.write_policy(Placement={"Nodes": home}, Steal=steal)

    def start(self, **steal):
        """A daemon, and two busy threads on the two siblings of node FIRST, when their home grows."""
        self.give(str(FIRST), **steal)
        daemon = self.daemon().ready()
        busy = self.workload("--threads=2")
        self.wait_home(daemon, busy)
        self.ticks(daemon)
        self.give(f"{FIRST},{SECOND}", **steal)
        daemon.ctl_run("reload").check_returncode()
        lib.wait_until("the larger home", lambda: busy.masks() == {self.list_of(BOTH)})
        return daemon, busy

    def cores(self, busy):
        """The nodes, of one core each, on which its threads run."""
        cpus = [nodes.last_cpu(busy.pid, tid) for tid in lib.affinity(busy.pid) if tid != busy.pid]
        return {node for node in (FIRST, SECOND) for cpu in cpus if cpu in nodes.node_cpus(node)}

    def pushed(self):
        """A daemon, and busy threads that it has pushed apart."""
        for _ in range(ATTEMPTS):
            daemon, busy = self.start()
            lib.wait_until("a core for each", lambda: self.cores(busy) == {FIRST, SECOND})
            self.ticks(daemon, 2)
            if self.moves(daemon, "push"):
                return daemon, busy
            busy.end()
            daemon.stop()
        self.fail(f"a push in none of {ATTEMPTS} attempts")

    def test_idle_core(self):
        daemon, busy = self.pushed()
        for move in self.moves(daemon, "push"):
            self.assertEqual((move["rule"], move["from"]), ("idle-core", move["to"]))
            self.assertIn(move["cpu"], BOTH)
        self.ticks(daemon)
        self.assertEqual(self.cores(busy), {FIRST, SECOND})
        self.assertEqual(daemon.ctl("status")["pushes"], len(self.moves(daemon, "push")))
        self.assertEqual(busy.masks(), {self.list_of(BOTH)})
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})

    def test_not_without_stealing(self):
        daemon, busy = self.start(Steal="no")
        self.ticks(daemon, 8)
        self.assertEqual(self.moves(daemon, "push"), [])
        daemon.stop()
        self.assertEqual(busy.masks(), {self.full})


if __name__ == "__main__":
    tap.main()
