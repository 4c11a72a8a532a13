# SPDX-License-Identifier: LGPL-2.1-or-later
"""A round of the placement benchmark: runs the pairs of workload and system that the lab names, one after the other, and
prints a JSON line for each.

usage: placement.py JSON   a list of {"workload", "system", "window", "scale", "memory"}
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import tap

BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")
# Since Linux 5.13; both suites have it.
TUNABLES = pathlib.Path("/sys/kernel/debug/sched/numa_balancing")
# Guests are some 5 to 10 times slower than machines and runs take seconds: the delays and periods are a tenth of the defaults.
TUNED = {"scan_delay_ms": 100, "scan_period_min_ms": 100, "scan_period_max_ms": 2000}
NUMAD_LOG = pathlib.Path("/var/log/numad.log")
NUMAD_PID = pathlib.Path("/run/numad.pid")
# numad does nothing for as long after boot as it waits between two decisions about a process (300 s). The clock it reads
# is ahead by more than that.
NUMAD = ["unshare", "--time", "--monotonic", "1000", "--fork", "numad", "-i", "1:2", "-l", "6"]
# numad looks at no process that has less. What the workloads lack comes as memory that is touched once and then lies idle, where a
# node has room for it besides 60 % of it that may be the system's and the heaps'.
NUMAD_MB_MIN = 300
BALLAST_MB = NUMAD_MB_MIN + 20
# What an administrator would write who knows nothing but that processes are apart. Jobs are seconds long.
POLICY = """[Match]
Exe=/lab/bin/{workload}

[Workload]
GroupBy=process

[Placement]
Mode=auto

