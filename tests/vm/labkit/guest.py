# SPDX-License-Identifier: LGPL-2.1-or-later
"""One guest, from power-on to power-off or to its time limit. It never outlives the program that started it."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field

from . import LabError, Unavailable, emulator, machine, tap
from .image import Image

# rep movsb is executed byte by byte under TCG (erms, fsrm); five-level page tables and SMAP cost time and are of no
# use here. The kernel believes in threads of a core, and several caches in a socket, only on Intel's CPUs.
CPU = "max,vendor=GenuineIntel,-erms,-fsrm,-la57,-smap,level=0x1e"
# A CPU that spins in the kernel ends the boot with a panic, which says where. The job turns that off (guest/run.sh),
# since a CPU of a starved host looks the same.
KERNEL_ARGS = ("console=ttyS0 quiet panic=-1 oops=panic sysctl.kernel.panic_on_rcu_stall=1 psi=1 schedstats=enable "
               "mitigations=off tsc=reliable clocksource=tsc no_timer_check nowatchdog nokaslr random.trust_cpu=on "
               "systemd.show_status=0 systemd.getty_auto=no swiotlb=noforce")
# The guest waits until its output is read, so that timing does not depend on when the host reads it.
AT_ONCE = "vectors=0,ioeventfd=off"
# Nanoseconds of an instruction where CPUs take turns: together they have the speed of one CPU of 500 MHz, and a
# second of busy CPUs takes some three of a host's CPU. With eight CPUs, daemons sample processes so slowly that they
# give up where they would not on a machine.
TURNS = ("-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off")
# Where the plugin keeps the time (cost/README.md). Nothing in the guest may depend on the host's clock.
PARALLEL = ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm")
# Idle CPUs halt: a CPU that waits by MWAIT would be busy.
PARALLEL_CPU, PARALLEL_KERNEL_ARGS = ",-monitor", "idle=halt"
# By the host's clock: a shell.
MULTI = ("-accel", "tcg,thread=multi")
POLL_SEC = 0.2
# A guest that stands still is given up, and so is one whose job does not end. Jobs have a limit by the guest's clock
# (guest/run.sh), which only a broken guest does not enforce. Both are seconds of CPU time used by QEMU, so that other
# load on the host does not count, and far more than a second of the guest takes on any host.
GUEST_CPU_SEC = 4
# For each CPU of a guest whose CPUs run in parallel.
PARALLEL_CPU_SEC = 6
# Without any CPU time for that long, it waits for something that never comes.
STANDSTILL_SEC = 600

# Set when the lab must end: guests watched by threads end at once.
stop = threading.Event()
# A job that floods the host is ended before the host's disk is full.
SAID_BYTES_MAX = 64 << 20
# A panic is followed by the registers and the call trace.
TAIL_LINES = 60
RETRY_TAIL_LINES = 25


@dataclass
class Ended:
    """How a guest ended. `reason` says why it was killed, or that it ended without powering off; empty when all was
    well. `lines`, `job_seconds`: for each job, its output and its duration by the host's clock."""

    series: tap.Series
    console: pathlib.Path
    seconds: float
    reason: str = ""
    boot_seconds: float | None = None
    lines: list[list[str]] = field(default_factory=list)
    job_seconds: list[float] = field(default_factory=list)

    def console_tail(self) -> list[str]:
        return tail(self.console)


