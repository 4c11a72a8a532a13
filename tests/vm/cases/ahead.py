# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ten workloads, each observed for some seconds and then placed: the homes are those that were announced, and as many
bytes move. The nodes have two CPUs each."""

import os
import pathlib
import subprocess
import sys
import time

import lib
import nodes
import tap

DWELLER = pathlib.Path(__file__).with_name("dweller.py")
CPUS = {node: ",".join(map(str, sorted(nodes.node_cpus(node)))) for node in (0, 1)}
FIRST = {node: str(min(nodes.node_cpus(node))) for node in (0, 1)}
LAST = {node: str(max(nodes.node_cpus(node))) for node in (0, 1)}
BOTH, ALL = ":".join(CPUS.values()), ",".join(CPUS.values())
OBSERVE_SEC, SETTLE_SEC = 5, 20
MB = 128
MIB = 1 << 20
# Allowance for stacks and the like.
SLACK = MIB // 4


def dweller(*args):
    return [sys.executable, str(DWELLER), str(MB), *args]


def measured(name, *args):
    return [name, "--seconds=600", "--bytes=32M", *args]


# Name, and the commands that are started together.
WORKLOADS = {
    "thread-far": [dweller(CPUS[0], LAST[1], "any", "1")],
    "thread-far-back": [dweller(CPUS[1], LAST[0], "any", "1")],
    "thread-near": [dweller(CPUS[1], LAST[1], "any", "1")],
    "two-threads-far": [dweller(CPUS[0], CPUS[1], "any", "2")],
    "memory-split": [dweller(BOTH, LAST[1], "any", "1")],
    "two-processes": [dweller(CPUS[0], LAST[0], "any", "1"), dweller(CPUS[0], LAST[1], "any", "1")],
    "two-processes-crossed": [dweller(CPUS[0], LAST[1], "any", "1"), dweller(CPUS[1], LAST[0], "any", "1")],
    "numa01": [measured("numa01", "--processes=2", "--threads=2", "--placement=node:0")],
    "numa02-narrow": [measured("numa02", "--processes=1", "--threads=2", "--placement=node:1")],
    "multi-heap": [measured("multi-heap", "--processes=2", "--threads=2", "--placement=node:0")],
}


def descendants(pid):
    found = [pid]
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text(encoding="ascii").split():
            found += descendants(int(child))
    return found


class Ahead(nodes.NodesTest):
    SETTINGS = ""

    def start(self, argv):
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, self.everything))
        lib.wait_until("it to have begun", lambda: any(pathlib.Path(f"/proc/{pid}/stat").exists() for pid in descendants(work.pid)))
        return work

    def write(self, **workload):
        self.write_policy(Workload={"GroupBy": "auto", **workload}, Placement={"Mode": "auto", "Nodes": ""}, Steal={"Steal": "no"})

    def explain(self, daemon, pid):
        return daemon.ctl("explain", str(pid))

    def compare(self, name, commands):
        """Checks whether homes and bytes were as announced."""
        self.write(Act="observe")
        works = [self.start(argv) for argv in commands]
        time.sleep(5)
        daemon = self.daemon().ready()
        time.sleep(OBSERVE_SEC)
        pids = [pid for work in works for pid in descendants(work.pid)]
        ahead = {pid: self.explain(daemon, pid) for pid in pids}
        said = {pid: found.get("would_home_nodes", "") for pid, found in ahead.items()}
        # The last request of each process says what remains to be moved.
        orders = {pid: [move["bytes"] for move in found.get("would", []) if move["kind"] == "move-pages"] for pid, found in ahead.items()}
        said_bytes = sum(sizes[-1] for sizes in orders.values() if sizes)
        local = {pid: found["would_local_permille"] for pid, found in ahead.items() if "would_local_permille" in found}

        self.write()
        self.assertEqual(daemon.ctl_run("reload").returncode, 0)
        time.sleep(SETTLE_SEC)
        then = {pid: self.explain(daemon, pid) for pid in pids}
        done = {pid: found.get("home_nodes", "") for pid, found in then.items()}
        moved = daemon.ctl("show", "50-test")["memory_moved_bytes"]
        is_local = {pid: then[pid].get("local_permille", 0) for pid in local}
        daemon.stop()
        for work in works:
            work.end()
        homes = said == done
        size = abs(moved - said_bytes) <= max(said_bytes // 10, SLACK)
        near = all(abs(is_local[pid] - local[pid]) <= 150 for pid in local)
        print(f"# {name}: homes {said} {'as said' if homes else f'became {done}'}; {said_bytes / MIB:.1f} MiB said, {moved / MIB:.1f} moved; "
              f"local {local} said, {is_local} found", flush=True)
        return homes, size, near

    def test_ten(self):
        results = {name: self.compare(name, commands) for name, commands in WORKLOADS.items()}
        for what, index, least in (("homes", 0, 9), ("bytes", 1, 9), ("local", 2, 8)):
            wrong = [name for name, result in results.items() if not result[index]]
            self.assertGreaterEqual(len(results) - len(wrong), least, f"{what}: not as said for {', '.join(wrong)}")


if __name__ == "__main__":
    tap.main()
