# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the slow benchmarks share: a daemon of their own, its cost, and the output format of all benchmarks."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


# Exit status of a benchmark that is not possible on this machine; a line says why.
NOT_HERE = 77

# Only a hang takes longer, even beside builds on two CPUs.
HANG_SEC = 300

ONLINE_NODES = pathlib.Path("/sys/devices/system/node/online")


class Daemon:
    """numaplaced with one policy (None: the policies in policy.d) in a directory of its own. Use as a context
    manager."""

    def __init__(self, build: pathlib.Path, policy: str | None, options: list[str]):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="numaplace-bench-"))
        policies = self.directory / "policy.d"
        policies.mkdir()
        if policy is not None:
            (policies / "50-bench.policy").write_text(policy, encoding="ascii")
        (self.directory / "numaplaced.conf").write_text("", encoding="ascii")
        self.build = build
        self.argv = [str(build / "src/daemon/numaplaced"), f"--runtime-dir={self.directory}",
                     f"--config={self.directory / 'numaplaced.conf'}", f"--policy-dir={policies}", *options]
        self.process = None

    def __enter__(self) -> "Daemon":
        self.log = open(self.directory / "log", "w+b")
        self.process = subprocess.Popen(self.argv, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + HANG_SEC
        while not (self.directory / "bus").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.terminate()
                self.process.wait()
                self.log.seek(0)
                sys.exit("numaplaced did not start: " + self.log.read().decode(errors="replace").strip())
            time.sleep(0.02)
        return self

    def __exit__(self, *exc) -> None:
        self.process.terminate()
        self.process.wait(timeout=HANG_SEC)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cpu_nsec(self) -> int:
        """CPU time of all threads so far."""
        return sum(int(p.read_text(encoding="ascii").split()[0])
                   for p in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"))

    def rss_bytes(self) -> int:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def ctl_json(self, *args: str):
        """An answer; repeats a request that a busy machine delayed too long."""
        deadline = time.monotonic() + HANG_SEC
        while True:
            run = subprocess.run([str(self.build / "src/ctl/numaplacectl"), f"--socket={self.directory / 'bus'}",
                                  "--json=short", *args], capture_output=True, text=True, timeout=HANG_SEC, check=False)
            if run.returncode == 0:
                return json.loads(run.stdout)
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                sys.exit(f"numaplacectl {' '.join(args)}: {run.stderr.strip()}; numaplaced has status {self.process.poll()} and said:\n"
                         + self.log.read().decode(errors="replace")[-2000:])


def policy_of(bench: str, nodes: str = "0") -> str:
    """A policy that keeps programs with NUMAPLACE_BENCH=`bench` in their environment on these nodes."""
    return f"[Match]\nEnvironment=NUMAPLACE_BENCH={bench}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes={nodes}\n"


def parser_of(bench: str, about: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {bench}", description=about.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    return parser


class Output:
    """JSON lines with --json, otherwise one readable line per figure."""

    def __init__(self, bench: str, as_json: bool):
        self.bench = bench
        self.as_json = as_json

    def figure(self, case: str, metric: str, unit: str, value: float, baseline: float | None, runs: int,
               remark: str = "") -> None:
        ratio = value / baseline if baseline else None
        if self.as_json:
            print(json.dumps({"bench": self.bench, "case": case, "metric": metric, "unit": unit,
                              "value": round(value, 6), "baseline": None if baseline is None else round(baseline, 6),
                              "ratio": None if ratio is None else round(ratio, 4), "runs": runs}), flush=True)
        else:
            against = f"  against {baseline:.6g}: ratio {ratio:.4f}" if ratio is not None else ""
            print(f"{self.bench} {case:<16}{metric:<22}{value:>14.6g} {unit}{against}  ({runs} runs){remark}", flush=True)

    def note(self, text: str) -> None:
        if not self.as_json:
            print(f"{self.bench} {text}", flush=True)


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> str:
    """Median and interquartile range, for remarks."""
    q = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return f" [{q[0]:.4f} .. {q[2]:.4f}]"


@contextlib.contextmanager
def child(argv: list[str], **kwargs):
    """A process that ends with the block."""
    process = subprocess.Popen(argv, **kwargs)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def n_cpus() -> int:
    return len(os.sched_getaffinity(0))


def nodes_of(bench: str) -> tuple[list[str], str]:
    """Options for the daemon, and the nodes it then has: those of the machine, or two emulated ones on a machine with
    one node. Ends the program where neither is possible."""
    online = ONLINE_NODES.read_text(encoding="ascii").strip() if ONLINE_NODES.exists() else "0"
    if online != "0":
        return [], online
    if n_cpus() < 2:
        print(f"./dev bench {bench}: needs two CPUs to make two nodes of, and this program may use one", file=sys.stderr)
        sys.exit(NOT_HERE)
    return ["--rehearse=2"], "0,1"