@dataclass
class Guest:
    """`limits_sec`: of each job. `seed`: for the guest's randomness. `plugin`: QEMU's option for the plugin that
    keeps the time of CPUs that run in parallel; without it they take turns, or with `by_host` use the host's clock."""

    image: Image
    machine: machine.Machine
    disk: pathlib.Path
    logs: pathlib.Path
    kernel_args: str = ""
    plugin: str = ""
    limits_sec: list[int] = field(default_factory=lambda: [120])
    boot_limit_sec: int = 150
    boots: int = 1
    by_host: bool = False
    seed: int = 1
    on_line: object = None
    rest: str = field(default="", init=False)

    # Without MSI-X (vectors=0): QEMU 7.2 aborted in some boots while the kernel masks its table (msix_table_mmio_write).
    def argv(self, interactive: bool = False) -> list[str]:
        args = [*emulator.ensure(), "-nodefaults", "-no-user-config", "-display", "none", "-seed", str(self.seed), "-machine", "q35,nvdimm=on",
                *self.clock(), "-cpu", CPU + (PARALLEL_CPU if self.plugin else ""), *machine.qemu_arguments(self.machine), *self.disks(),
                "-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd),
                "-append", " ".join([KERNEL_ARGS, *([PARALLEL_KERNEL_ARGS] if self.plugin else []), self.kernel_args]).strip(),
                "-device", f"virtio-serial-pci,{AT_ONCE}",
                "-chardev", f"file,id=out,path={self.logs / 'output'}", "-device", "virtserialport,chardev=out,name=lab"]
        if self.boots == 1:
            args.append("-no-reboot")
        if interactive:
            args += ["-chardev", "stdio,id=tty,signal=off", "-serial", "chardev:tty"]
        else:
            args += ["-serial", f"file:{self.logs / 'console'}"]
        if self.plugin:
            args += ["-plugin", self.plugin]
        return args

    def disks(self) -> list[str]:
        """The root file system, which loses what is written, and /lab. Both are memory, so that reading takes time of
        the reading CPU, and none of the host's."""
        sizes_mb = [-(-path.stat().st_size >> 20) for path in (self.image.root, self.disk)]
        args = ["-m", f"slots=2,maxmem={sum(self.machine.memory_mb) + sum(sizes_mb)}M"]
        for name, path, size_mb in zip(("root", "lab"), (self.image.root, self.disk), sizes_mb):
            args += ["-object", f"memory-backend-file,id={name},mem-path={path},size={size_mb}M,share=off,prealloc=off",
                     "-device", f"nvdimm,id=nv-{name},memdev={name}"]
        return args

    def clock(self) -> tuple[str, ...]:
        if self.plugin:
            return PARALLEL
        return MULTI if self.by_host else TURNS

    def cpu_sec(self) -> int:
        """What QEMU may take for a second of the guest."""
        return PARALLEL_CPU_SEC * sum(self.machine.cpus) if self.plugin else GUEST_CPU_SEC

    def run(self) -> Ended:
        """Runs the guest and waits for its end."""
        self.rest = ""
        for name in ("output", "console"):
            (self.logs / name).write_bytes(b"")
        start = time.monotonic()
        with open(self.logs / "qemu", "wb") as log:
            # The guest dies with its parent: a killed test must not leave a guest behind.
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *self.argv()], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        try:
            return self.watch(process, start)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def watch(self, process: subprocess.Popen, start: float) -> Ended:
        count = len(self.limits_sec)
        ended = Ended(tap.Series(count, self.boots), self.logs / "console", 0, lines=[[] for _ in range(count)])
        spent = Spent(process.pid)
        with open(self.logs / "output", encoding="utf-8", errors="replace", newline="\n") as output:
            while True:
                over = process.poll() is not None
                ended.seconds = time.monotonic() - start
                self.take_lines(output, ended, spent, over)
                ended.reason = self.judge(process.returncode) if over else self.limit_reached(ended, spent)
                if over or ended.reason:
                    return ended
                if stop.wait(POLL_SEC):
                    raise LabError("interrupted")

    def take_lines(self, output, ended: Ended, spent: "Spent", over: bool) -> None:
        """Reads new output. A line is judged when it is complete, or never will be."""
        lines = (self.rest + output.read()).split("\n")
        self.rest = lines.pop()
        if over and self.rest:
            lines.append(self.rest)
        for line in lines:
            begun = ended.series.begun
            number = ended.series.feed(line.rstrip())
            if ended.series.begun > begun:
                ended.job_seconds.append(0)
                spent.begin()
            if ended.series.begun and ended.boot_seconds is None:
                ended.boot_seconds = ended.seconds
            if number is not None:
                ended.lines[number].append(line.rstrip())
            if self.on_line:
                self.on_line(printable(line.rstrip()))
        if ended.job_seconds:
            ended.job_seconds[-1] = ended.seconds - ended.boot_seconds - sum(ended.job_seconds[:-1])

    def limit_reached(self, ended: Ended, spent: "Spent") -> str:
        if any((self.logs / name).stat().st_size > SAID_BYTES_MAX for name in ("output", "console")):
            return f"more than {SAID_BYTES_MAX >> 20} MB of output: killed"
        if spent.stands_still():
            return f"no CPU time for {STANDSTILL_SEC} s: killed"
        seconds = spent.seconds()
        if not ended.series.begun:
            return f"not booted after {self.boot_limit_sec} s of CPU time: killed" if seconds > self.boot_limit_sec else ""
        limit = self.limits_sec[ended.series.begun - 1] * self.cpu_sec()
        return f"still running {limit} s of CPU time after the job began: killed" if seconds > limit else ""

    def judge(self, status: int) -> str:
        if status:
            said = (self.logs / "qemu").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            return "\n".join([f"QEMU ended with status {status}", *said])
        # The kernel's last message when it was asked to power off; a panic reboots, which also ends QEMU.
        if "reboot: Power down" not in (self.logs / "console").read_text(encoding="utf-8", errors="replace"):
            return "the guest went without powering off"
        return ""


class Spent:
    """The CPU time that a guest has used since it was started, or since its latest job began."""

    def __init__(self, pid: int):
        self.stat = pathlib.Path(f"/proc/{pid}/stat")
        self.cpu_sec = self.base = 0.0
        self.changed = time.monotonic()
        self.base = self.now()

    def now(self) -> float:
        """Falls back to the last known value: QEMU may have ended."""
        with contextlib.suppress(OSError):
            fields = self.stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            cpu_sec = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            if cpu_sec > self.cpu_sec:
                self.cpu_sec, self.changed = cpu_sec, time.monotonic()
        return self.cpu_sec

    def begin(self) -> None:
        self.base = self.now()

    def seconds(self) -> float:
        return self.now() - self.base

    def stands_still(self) -> bool:
        self.now()
        return time.monotonic() - self.changed > STANDSTILL_SEC


def tail(path: pathlib.Path, count: int = TAIL_LINES) -> list[str]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [printable(line.rstrip()) for line in lines if line.strip()][-count:]


def printable(line: str) -> str:
    """Output of a guest reaches a terminal without control characters."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in line)


def version() -> tuple[int, int]:
    """The emulator's version; raises Unavailable when there is none."""
    if not shutil.which("setpriv"):
        raise Unavailable("setpriv is not installed (./dev setup)")
    text = subprocess.run([*emulator.ensure(), "--version"], capture_output=True, text=True, check=False).stdout
    words = text.split()
    try:
        major, minor = words[words.index("version") + 1].split(".")[:2]
        return int(major), int(minor)
    except (ValueError, IndexError):
        raise LabError(f"the emulator's --version says: {text.strip()}") from None
