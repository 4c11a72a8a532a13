# SPDX-License-Identifier: LGPL-2.1-or-later
"""The placers in the placement benchmark."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import tap

BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")
# Since Linux 5.13; both suites have it.
TUNABLES = pathlib.Path("/sys/kernel/debug/sched/numa_balancing")
# The guest is a machine four times slower than a real one, and runs take seconds: delays and periods are a tenth of
# the defaults.
TUNED = {"scan_delay_ms": 100, "scan_period_min_ms": 100, "scan_period_max_ms": 2000}
NUMAD_LOG = pathlib.Path("/var/log/numad.log")
NUMAD_PID = pathlib.Path("/run/numad.pid")
# numad does nothing after boot for as long as it waits between two decisions about a process (300 s). The clock it
# reads is ahead by more than that.
NUMAD = ["unshare", "--time", "--monotonic", "1000", "--fork", "numad", "-i", "1:2", "-l", "6"]
# numad ignores processes with less. Workloads with less get memory that is touched once and then idle, on a node with
# room for it besides the 60 % that the system and the heaps may use.
NUMAD_MB_MIN = 300
BALLAST_MB = NUMAD_MB_MIN + 20
# What an administrator would write who knows only that processes are separate. Jobs take seconds.
POLICY = """[Match]
Exe={exe}

[Workload]
GroupBy=process

[Placement]
Mode={mode}

[Steal]
Scope=machine
NodeLimit=1024
MaxDistance=254

[Memory]
Evidence={evidence}
"""
# Such a guest takes four times as long for the same work, so the daemon would slow down to stay below its 1 %.
CONFIG = "[Daemon]\nMaxCPU=5%\n"
START_SEC = 60
# From then on nothing should get another home or a CPU of another node.
LATE_SEC = 30


def wait_for(what, predicate):
    end = time.monotonic() + START_SEC
    while not predicate():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {START_SEC} s for {what}")
        time.sleep(0.05)


def cpu_sec(threads):
    """CPU time of threads, by their directories, to the nanosecond; stat gives it in whole timer ticks."""
    return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


def threads_of(pid):
    return list(pathlib.Path(f"/proc/{pid}/task").iterdir())


class System:
    """Nothing is placed. The others state what they do instead; __exit__ restores."""

    # How the workload binds its threads, and its other options.
    bind = ""
    arguments = ()

    def __init__(self, program):
        self.program = program
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

    def mover_cpu_sec(self):
        """The part that was spent moving pages, if the daemon has threads for that."""
        return 0

    def moves(self, begin, end):
        """Figures for the run: what the system did to threads between two instants (CLOCK_MONOTONIC)."""
        return {}

    def note(self, result):
        """Called when the workload has ended. Returns why the system took no part in the run, if it did not."""
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
        """On the node where memory starts."""
        room_mb = tap.info()["machine"]["memory_mb"][0] * 6 // 10
        return self.program.memory and self.program.n_processes * BALLAST_MB <= room_mb

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
        return cpu_sec(threads_of(self.pid))

    def note(self, result):
        log = NUMAD_LOG.read_text(encoding="utf-8", errors="replace")
        ballast = f"{BALLAST_MB} MB of idle ballast in each process" if self.ballasted() else ""
        if " moved to node(s) " in log:
            return ballast
        mb = result.get("bytes", 0) // result["processes"] >> 20
        why = f"; it looks at none below {NUMAD_MB_MIN} MB, these have {mb}" if mb < NUMAD_MB_MIN and not ballast else ""
        return f"took no part: numad moved no process{why}{', with ' + ballast if ballast else ''}"


class Numaplace(System):
    mode, evidence = "auto", "auto"

    def start(self):
        directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="np-")))
        (directory / "policy.d").mkdir()
        policy = POLICY.format(exe=self.program.exe, mode=self.mode, evidence=self.evidence)
        (directory / "policy.d" / "50-bench.policy").write_text(policy, encoding="ascii")
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
        return cpu_sec(threads_of(self.process.pid))

    def mover_cpu_sec(self):
        return cpu_sec(thread for thread in threads_of(self.process.pid)
                       if (thread / "comm").read_text(encoding="ascii").startswith("mover/"))

    def ask(self, *verb):
        run = subprocess.run(["numaplacectl", f"--socket={self.bus}", "--json=short", *verb], capture_output=True,
                             text=True, check=True, timeout=START_SEC)
        return json.loads(run.stdout)

    def moves(self, begin, end):
        homes = [move["time_usec"] / 1e6 - begin for move in self.ask("moves")
                 if move["kind"] == "set-home" or (move["kind"] == "lend" and move["cross_node"])]
        homes = [at for at in homes if 0 <= at <= end - begin]
        return {"first_home_s": round(min(homes), 3) if homes else None, "last_home_s": round(max(homes, default=0), 3),
                "late_homes": sum(at >= LATE_SEC for at in homes)}

    def note(self, result):
        return "" if self.ask("status")["moves"] else "took no part: numaplaced changed nothing"


class NumaplaceBeside(Numaplace):
    """Beside the kernel's balancing, as most distributions have it."""

    def start(self):
        self.balancing(1)
        super().start()


class NumaplaceResidency(Numaplace):
    evidence = "residency"


class NumaplaceWrite(Numaplace):
    evidence = "write"


class NumaplaceIdle(Numaplace):
    """Looks at the programs and places none of them."""

    mode = "none"

    def note(self, result):
        return ""


class Waker(System):
    """A program that does nothing, ten times a second: what it costs that anything wakes up beside the workload."""

    def start(self):
        code = "import time; print(flush=True)\nwhile True: time.sleep(0.1)"
        self.process = subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE)
        self.stack.callback(self.stop)
        self.process.stdout.readline()

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=START_SEC)

    def daemon_cpu_sec(self):
        return cpu_sec(threads_of(self.process.pid))


class Hard(System):
    bind = "run"


class Pinned(System):
    bind = "lend"


SYSTEMS = {"none": System, "kernel": Kernel, "kernel-tuned": KernelTuned, "numad": Numad, "numaplace": Numaplace,
           "numaplace-beside": NumaplaceBeside, "numaplace-residency": NumaplaceResidency, "numaplace-write": NumaplaceWrite,
           "numaplace-idle": NumaplaceIdle, "waker": Waker, "hard": Hard, "pinned": Pinned}
