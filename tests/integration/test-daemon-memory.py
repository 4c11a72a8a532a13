#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The residency of a process, and which others share its memory, are measured and shown; nothing is read if no policy
needs it."""

import os
import pathlib
import signal
import subprocess
import sys

import lib

MIB = 1 << 20
PRIVATE, SHARED = 96 * MIB, 32 * MIB

# Private memory, memory shared with a child, and a file that it only reads. Reports when all of it is there.
HOLDER = f"""
import mmap, os, signal, sys
private = mmap.mmap(-1, {PRIVATE}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
private.write(b"x" * {PRIVATE})
fd = os.memfd_create("shared")
os.ftruncate(fd, {SHARED})
shared = mmap.mmap(fd, {SHARED})
shared.write(b"x" * {SHARED})
path = sys.argv[1]
file = mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)
sum(file[i] for i in range(0, len(file), 4096))
print("ready", flush=True)
signal.pause()
"""


class Memory(lib.DaemonTest):
    def setUp(self):
        if not pathlib.Path("/proc/self/numa_maps").exists():
            self.skipTest("needs a kernel with NUMA")
        super().setUp()
        self.file = self.directory / "file"
        self.file.write_bytes(b"x" * 64 * MIB)

    def holder(self):
        workload = lib.Workload(self, [sys.executable, "-c", HOLDER, str(self.file)], self.mark,
                                stdout=subprocess.PIPE)
        self.addCleanup(workload.process.stdout.close)
        self.assertEqual(workload.process.stdout.readline(), b"ready\n")
        return workload

    def policy(self, evidence):
        self.write_policy(Workload={"Act": "observe"}, Placement={"Mode": "auto", "Nodes": ""},
                          Memory={"Evidence": evidence})

    @staticmethod
    def total(answer):
        return sum(node["bytes"] for node in answer.get("memory") or ())

    def known(self, daemon, what, *args):
        return lib.wait_until(what, lambda: (a := daemon.ctl(*args)).get("memory") and a)

    def test_shown(self):
        self.policy("residency")
        workload = self.holder()
        daemon = self.daemon(rehearse=False).ready()
        process = self.known(daemon, "the memory of the process", "explain", str(workload.pid))
        # The interpreter itself has a few megabytes. Pages of the file would be 64.
        self.assertGreaterEqual(self.total(process), PRIVATE + SHARED)
        self.assertLess(self.total(process), PRIVATE + SHARED + 32 * MIB)
        self.assertEqual(process["memory_evidence"], "residency")
        self.assertEqual(process["memory_unknown"], 0)
        self.assertLess(process["memory_age_usec"], 60_000_000)

        show = self.known(daemon, "the memory of the workload", "show", "50-test")
        self.assertEqual(show["memory_evidence"], "residency")
        self.assertGreaterEqual(self.total(show), PRIVATE + SHARED)
        self.assertEqual(self.total(show), sum(self.total(group) for group in show["groups"]))
        nodes = {node["node"]: node["bytes"] for node in show["memory"]}
        tasks = daemon.ctl("tasks", "50-test")
        self.assertEqual({task["memory_node"] for task in tasks}, {max(nodes, key=nodes.get)})

        status = daemon.ctl("status")
        free = {node["node"]: node["bytes"] for node in status["free"]}
        size = {node["node"]: node["memory_bytes"] for node in daemon.ctl("topology")["nodes"]}
        for node in nodes:
            self.assertGreater(free[node], 0)
            self.assertLessEqual(free[node], size[node])
        self.assertGreater(status["memory_reads"], 0)
        self.assertGreater(status["memory_cpu_usec"], 0)
        self.assertRegex(daemon.ctl_run("status").stdout, r"Free memory: \d+: ")
        for args in (("show", "50-test"), ("explain", str(workload.pid))):
            self.assertRegex(daemon.ctl_run(*args).stdout, r"Memory: \d+: .* MiB.* \(residency, .* old\)")
        daemon.stop()

    def test_shared_counts_once(self):
        """Two processes that map the same memory count half of it each."""
        self.policy("residency")
        first = self.holder()
        daemon = self.daemon(rehearse=False).ready()
        alone = self.total(self.known(daemon, "the memory of the first", "explain", str(first.pid)))
        mapper = ("import mmap, os, signal\n"
                  f"fd = os.open('/proc/{first.pid}/fd/3', os.O_RDWR)\n"
                  f"shared = mmap.mmap(fd, {SHARED})\n"
                  f"sum(shared[i] for i in range(0, {SHARED}, 4096))\n"
                  "print('ready', flush=True)\nsignal.pause()\n")
        second = lib.Workload(self, [sys.executable, "-c", mapper], self.mark, stdout=subprocess.PIPE)
        self.addCleanup(second.process.stdout.close)
        self.assertEqual(second.process.stdout.readline(), b"ready\n")
        lib.wait_until("the first to have half of it",
                       lambda: self.total(daemon.ctl("explain", str(first.pid))) <= alone - SHARED // 2 + MIB)
        # It may have been measured just after it began.
        half = lib.wait_until("the second to have half of it",
                              lambda: max(0, self.total(daemon.ctl("explain", str(second.pid))) - SHARED // 2))
        self.assertLess(half, 32 * MIB)
        daemon.stop()

    def test_sharers_are_a_group(self):
        """S-GRP: four processes that share memory are one group; four that do not are four groups."""
        self.write_policy(Workload={"Act": "observe", "GroupBy": "shared-memory"})
        program = ("import mmap, os, signal, sys\n"
                   "for i in range(3):\n"
                   "    if os.fork() == 0:\n"
                   "        break\n"
                   "if sys.argv[1] == 'shared':\n"
                   "    memory = mmap.mmap(FD, 65536)\n"
                   "signal.pause()\n")
        shared = "import os\nFD = os.memfd_create('shared')\nos.ftruncate(FD, 65536)\n" + program
        for kind, text in (("shared", shared), ("private", program)):
            workload = lib.Workload(self, [sys.executable, "-c", text, kind], self.mark, start_new_session=True)
            self.addCleanup(os.killpg, workload.pid, signal.SIGKILL)
        daemon = self.daemon("--dry-run").ready()

        def sizes():
            groups = {}
            for task in daemon.ctl("tasks", "50-test"):
                groups[task["group"]] = groups.get(task["group"], 0) + 1
            return sorted(groups.values())

        lib.wait_until("the groups", lambda: sizes() == [1, 1, 1, 1, 4])
        self.assertEqual(daemon.ctl("status")["homes"], 0)
        daemon.stop()

    def test_not_wanted(self):
        """On one node there is no choice, and emulated nodes have no memory."""
        if not lib.one_node() or len(lib.own_cpus()) < 2:
            self.skipTest("needs one node, and two CPUs to make two pretend nodes of")
        self.policy("auto")
        workload = self.holder()
        for rehearse in (False, True):
            if rehearse:
                self.policy("residency")
            daemon = self.daemon(rehearse=rehearse).ready()
            lib.wait_until("the process to be known", lambda d=daemon: d.ctl("explain", str(workload.pid))["managed"])
            tick = daemon.ctl("status")["tick"]
            lib.wait_until("some ticks", lambda d=daemon, t=tick: d.ctl("status")["tick"] >= t + 5)
            process = daemon.ctl("explain", str(workload.pid))
            self.assertEqual((process["memory"], process["memory_evidence"]), ([], ""))
            self.assertEqual(process["memory_unknown"], 1)
            status = daemon.ctl("status")
            self.assertEqual((status["memory_reads"], status["memory_cpu_usec"]), (0, 0))
            self.assertEqual(status["rehearsal"] > 0, rehearse)
            self.assertEqual(status["free"], [])
            self.assertNotIn("Memory:", daemon.ctl_run("show", "50-test").stdout)
            daemon.stop()


if __name__ == "__main__":
    lib.main()
