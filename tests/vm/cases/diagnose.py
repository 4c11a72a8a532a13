# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl diagnose: the right verdict on misplaced processes, with the cause, and no alarm about others. The
nodes have two CPUs each: 0, 1 and 2, 3."""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import uuid

import lib
import nodes
import tap

DWELLER = pathlib.Path(__file__).with_name("dweller.py")
CPUS = {node: ",".join(map(str, sorted(nodes.node_cpus(node)))) for node in (0, 1)}
FIRST = {node: str(min(nodes.node_cpus(node))) for node in (0, 1)}
LAST = {node: str(max(nodes.node_cpus(node))) for node in (0, 1)}
ALL = ",".join(CPUS.values())
MB = 160
# Below the thresholds, or sleeping, or short-lived.
SMALL = 24
CGROUPS = pathlib.Path("/sys/fs/cgroup")
DEBUG = pathlib.Path("/sys/kernel/debug")
# Since Linux 7.3. It moves threads to where others of their process have run, which is where the memory is.
CACHE_AWARE = DEBUG / "sched/llc_balancing/enabled"


class Diagnose(nodes.NodesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not (DEBUG / "sched").exists():
            subprocess.run(["mount", "-t", "debugfs", "none", DEBUG], check=True)
            cls.addClassCleanup(subprocess.run, ["umount", DEBUG], check=True)
        if CACHE_AWARE.exists():
            cls.addClassCleanup(CACHE_AWARE.write_text, CACHE_AWARE.read_text(encoding="ascii"), encoding="ascii")
            CACHE_AWARE.write_text("0", encoding="ascii")

    def dweller(self, touch, start, may, threads=1, mb=MB, bind=None, wrap=()):
        """It may use all CPUs unless stated otherwise. This program keeps away from the CPUs where the process
        starts."""
        os.sched_setaffinity(0, {int(FIRST[0 if int(start.split(",")[0]) in nodes.node_cpus(1) else 1])})
        argv = [*wrap, sys.executable, str(DWELLER), str(mb), touch, start, may, str(threads), *([] if bind is None else [str(bind)])]
        work = lib.Workload(self, argv, self.mark, stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, self.everything))
        self.assertEqual(work.process.stdout.readline(), "ready\n")
        self.addCleanup(work.process.stdout.close)
        return work

    @contextlib.contextmanager
    def cpuset(self, cpus):
        """A cgroup with these CPUs. Returns the prefix of a command that starts it in there."""
        name = f"np-{uuid.uuid4().hex[:8]}.slice"
        subprocess.run(["systemctl", "set-property", "--runtime", name, f"AllowedCPUs={cpus}"], check=True)
        try:
            yield name, ("systemd-run", "-q", "--scope", "--collect", f"--slice={name}")
        finally:
            subprocess.run(["systemctl", "revert", name], check=False, capture_output=True)

    def away(self, pid):
        """Keeps this program, and what it starts, on the node where less of a process runs: the kernel makes room for
        it."""
        tids = [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)] or [pid]
        on = [nodes.last_cpu(pid, tid) in nodes.node_cpus(0) for tid in tids]
        os.sched_setaffinity(0, {int(FIRST[1 if sum(on) * 2 >= len(on) else 0])})

    def diagnose(self, pid, seconds=4):
        self.away(pid)
        run = subprocess.run([lib.CTL, "diagnose", f"--seconds={seconds}", "--json=short", str(pid)], capture_output=True, text=True,
                             timeout=lib.DEADLINE_SEC, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        found, = json.loads(run.stdout)
        return found

    def find(self, work, verdict):
        found = self.diagnose(work.pid)
        self.assertEqual(found["verdict"], verdict, json.dumps(found, indent=1))
        self.assertTrue(found["alarm"])
        self.assertGreater(found["gain_most_permille"], 0)
        work.end()
        return found

    def test_threads_far(self):
        for near, far in ((0, 1), (1, 0)):
            found = self.find(self.dweller(CPUS[near], FIRST[far], "any"), "threads-far")
            self.assertEqual((found["would_home_nodes"], found["pinned_by"]), (str(near), ""))
            self.assertLess(found["move_bytes"], 16 << 20)
            self.assertIn("Unit=", found["policy"])

    def test_memory_far(self):
        """Others work where its memory is."""
        others = self.spinner("--threads=4", preexec_fn=lambda: os.sched_setaffinity(0, nodes.node_cpus(0)))
        found = self.find(self.dweller(CPUS[0], FIRST[1], "any"), "memory-far")
        self.assertEqual(found["would_home_nodes"], "1")
        self.assertGreater(found["move_bytes"], (MB - 16) << 20)
        others.end()

    def test_bandwidth(self):
        self.find(self.dweller(CPUS[0], ALL, "own", threads=4), "bandwidth")

    def test_pinned_and_waiting(self):
        work = self.dweller(CPUS[1], FIRST[1], FIRST[1], threads=3)
        found = self.find(work, "pin-waits")
        self.assertIn("CPU mask", found["pinned_by"])
        self.assertEqual(found["cpus_allowed"], FIRST[1])
        self.assertIn("ForeignAffinity=override", found["policy"])

    def test_pinned_by_a_parent(self):
        work = self.dweller(CPUS[1], FIRST[1], FIRST[1], threads=3, wrap=("sh", "-c", 'taskset -p -c "$0" $$ >/dev/null; "$@"; exit $?', FIRST[1]))
        child = int(pathlib.Path(f"/proc/{work.pid}/task/{work.pid}/children").read_text().split()[0])
        found = self.diagnose(child)
        self.assertEqual((found["verdict"], found["pinned_by"]), ("pin-waits", f"a CPU mask inherited from sh[{work.pid}]"))
        subprocess.run(["kill", str(child)], check=True)

    def test_cpuset_and_waiting(self):
        with self.cpuset(FIRST[1]) as (name, wrap):
            work = self.dweller(FIRST[1], FIRST[1], FIRST[1], threads=3, wrap=wrap)
            found = self.find(work, "pin-waits")
            self.assertEqual(found["pinned_by"], f"the cpuset of control group /np.slice/{name}")
            self.assertNotIn("ForeignAffinity", found["policy"])

    def test_pinned_far(self):
        found = self.find(self.dweller(CPUS[0], FIRST[1], CPUS[1]), "pin-far")
        self.assertIn("CPU mask", found["pinned_by"])

    def test_cpuset_far(self):
        with self.cpuset(ALL) as (name, wrap):
            work = self.dweller(CPUS[0], FIRST[0], "any", wrap=wrap)
            subprocess.run(["systemctl", "set-property", "--runtime", name, f"AllowedCPUs={CPUS[1]}"], check=True)
            self.assertEqual(self.find(work, "pin-far")["pinned_by"], f"the cpuset of control group /np.slice/{name}")

    def test_bound_far(self):
        found = self.find(self.dweller(CPUS[1], FIRST[1], "any", bind=0), "bound-far")
        self.assertGreater(found["bound_bytes"], (MB - 16) << 20)

    def test_full(self):
        works = [self.dweller(":".join(CPUS.values()), ALL, "any", threads=4) for _ in range(2)]
        for work in works:
            found = self.diagnose(work.pid)
            self.assertFalse(found["alarm"], json.dumps(found, indent=1))
            self.assertEqual(found["verdict"], "full")
        for work in works:
            work.end()

    def healthy(self):
        """Twenty processes that are well placed, or do not matter."""
        for node, threads in itertools.product((0, 1), (1, 2)):
            # The kernel would put one of two on a node without this program.
            yield "local", dict(touch=CPUS[node], start=LAST[node] if threads == 1 else CPUS[node], may="any" if threads == 1 else "own", threads=threads)
            yield "local", dict(touch=CPUS[node], start=CPUS[node], may=CPUS[node], threads=threads)
            yield "local", dict(touch=CPUS[node], start=CPUS[node], may=CPUS[node], threads=threads, bind=node)
        for node in (0, 1):
            yield "local", dict(touch=FIRST[node], start=FIRST[node], may="own")
            yield "small", dict(touch=CPUS[node], start=CPUS[1 - node], may=CPUS[1 - node], mb=SMALL)
            yield "idle", dict(touch=CPUS[node], start=CPUS[1 - node], may=CPUS[1 - node], threads=0)
        yield "uncertain", dict(touch=":".join(CPUS.values()), start=ALL, may="own", threads=4)
        yield "uncertain", dict(touch=":".join(CPUS.values()), start=f"{FIRST[0]},{FIRST[1]}", may="own", threads=2)

    def test_no_alarm(self):
        cases = list(self.healthy())
        self.assertEqual(len(cases), 20)
        for verdict, how in cases:
            work = self.dweller(**how)
            found = self.diagnose(work.pid)
            self.assertFalse(found["alarm"], f"{how}\n{json.dumps(found, indent=1)}")
            self.assertEqual(found["verdict"], verdict, f"{how}\n{json.dumps(found, indent=1)}")
            work.end()

    def test_host(self):
        """The worst is listed first."""
        # One with its memory, one without, and room for this program.
        works = [self.dweller(CPUS[1], FIRST[1], FIRST[1]), self.dweller(CPUS[1], LAST[0], "any")]
        run = subprocess.run([lib.CTL, "diagnose", "--seconds=4"], capture_output=True, text=True, timeout=lib.DEADLINE_SEC, check=True)
        lines = [line.split() for line in run.stdout.splitlines()]
        self.assertEqual(lines[1][0], str(works[1].pid), run.stdout)
        self.assertIn("threads-far", lines[1])
        self.assertEqual([line[-2] for line in lines if line and line[0] == str(works[0].pid)], ["local"], run.stdout)


if __name__ == "__main__":
    tap.main()
