# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory that is on the wrong node when its process gets a home, or on one of several nodes, arrives there with its
content intact."""

import os
import pathlib
import signal
import subprocess
import sys

import lib
import nodes
import tap

FAR, HOME = 0, 1
MB = 48
HASHER = pathlib.Path(__file__).with_name("hasher.py")
# Slow enough to do something meanwhile.
SLOW = "4M"
# Part of the home's memory that is already in use.
FULL_PERCENT = 92
# Takes memory where it runs, until that many bytes of node argv[1] are left.
BALLAST = """
import mmap, pathlib, signal, sys
path = pathlib.Path(f"/sys/devices/system/node/node{sys.argv[1]}/meminfo")
kept = []
while int(path.read_text().split("MemFree:")[1].split()[0]) << 10 > int(sys.argv[2]):
    kept.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    kept[-1].write(b"x" * (1 << 20))
print("full", flush=True)
signal.pause()
"""


def mappings(pid):
    """Bytes on each node that it has written or shares, by mapping."""
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8", errors="replace").splitlines():
        words = dict(word.partition("=")[::2] for word in line.split())
        if "anon" in words:
            page = int(words["kernelpagesize_kB"]) << 10
            yield {node: page * int(words.get(f"N{node}", 0)) for node in (FAR, HOME)}


def memory(pid):
    of_all = list(mappings(pid))
    return {node: sum(at[node] for at in of_all) for node in (FAR, HOME)}


def node_memory(node, what):
    text = pathlib.Path(f"/sys/devices/system/node/node{node}/meminfo").read_text(encoding="ascii")
    return int(text.split(f" {what}:")[1].split()[0]) << 10


def kernel_count(name):
    words = pathlib.Path("/proc/vmstat").read_text(encoding="ascii").split()
    return int(words[words.index(name) + 1])


class Follow(nodes.NodesTest):
    def hasher(self, mb=MB, command=()):
        """A process with its memory on the far node."""
        state = self.directory / "rounds"
        state.unlink(missing_ok=True)
        cpus = ",".join(map(str, sorted(nodes.node_cpus(FAR))))
        work = lib.Workload(self, [*command, sys.executable, str(HASHER), str(mb), cpus, str(state)], self.mark,
                            preexec_fn=self.everywhere)
        work.state = state
        self.rounds(work, 1)
        self.assertGreaterEqual(memory(work.pid)[FAR], mb << 20)
        return work

    def everywhere(self):
        os.sched_setaffinity(0, self.everything)

    def rounds(self, work, n):
        """Waits until the process has checked all of its memory that many more times, without an error."""
        def count():
            return int(work.state.read_text(encoding="ascii")) if work.state.exists() else 0

        end = count() + n
        lib.wait_until(f"{n} rounds", lambda: count() >= end or not work.alive())
        self.assertTrue(work.alive(), "memory is not what it was")

    def fixed(self, **memory_keys):
        self.write_policy(Placement={"Mode": "fixed", "Nodes": str(HOME)}, Steal={"Steal": "no"}, Memory=memory_keys)

    def wait(self, daemon, what, predicate):
        try:
            return lib.wait_until(what, predicate)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{daemon.ctl_run('explain', '50-test').stdout}\n{daemon.log()}") from None

    def arrived(self, pid):
        at = memory(pid)
        return at[HOME] * 20 >= 19 * (at[HOME] + at[FAR])

    def wait_half(self, daemon, work):
        """Waits until part of its memory has arrived, and part has not."""
        self.wait(daemon, "a part of the memory to arrive", lambda: memory(work.pid)[HOME] > 4 << 20)
        self.assertGreater(memory(work.pid)[FAR], 8 << 20)

    def test_to_a_home(self):
        self.fixed()
        work = self.hasher()
        daemon = self.daemon().ready()
        self.wait(daemon, "its memory to arrive", lambda: self.arrived(work.pid))
        self.rounds(work, 2)
        self.wait(daemon, "the order to be over", lambda: daemon.says(": done, moved"))
        # Once is enough.
        self.ticks(daemon, 20)
        orders = self.moves(daemon, "move-pages")
        self.assertLessEqual(len(orders), 2, orders)
        self.assertEqual(orders[0]["pid"], work.pid)
        # No process runs on the node it leaves.
        self.assertEqual(orders[0]["help_nodes"], str(FAR))
        daemon.stop()
        self.rounds(work, 1)

    def test_as_observed(self):
        """What is announced while it is only observed equals what acting then does."""
        keys = {"Placement": {"Mode": "fixed", "Nodes": str(HOME)}, "Steal": {"Steal": "no"}}
        self.write_policy(Workload={"Act": "observe"}, **keys)
        work = self.hasher()
        daemon = self.daemon().ready()

        def would():
            return {move["kind"]: move for move in daemon.ctl("explain", str(work.pid)).get("would", [])}

        self.wait(daemon, "what would be done with its memory", lambda: "move-pages" in would())
        self.wait(daemon, "its threads to have run", lambda: "would_local_permille" in daemon.ctl("explain", str(work.pid)))
        self.ticks(daemon, 5)
        order, explanation = would()["move-pages"], daemon.ctl("explain", str(work.pid))
        self.assertEqual((explanation["would_home_nodes"], explanation["would_local_permille"]), (str(HOME), 1000))
        self.assertEqual((order["outcome"], order["to_nodes"]), ("would", str(HOME)))
        self.assertEqual(work.masks(), {self.full})
        self.assertGreaterEqual(memory(work.pid)[FAR], MB << 20)
        self.assertEqual(self.moves(daemon, "move-pages"), [])

        self.write_policy(**keys)
        self.assertEqual(daemon.ctl_run("reload").returncode, 0)
        self.wait(daemon, "its memory to arrive", lambda: self.arrived(work.pid))
        self.wait(daemon, "the order to be over", lambda: daemon.says(": done, moved"))
        self.assertEqual(work.masks(), {self.list_of(nodes.node_cpus(HOME))})
        moved = daemon.ctl("show", "50-test")["memory_moved_bytes"]
        self.assertLessEqual(abs(moved - order["bytes"]), order["bytes"] / 10)
        # And the gain is reported.
        self.wait(daemon, "enough looks", lambda: "gain_local_permille" in daemon.ctl("explain", str(work.pid)))
        self.assertGreaterEqual(daemon.ctl("explain", str(work.pid))["gain_local_permille"], 900)
        daemon.stop()

    def test_to_a_chosen_home(self):
        """Two processes, all memory on one node: one of them goes to the other node, and its memory with it."""
        self.write_policy(Workload={"GroupBy": "process"}, Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"})
        argv = ["numa01", "--processes=2", "--threads=2", "--seconds=600", "--bytes=16M", f"--placement=node:{FAR}"]
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.DEVNULL, preexec_fn=self.everywhere)
        children = pathlib.Path(f"/proc/{work.pid}/task/{work.pid}/children")
        lib.wait_until("its processes", lambda: len(children.read_text().split()) == 2 and all(
            sum(memory(int(word)).values()) >= 16 << 20 for word in children.read_text().split()))
        pids = [int(word) for word in children.read_text().split()]
        daemon = self.daemon().ready()
        self.wait(daemon, "one of them with its memory on each node", lambda: sorted(
            max(memory(pid), key=lambda node, pid=pid: memory(pid)[node]) for pid in pids) == [FAR, HOME])
        for pid in pids:
            home = daemon.ctl("explain", str(pid))["home_nodes"]
            at = memory(pid)
            self.assertEqual(home, str(max(at, key=lambda node, at=at: at[node])))
        daemon.stop()

    def test_to_a_pin(self):
        """Somebody pins it to the other node: the pin stays, it gets no home, and its memory comes to it."""
        self.write_policy(Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"})
        work = self.hasher()
        for tid in os.listdir(f"/proc/{work.pid}/task"):
            os.sched_setaffinity(int(tid), nodes.node_cpus(HOME))
        daemon = self.daemon().ready()
        self.wait(daemon, "its memory to arrive", lambda: self.arrived(work.pid))
        self.assertEqual({order["rule"] for order in self.moves(daemon, "move-pages")}, {"follow-pin"})
        self.assertEqual(self.moves(daemon, "set-home"), [])
        self.assertEqual(work.masks(), {self.list_of(nodes.node_cpus(HOME))})
        self.rounds(work, 1)
        daemon.stop()

    def test_stays_apart(self):
        """Two threads each have their memory on their own node, and use nothing else: nothing is brought together."""
        self.write_policy(Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"}, Memory={"Evidence": "write"})
        argv = ["stream", "--processes=1", "--threads=2", "--seconds=600", "--bytes=96M", "--placement=local", "--bind=start"]
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.DEVNULL, preexec_fn=self.everywhere)
        lib.wait_until("its memory", lambda: sum(memory(work.pid).values()) >= 96 << 20 or not work.alive())
        before = memory(work.pid)
        self.assertGreaterEqual(min(before.values()) * 5, max(before.values()) * 4, before)
        daemon = self.daemon().ready()
        self.wait(daemon, "each thread to have its node", lambda: daemon.ctl("explain", str(work.pid))["home_nodes"] == "0-1")
        self.ticks(daemon, 20)
        # The boundary between their slices is not a block boundary.
        self.assertLess(sum(order["bytes"] for order in self.moves(daemon, "move-pages")) * 20, sum(before.values()))
        self.assertEqual({move["to"] for move in self.moves(daemon, "set-home")},
                         {self.list_of(nodes.node_cpus(node)) for node in (FAR, HOME)})
        daemon.stop()

    def test_what_is_bound(self):
        """Bound memory stays, unless the policy says otherwise."""
        self.fixed()
        work = self.hasher(command=["numactl", f"--membind={FAR}"])
        daemon = self.daemon().ready()
        self.wait(daemon, "a refusal", lambda: self.refusals(daemon, "memory-bound"))
        self.ticks(daemon, 10)
        self.assertEqual(self.moves(daemon, "move-pages"), [])
        self.assertGreaterEqual(memory(work.pid)[FAR], MB << 20)
        self.write_policy(Workload={"ForeignAffinity": "override"}, Placement={"Mode": "fixed", "Nodes": str(HOME)},
                          Steal={"Steal": "no"})
        self.assertEqual(daemon.ctl_run("reload").returncode, 0)
        self.wait(daemon, "its memory to arrive", lambda: self.arrived(work.pid))
        daemon.stop()
        self.rounds(work, 1)

    def walker(self, command=(), options=()):
        """Four threads that walk over one array and count their visits: too many for a node."""
        argv = [*command, "numa01", "--processes=1", "--threads=4", "--seconds=600", "--bytes=64M", *options]
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.DEVNULL, preexec_fn=self.everywhere)
        lib.wait_until("its memory", lambda: sum(memory(work.pid).values()) >= 64 << 20 or not work.alive())
        return work

    def even(self, pid):
        """Its array. Huge pages of stacks, if any, all go to one node: they are 8 MB apart."""
        at = max(mappings(pid), key=lambda at: sum(at.values()))
        return abs(at[HOME] - at[FAR]) * 20 <= at[HOME] + at[FAR]

    def apart(self, pid):
        """Interleaved, except for a quarter that may stay where it is."""
        at = memory(pid)
        return min(at.values()) * 3 >= sum(at.values())

    def ends_well(self, work):
        """It checks that its array is intact."""
        work.process.send_signal(signal.SIGTERM)
        self.assertEqual(work.process.wait(lib.DEADLINE_SEC), 0)

    def assert_settled(self, daemon, rule):
        """One request by this rule was enough, or two."""
        self.wait(daemon, "the order to be over", lambda: daemon.says(": done, moved"))
        self.ticks(daemon, 20)
        orders = self.moves(daemon, "move-pages")
        self.assertEqual({order["rule"] for order in orders}, {rule})
        self.assertLessEqual(len(orders), 2, orders)

    def test_interleave(self):
        """P17, interleaving: the same amount on each node while it runs on both, and then all of it on one."""
        self.write_policy(Placement={"Mode": "interleave", "Nodes": ""}, Steal={"Steal": "no"})
        work = self.walker(options=[f"--placement=node:{FAR}"])
        self.assertGreaterEqual(memory(work.pid)[FAR], 64 << 20)
        daemon = self.daemon().ready()
        self.wait(daemon, "its memory on both nodes alike", lambda: self.even(work.pid))
        self.assert_settled(daemon, "interleave")
        self.assertTrue(self.even(work.pid), memory(work.pid))
        self.assertTrue(daemon.ctl("explain", str(work.pid))["memory_striped"])
        self.write_policy(Placement={"Mode": "interleave", "Nodes": str(HOME)}, Steal={"Steal": "no"})
        daemon.ctl_run("reload")
        self.wait(daemon, "its memory to come together", lambda: self.arrived(work.pid))
        daemon.stop()
        self.ends_well(work)

    def test_beside(self):
        """If the kernel balances as well, it moves memory for several nodes, without records; if the home has one
        node, all goes there."""
        balancing = pathlib.Path("/proc/sys/kernel/numa_balancing")
        balancing.write_text("1", encoding="ascii")
        try:
            self.write_policy(Placement={"Mode": "interleave", "Nodes": ""}, Steal={"Steal": "no"})
            work = self.walker(options=[f"--placement=node:{FAR}"])
            daemon = self.daemon().ready()
            # The kernel may finish first.
            self.wait(daemon, "a refusal", lambda: self.refusals(daemon, "kernel-balances") or self.even(work.pid))
            self.assertEqual(self.moves(daemon, "move-pages"), [])
            self.fixed()
            daemon.ctl_run("reload")
            self.wait(daemon, "its memory to come together", lambda: self.arrived(work.pid))
            self.assertTrue(self.moves(daemon, "move-pages"))
            daemon.stop()
            self.ends_well(work)
        finally:
            balancing.write_text("0", encoding="ascii")

    def test_interleaved_from_the_start(self):
        """Memory interleaved by numaplacectl run is evenly distributed, and stays so."""
        self.write_policy(mark="nobody", Placement={"Mode": "interleave", "Nodes": ""}, Steal={"Steal": "no"})
        daemon = self.daemon().ready()
        work = self.walker([lib.CTL, "run", "--policy=50-test", f"--socket={daemon.runtime}/bus", "--"])
        self.assertTrue(self.even(work.pid), memory(work.pid))
        self.wait(daemon, "it to be seen", lambda: daemon.ctl("explain", str(work.pid))["memory"])
        self.ticks(daemon, 20)
        self.assertEqual(self.moves(daemon, "move-pages"), [])
        daemon.stop()
        self.ends_well(work)

    def test_even_out(self):
        """P17, interleaving, under Mode=auto: memory that is on one node though the process runs on both, if nothing
        is known of its use."""
        keys = {"Placement": {"Mode": "auto", "Nodes": ""}, "Steal": {"Steal": "no"}}
        self.write_policy(**keys, Memory={"Evidence": "residency", "Follow": "no"})
        work = self.walker(options=[f"--placement=node:{FAR}"])
        daemon = self.daemon().ready()
        self.wait(daemon, "a refusal", lambda: self.refusals(daemon, "follow-off"))
        daemon.stop()
        self.assertGreaterEqual(memory(work.pid)[FAR], 64 << 20)
        self.write_policy(**keys, Memory={"Evidence": "residency"})
        daemon = self.daemon().ready()
        self.wait(daemon, "its memory on both nodes alike", lambda: self.even(work.pid))
        self.assert_settled(daemon, "even-out")
        daemon.stop()
        self.ends_well(work)

    def test_striped_by_use(self):
        """P17, interleaving: memory that all threads are seen to write, and no thread has to itself. Memory bound by
        mbind(2) would be left alone."""
        self.write_policy(Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"}, Memory={"Evidence": "write"})
        work = self.walker(options=["--placement=main"])
        at = memory(work.pid)
        self.assertGreaterEqual(max(at.values()) * 20, 19 * sum(at.values()), at)
        daemon = self.daemon().ready()
        self.wait(daemon, "some of its memory on each node", lambda: self.apart(work.pid))
        self.assertEqual({order["rule"] for order in self.moves(daemon, "move-pages")}, {"follow-use"})
        daemon.stop()
        self.ends_well(work)

    def test_pairs(self):
        """P14, buddies: each two of four threads share half of an array, which begins on one node. By use, half of it
        goes to the other node, and nothing is interleaved. The main thread runs alone at first, and the home it then
        gets is too small for them."""
        self.write_policy(Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"}, Memory={"Evidence": "write"})
        daemon = self.daemon().ready()
        argv = ["numa02", "--processes=1", "--threads=4", "--sharers=2", "--seconds=600", "--bytes=64M", "--order=random"]
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.DEVNULL, preexec_fn=self.everywhere)
        lib.wait_until("its memory", lambda: sum(memory(work.pid).values()) >= 64 << 20 or not work.alive())
        self.wait(daemon, "half of it on each node", lambda: self.even(work.pid))
        self.wait(daemon, "the order to be over", lambda: daemon.says(": done, moved"))
        orders = self.moves(daemon, "move-pages")
        self.assertIn("follow-use", {order["rule"] for order in orders})
        self.assertNotIn(17, {order["mechanism"] for order in orders})
        daemon.stop()
        self.ends_well(work)

    def test_killed_in_the_midst(self):
        self.fixed(RateLimit=SLOW)
        work = self.hasher()
        daemon = self.daemon().ready()
        self.wait_half(daemon, work)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        self.rounds(work, 3)
        self.assertGreaterEqual(sum(memory(work.pid).values()), MB << 20)
        # The next one continues with it.
        self.fixed()
        daemon = self.daemon().ready()
        self.wait(daemon, "the rest to arrive", lambda: self.arrived(work.pid))
        self.rounds(work, 2)
        daemon.stop()

    def test_stopped_in_the_midst(self):
        self.fixed(RateLimit=SLOW)
        work = self.hasher()
        daemon = self.daemon().ready()
        self.wait_half(daemon, work)
        daemon.stop()
        at = memory(work.pid)
        self.rounds(work, 2)
        self.assertEqual(memory(work.pid)[HOME] >> 20, at[HOME] >> 20, "somebody moves on")
        self.assertEqual(work.masks(), {self.full})

    def test_released_in_the_midst(self):
        self.fixed(RateLimit=SLOW)
        work = self.hasher()
        daemon = self.daemon().ready()
        self.wait_half(daemon, work)
        daemon.ctl_run("release", "50-test")
        self.wait(daemon, "the order to be cancelled", lambda: daemon.says(": cancelled, moved"))
        self.rounds(work, 2)
        daemon.stop()

    def test_stays(self):
        """With Follow=no."""
        self.fixed(Follow="no")
        work = self.hasher()
        daemon = self.daemon().ready()
        self.wait(daemon, "a refusal", lambda: self.refusals(daemon, "follow-off"))
        daemon.stop()
        self.rounds(work, 1)

    def test_no_room(self):
        """S-OOM: twice the free memory of a nearly full node should go there. It stays, and no process is killed.
        Without headroom it moves, and the node is fuller than it should be."""
        total = node_memory(HOME, "MemTotal")
        left = total * (100 - FULL_PERCENT) // 100
        ballast = lib.Workload(self, [sys.executable, "-c", BALLAST, str(HOME), str(left)], "ballast",
                               stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, nodes.node_cpus(HOME)))
        self.addCleanup(ballast.process.stdout.close)
        self.assertEqual(ballast.process.stdout.readline(), b"full\n")
        before = {name: kernel_count(name) for name in ("oom_kill", "pswpout")}
        work = self.hasher(2 * left >> 20)

        self.fixed()
        daemon = self.daemon().ready()
        self.wait(daemon, "a refusal", lambda: self.refusals(daemon, "headroom"))
        self.ticks(daemon, 10)
        self.assertEqual(self.moves(daemon, "move-pages"), [])
        # Its interpreter may have a little there; the rest belongs to others.
        self.assertLess(memory(work.pid)[HOME], left // 8)
        daemon.stop()

        self.fixed(HeadroomPercent="0")
        daemon = self.daemon().ready()
        self.wait(daemon, "the node to be too full", lambda: memory(work.pid)[HOME] > left // 4)
        self.rounds(work, 1)
        daemon.stop()
        self.assertTrue(ballast.alive())
        self.assertEqual({name: kernel_count(name) for name in before}, before)

    def test_mover(self):
        """The mover's own tests, which have two nodes here."""
        run = subprocess.run(["test-act-mover-live"], capture_output=True, text=True, check=False, timeout=lib.DEADLINE_SEC * 4)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"(?m)^ok \d+ - test_there_and_back$", run.stdout)


if __name__ == "__main__":
    tap.main()
