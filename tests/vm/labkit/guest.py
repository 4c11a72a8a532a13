# SPDX-License-Identifier: LGPL-2.1-or-later
"""One guest, from power-on to power-off or to its time limit. It never outlives the program that started it."""

import os
import pathlib
import shutil
import subprocess
import time
from dataclasses import dataclass, field

from . import LabError, Unavailable, emulator, machine, tap
from .image import Image

QEMU = "qemu-system-x86_64"
# rep movsb goes byte by byte under TCG (erms, fsrm); five-level page tables and SMAP cost time and show nothing here. The
# kernel believes the threads of a core, and several caches in a socket, of Intel's CPUs only.
CPU = "max,vendor=GenuineIntel,-erms,-fsrm,-la57,-smap"
# A CPU that spins in the kernel ends the boot with a panic, which says where; the job turns that off (guest/run.sh), since a CPU of
# a starved host seems to do the same.
KERNEL_ARGS = ("console=ttyS0 quiet panic=-1 oops=panic sysctl.kernel.panic_on_rcu_stall=1 psi=1 schedstats=enable "
               "mitigations=off tsc=reliable clocksource=tsc no_timer_check nowatchdog nokaslr random.trust_cpu=on "
               "systemd.show_status=0 systemd.getty_auto=no")
MULTI = ("-accel", "tcg,thread=multi")
# The guest's clock counts instructions, one a nanosecond, and passes over the time in which there are none. CPUs take turns and
# share that clock, so that each of N busy ones has an N-th of it; what else the host does takes none of it.
COUNTED = ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off")
POLL_SEC = 0.2
# A job that floods the host ends before the host's disk is full.
SAID_BYTES_MAX = 64 << 20
# A panic is followed by the registers and the calls that led to it.
TAIL_LINES = 60
RETRY_TAIL_LINES = 25


@dataclass
class Ended:
    """How a guest went. `reason` says why it was killed, or that it went without powering off; empty when all was well."""

    output: tap.Output
    console: pathlib.Path
    seconds: float
    reason: str = ""
    boot_seconds: float | None = None

    def console_tail(self) -> list[str]:
        return tail(self.console)


@dataclass
class Guest:
    image: Image
    machine: machine.Machine
    disk: pathlib.Path
    logs: pathlib.Path
    kernel_args: str = ""
    plugin: str = ""
    limit_sec: int = 120
    boot_limit_sec: int = 150
    boots: int = 1
    counted: bool = False
    on_line: object = None
    rest: str = field(default="", init=False)

    # Without MSI-X (vectors=0): QEMU 7.2 aborts in some boots while the kernel masks its table (msix_table_mmio_write).
    def argv(self, interactive: bool = False) -> list[str]:
        args = [*(emulator.ensure() if self.counted else [QEMU]), "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35",
                *(COUNTED if self.counted else MULTI), "-cpu", CPU, *machine.qemu_arguments(self.machine),
                "-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd),
                "-append", f"{KERNEL_ARGS} {self.kernel_args}".strip(),
                "-drive", f"file={self.image.root},format=raw,if=none,id=root,snapshot=on,cache=unsafe",
                "-device", "virtio-blk-pci,drive=root,vectors=0",
                "-drive", f"file={self.disk},format=raw,if=none,id=lab,readonly=on",
                "-device", "virtio-blk-pci,drive=lab,vectors=0", "-device", "virtio-serial-pci,vectors=0",
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

    def run(self) -> Ended:
        """Runs the guest and waits for its end."""
        self.rest = ""
        for name in ("output", "console"):
            (self.logs / name).write_bytes(b"")
        start = time.monotonic()
        with open(self.logs / "qemu", "wb") as log:
            # The parent's death is the guest's: a killed test must not leave a guest behind.
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *self.argv()], stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        try:
            return self.watch(process, start)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def watch(self, process: subprocess.Popen, start: float) -> Ended:
        ended = Ended(tap.Output(self.boots), self.logs / "console", 0)
        with open(self.logs / "output", encoding="utf-8", errors="replace", newline="\n") as output:
            while True:
                over = process.poll() is not None
                ended.seconds = time.monotonic() - start
                self.take_lines(output, ended, over)
                ended.reason = self.judge(process.returncode) if over else self.limit_reached(process, ended)
                if over or ended.reason:
                    return ended
                time.sleep(POLL_SEC)

    def take_lines(self, output, ended: Ended, over: bool) -> None:
        """Takes what has come since. A line is judged when it is whole, or will never be."""
        lines = (self.rest + output.read()).split("\n")
        self.rest = lines.pop()
        if over and self.rest:
            lines.append(self.rest)
        for line in lines:
            ended.output.feed(line.rstrip())
            if ended.output.begun and ended.boot_seconds is None:
                ended.boot_seconds = ended.seconds
            if self.on_line:
                self.on_line(printable(line.rstrip()))

    def limit_reached(self, process: subprocess.Popen, ended: Ended) -> str:
        if any((self.logs / name).stat().st_size > SAID_BYTES_MAX for name in ("output", "console")):
            return f"more than {SAID_BYTES_MAX >> 20} MB of output: killed"
        if not ended.output.begun:
            return self.not_booted(process.pid) if ended.seconds > self.boot_limit_sec else ""
        if ended.seconds - ended.boot_seconds > self.limit_sec:
            return f"still running {self.limit_sec} s after the job began: killed"
        return ""

    def not_booted(self, pid: int) -> str:
        """With the CPU time it had, which tells a guest that hangs from one that was starved."""
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        cpu_sec = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return f"not booted after {self.boot_limit_sec} s, {cpu_sec:.0f} s of them running: killed"

    def judge(self, status: int) -> str:
        if status:
            said = (self.logs / "qemu").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            return "\n".join([f"QEMU ended with status {status}", *said])
        # The kernel's last words when it was asked to power off; a panic reboots, which ends QEMU just as well.
        if "reboot: Power down" not in (self.logs / "console").read_text(encoding="utf-8", errors="replace"):
            return "the guest went without powering off"
        return ""


def tail(path: pathlib.Path, count: int = TAIL_LINES) -> list[str]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [printable(line.rstrip()) for line in lines if line.strip()][-count:]


def printable(line: str) -> str:
    """What a guest says reaches a terminal without control characters."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in line)


def version() -> tuple[int, int]:
    """QEMU's version; raises Unavailable when it is not there."""
    for name in (QEMU, "setpriv"):
        if not shutil.which(name):
            raise Unavailable(f"{name} is not installed (./dev setup)")
    text = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout
    words = text.split()
    try:
        major, minor = words[words.index("version") + 1].split(".")[:2]
        return int(major), int(minor)
    except (ValueError, IndexError):
        raise LabError(f"{QEMU} --version says: {text.strip()}") from None
