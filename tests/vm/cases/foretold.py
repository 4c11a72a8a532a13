# SPDX-License-Identifier: LGPL-2.1-or-later
"""The gain of ten programs, estimated while they are only observed, compared with what they do more once they are
placed. For eight of them it is within the estimated range."""

import json
import os
import pathlib
import statistics
import subprocess
import time

import lib
import nodes
import tap
from ahead import CPUS, descendants

# By the guest's clock: until memory is there and all processes have started, until there are enough samples, and so
# on.
BEGIN_SEC, OBSERVE_SEC, SETTLE_SEC, MEASURE_SEC = 2, 7, 3, 3
EVERYWHERE = ""


def program(name, processes, threads, *args, size="16M"):
    return [f"/lab/bin/{name}", f"--processes={processes}", f"--threads={threads}", f"--bytes={size}", *args]


# Name; where it starts; and the program.
PROGRAMS = {
    "numa01": (EVERYWHERE, program("numa01", 2, 2, "--placement=node:0", "--order=random")),
    "numa01-thread-alloc": (EVERYWHERE, program("numa01-thread-alloc", 2, 2, "--placement=node:0", "--order=random")),
    "numa02": (EVERYWHERE, program("numa02", 1, 4, "--placement=node:0", "--order=random")),
    "numa02-sequential": (EVERYWHERE, program("numa02", 1, 2, "--placement=node:1")),
    "multi-heap": (EVERYWHERE, program("multi-heap", 2, 2, "--placement=node:0", "--order=random")),
    "multi-heap-local": (EVERYWHERE, program("multi-heap", 2, 2, "--bind=start", "--placement=local", "--order=random")),
    "far": (CPUS[0], program("numa01", 1, 1, "--placement=node:1", "--order=random")),
    "far-sequential": (CPUS[1], program("multi-heap", 1, 2, "--placement=node:0")),
    "near": (CPUS[1], program("numa01", 1, 2, "--placement=node:1", "--order=random")),
    "interleaved": (CPUS[1], program("multi-heap", 1, 2, "--placement=interleave", "--order=random")),
}


class Foretold(nodes.NodesTest):
    SETTINGS = "[Daemon]\nMaxCPU=5%\n"

    def write(self, act):
        (self.policies / "50-test.policy").write_text(f"[Match]\nEnvironment=NUMAPLACE_TEST={self.mark}\n[Workload]\nMinAgeSec=0\nAct={act}\n"
                                                      "[Placement]\nMode=auto\n", encoding="ascii")

    def start(self, start, argv):
        """Bound to where it starts until it has begun."""
        seconds = BEGIN_SEC + OBSERVE_SEC + SETTLE_SEC + MEASURE_SEC + 1
        cpus = nodes.cpus_of(start) if start else self.everything
        # pylint: disable-next=subprocess-popen-preexec-fn
        work = subprocess.Popen([*argv, f"--seconds={seconds}", "--sample=10"], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "NUMAPLACE_TEST": self.mark}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.addCleanup(work.wait)
        self.addCleanup(work.stdout.close)
        self.addCleanup(work.kill)
        time.sleep(BEGIN_SEC)
        if start:
            for pid in descendants(work.pid):
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(task.name), self.everything)
        return work

    def compare(self, name, start, argv):
        """Returns whether the gain was in the estimated range."""
        self.write("observe")
        daemon = self.daemon().ready()
        work = self.start(start, argv)
        time.sleep(OBSERVE_SEC)
        ahead = [daemon.ctl("explain", str(pid)) for pid in descendants(work.pid)]
        said = time.monotonic()
        self.write("auto")
        self.assertEqual(daemon.ctl_run("reload").returncode, 0)
        result = json.loads(work.stdout.read())
        ended = time.monotonic()
        self.assertEqual(work.wait(), 0)
        daemon.stop()

        began = ended - result["seconds"]
        samples = [(began + seconds, operations) for seconds, operations, _ in result["samples"]]
        local = [process.get("local_permille") for process in ahead]

        def rate(first, last):
            inside = [sample for sample in samples if first <= sample[0] <= last]
            self.assertGreater(len(inside), 1, f"{name}: {first} to {last}: {samples}")
            return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

        gained = 1000 * rate(said + SETTLE_SEC, said + SETTLE_SEC + MEASURE_SEC) / rate(said - MEASURE_SEC, said) - 1000
        keys = [f"would_gain{which}_permille" for which in ("_least", "", "_most")]
        found = [[process[key] for key in keys] for process in ahead if keys[0] in process]
        self.assertTrue(found, f"{name}: {ahead}")
        least, expected, most = (statistics.mean(column) for column in zip(*found))
        inside = least <= gained <= most
        print(f"# {name}: {expected / 10:+.0f} % ({least / 10:+.0f} to {most / 10:+.0f} %) said, {gained / 10:+.1f} % gained, local {local} "
              f"{'' if inside else ', which is outside'}", flush=True)
        return inside

    def test_ten(self):
        outside = [name for name, (start, argv) in PROGRAMS.items() if not self.compare(name, start, argv)]
        self.assertLessEqual(len(outside), 2, ", ".join(outside))


if __name__ == "__main__":
    tap.main()