[Steal]
Scope=machine
NodeLimit=1024
MaxDistance=254
"""
# An emulated guest takes ten times as long for the same, so that the daemon would slow down to stay below its 1 %.
CONFIG = "[Daemon]\nMaxCPU=5%\n"
NO_MEMORY = ("ping-pong",)
# How many processes the workloads are made of that share out the CPUs among their threads; 0: one for each node.
PROCESSES = {"numa01": 2, "numa01-thread-alloc": 2, "multi-heap": 0}
RUN_LIMIT_SEC = 300
START_SEC = 60


def wait_for(what, predicate):
    end = time.monotonic() + START_SEC
    while not predicate():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {START_SEC} s for {what}")
        time.sleep(0.05)


def processes(workload):
    return PROCESSES.get(workload, 1) or sum(bool(cpus) for cpus in tap.info()["machine"]["cpus"])


def cpu_sec(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class System:
    """Nobody places anything. The others say what they do instead; __exit__ puts back."""

    arguments = ()

    def __init__(self, workload):
        self.workload = workload
        self.processes = processes(workload)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.balancing(0)
        with contextlib.ExitStack() as stack:
            self.stack = stack
            self.start()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        self.stack.close()
        self.balancing(0)

    def balancing(self, value):
        BALANCING.write_text(str(value), encoding="ascii")

    def start(self):
        pass

    def daemon_cpu_sec(self):
        return 0

    def note(self, result):
        """Asked when the workload has ended: why the system took no part in the run, if it did not."""
        return ""


class Kernel(System):
    def start(self):
        self.balancing(1)


class KernelTuned(Kernel):
    def start(self):
        for name, value in TUNED.items():
            path = TUNABLES / name
            self.stack.callback(path.write_text, path.read_text(encoding="ascii"), encoding="ascii")
            path.write_text(str(value), encoding="ascii")
        super().start()


class Numad(System):
    @property
    def arguments(self):
        return (f"--ballast={BALLAST_MB}M",) if self.ballasted() else ()

    def ballasted(self):
        """On the node that memory starts on."""
        return self.workload not in NO_MEMORY and self.processes * BALLAST_MB <= tap.info()["machine"]["memory_mb"][0] * 6 // 10

    def start(self):
        NUMAD_LOG.unlink(missing_ok=True)
        self.pid = None
        self.stack.callback(self.stop)
        subprocess.run(NUMAD, check=True, timeout=START_SEC)
        wait_for("numad", NUMAD_PID.exists)
        self.pid = int(NUMAD_PID.read_text(encoding="ascii"))

    def stop(self):
        if self.pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        wait_for("numad to end", lambda: not pathlib.Path(f"/proc/{self.pid}").exists())
        NUMAD_PID.unlink(missing_ok=True)

    def daemon_cpu_sec(self):
        return cpu_sec(self.pid)

    def note(self, result):
        log = NUMAD_LOG.read_text(encoding="utf-8", errors="replace")
        ballast = f"{BALLAST_MB} MB of idle ballast in each process" if self.ballasted() else ""
        if " moved to node(s) " in log:
            return ballast
        mb = result.get("bytes", 0) // result["processes"] >> 20
        why = f"; it looks at none below {NUMAD_MB_MIN} MB, these have {mb}" if mb < NUMAD_MB_MIN and not ballast else ""
        return f"took no part: numad moved no process{why}{', with ' + ballast if ballast else ''}"


class Numaplace(System):
    def start(self):
        directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="np-")))
        (directory / "policy.d").mkdir()
        (directory / "policy.d" / "50-bench.policy").write_text(POLICY.format(workload=self.workload), encoding="ascii")
        (directory / "numaplaced.conf").write_text(CONFIG, encoding="ascii")
        log = self.stack.enter_context(open(directory / "log", "w+b"))
        self.bus = directory / "bus"
        self.process = subprocess.Popen(["numaplaced", f"--runtime-dir={directory}", f"--policy-dir={directory / 'policy.d'}",
                                         f"--config={directory / 'numaplaced.conf'}"], stdout=log, stderr=log)
        self.stack.callback(self.stop)
        wait_for("numaplaced", lambda: self.bus.exists() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise RuntimeError((directory / "log").read_text(encoding="utf-8", errors="replace").strip())

    def stop(self):
        self.process.terminate()
        self.process.wait(START_SEC)

    def daemon_cpu_sec(self):
        return cpu_sec(self.process.pid)

    def note(self, result):
        run = subprocess.run(["numaplacectl", f"--socket={self.bus}", "--json=short", "status"], capture_output=True,
                             text=True, check=True, timeout=START_SEC)
        return "" if json.loads(run.stdout)["moves"] else "took no part: numaplaced changed nothing"


class Hard(System):
    @property
    def arguments(self):
        return ("--bind",) if self.workload in NO_MEMORY else ("--bind", "--placement=local")


SYSTEMS = {"none": System, "kernel": Kernel, "kernel-tuned": KernelTuned, "numad": Numad, "numaplace": Numaplace,
           "hard": Hard}


def counters():
    """What the guest as a whole has done so far."""
    cpu = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    vm = dict(line.split() for line in pathlib.Path("/proc/vmstat").read_text(encoding="ascii").splitlines())
    # system, irq, softirq
    ticks = int(cpu[3]) + int(cpu[6]) + int(cpu[7])
    return {"system_cpu_s": ticks / os.sysconf("SC_CLK_TCK"), "pages_moved": int(vm["pgmigrate_success"]),
            "pages_moved_by_balancing": int(vm.get("numa_pages_migrated", 0))}


def run_workload(workload, scale, window, arguments=()):
    argv = [workload, f"--scale={scale}", f"--window={window}", *arguments]
    if workload not in NO_MEMORY:
        # The default follows from the CPUs the program may use, which is for the system under test to change.
        argv += ["--sample", f"--threads={os.cpu_count() // processes(workload)}"]
        if workload in PROCESSES:
            argv += [f"--processes={processes(workload)}"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_LIMIT_SEC, check=False)
    if run.returncode:
        raise RuntimeError(f"{workload}: status {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def measure(pair):
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    with SYSTEMS[pair["system"]](pair["workload"]) as system:
        before = counters()
        daemon_before = system.daemon_cpu_sec()
        result = run_workload(pair["workload"], pair["scale"], pair["window"], (f"--placement={pair['memory']}", *system.arguments)
                              if pair["workload"] not in NO_MEMORY else system.arguments)
        after = counters()
        moved = {key: round(after[key] - before[key], 3) for key in after}
        return {"seconds": result["seconds"], "operations": result["operations"], "converged_s": result.get("converged_s"),
                "local_end": result.get("local_end"), "daemon_cpu_s": round(system.daemon_cpu_sec() - daemon_before, 3),
                "note": system.note(result), **moved}


def warm_up(pairs):
    """The host gives a guest its memory when it is touched first, and code is translated when it is run first."""
    for number, mb in enumerate(tap.info()["machine"]["memory_mb"]):
        if mb:
            run_workload("numa02", 0.01, "none", [f"--placement=node:{number}", f"--bytes={mb * 6 // 10}M"])
    for workload in dict.fromkeys(pair["workload"] for pair in pairs):
        run_workload(workload, 0.02, 254)


def main():
    pairs = json.loads(sys.argv[1])
    print(f"1..{len(pairs)}", flush=True)
    if not TUNABLES.exists():
        subprocess.run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], check=True)
    warm_up(pairs)
    failed = 0
    for number, pair in enumerate(pairs, 1):
        try:
            print(json.dumps({**pair, **measure(pair)}), flush=True)
            print(f"ok {number} - {pair['workload']} {pair['system']}", flush=True)
        except Exception as error:  # One run that fails must not end the others; the row says so.
            failed += 1
            print(json.dumps({**pair, "error": f"{type(error).__name__}: {error}"}), flush=True)
            print(f"not ok {number} - {pair['workload']} {pair['system']}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
