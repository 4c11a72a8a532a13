#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What others may do to the daemon, each while newcomers are placed: how long the longest of these waited for that, how late ticks
were, and what the daemon's memory did.

usage: hostility.py [--probes N] [CASE..]

A newcomer sleeps, and has its home when its mask is the home's. It is placed within PLACED_SEC of its birth, no tick is more than LATE_USEC
late by the daemon's own clock, and when all is known that was there, and after as many newcomers again, the daemon holds no more memory
than before, but for RSS_SLACK. In the end everybody
has the mask of before. Times are the guest's: its CPUs share one clock, so that two busy ones make each half as fast.

Each case prints a line of JSON, and a point of TAP.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import lib

PLACED_SEC, LATE_USEC, RSS_SLACK = 2.0, 500_000, 1 << 20
LIBC = ctypes.CDLL(None)
PAGE = mmap.PAGESIZE
NAMES = (b"\x1b[2J\x1b[31m", b"a\nb\tc\x7f\x01", b") R 1 1 1", b"\xff\xfe\xc0\x80", b"%s%n%s%n", b"\"'$(id)`", b" ")


class Case:
    """A hostility: begins in `with`, and ends there. `managed`: its processes are matched by the policy."""

    n_tasks = 0  # threads that the daemon must know before its memory is measured

    def __init__(self, directory: pathlib.Path, mark: str):
        self.directory, self.mark = directory, mark
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as undone:
            undone.push(self.stack)
            self.begin()
            undone.pop_all()
        return self

    def __exit__(self, *error):
        self.stack.close()

    def begin(self) -> None:
        """Before the daemon starts."""

    def with_daemon(self, runtime: pathlib.Path) -> None:
        """After it has started."""

    def run(self, argv: list, extra: dict | None = None, **popen) -> subprocess.Popen:
        env = {**os.environb, b"NUMAPLACE_TEST": self.mark.encode(), **(extra or {})}
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env, **popen)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def be(self, *args: str) -> None:
        """Starts this program as a managed process that does what the case says; returns when it does."""
        process = self.run([sys.executable, str(pathlib.Path(__file__).resolve()), "--be", type(self).__name__.lower(), *args],
                           stdout=subprocess.PIPE)
        assert process.stdout.read(1) == b"x"

    def fork(self, body, *args) -> int:
        """Starts a process that does something for ever."""
        pid = os.fork()
        if pid == 0:
            try:
                body(*args)
            finally:
                os._exit(1)
        self.stack.callback(os.waitpid, pid, 0)
        self.stack.callback(os.kill, pid, signal.SIGKILL)
        return pid


class Nothing(Case):
    """for comparison"""


class Threads(Case):
    """a process of 100,000 threads, managed"""

    N = n_tasks = 100_000

    def begin(self) -> None:
        for name, value in (("kernel/pid_max", 4 << 20), ("kernel/threads-max", 2 * self.N)):
            path = pathlib.Path("/proc/sys", name)
            self.stack.callback(path.write_text, path.read_text(encoding="ascii"), encoding="ascii")
            path.write_text(str(value), encoding="ascii")
        process = self.run([lib.SPINNER, "--asleep", f"--threads={self.N}"])
        while len(os.listdir(f"/proc/{process.pid}/task")) <= self.N:
            time.sleep(1)
            assert process.poll() is None


class Mappings(Case):
    """a process of 65,000 mappings with long names, managed"""

    def begin(self) -> None:
        name = self.directory / ("x" * 200)
        name.write_bytes(bytes(PAGE))
        self.be(str(name), "65000")

    @staticmethod
    def body(name: str, count: str) -> None:
        file = os.open(name, os.O_RDONLY)
        LIBC.mmap.restype = ctypes.c_void_p
        for _ in range(int(count)):
            LIBC.mmap(None, ctypes.c_size_t(PAGE), mmap.PROT_READ, mmap.MAP_PRIVATE, file, ctypes.c_long(0))


class Names(Case):
    """names, command lines and environments with control characters, and what looks like the rest of a line"""

    def begin(self) -> None:
        for name in NAMES:
            link = self.directory / os.fsdecode(name.replace(b"/", b"") + b"x")
            link.symlink_to(shutil.which("sleep"))
            self.run([name + b" --option", "1000"], executable=link, extra={b"NAME" + name: name})


class Masks(Case):
    """a managed process that changes its masks every millisecond"""

    def begin(self) -> None:
        self.be()

    @staticmethod
    def body() -> None:
        cpus = sorted(os.sched_getaffinity(0))
        os.write(1, b"x")
        while True:
            for cpu in cpus:
                os.sched_setaffinity(0, {cpu})
                time.sleep(0.001)
            os.sched_setaffinity(0, cpus)
            time.sleep(0.001)


class Cgroups(Case):
    """cgroups that come and go every ten milliseconds, with a managed process in each"""

    def begin(self) -> None:
        self.be()

    @staticmethod
    def body() -> None:
        home = pathlib.Path("/sys/fs/cgroup") / pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").partition("::")[2].strip()[1:]
        number = 0
        os.write(1, b"x")
        while True:
            group, number = pathlib.Path(f"/sys/fs/cgroup/np-hostile-{number % 7}"), number + 1
            group.mkdir(exist_ok=True)
            (group / "cgroup.procs").write_text("0", encoding="ascii")
            time.sleep(0.01)
            (home / "cgroup.procs").write_text("0", encoding="ascii")
            group.rmdir()


class Forks(Case):
    """twenty managed chains of processes that fork and end as fast as they can"""

    def begin(self) -> None:
        self.run([lib.FORKER, "--processes=20", f"--counter-file={self.directory / 'forks'}"])


class Flood(Case):
    """fifty clients that ask two thousand times a second, and listen"""

    def with_daemon(self, runtime: pathlib.Path) -> None:
        storm = self.run([os.environ["NUMAPLACE_BUS_STORM"], "50", "2000", "0", f"unix:path={runtime}/bus"], stdout=subprocess.PIPE)
        assert storm.stdout.readline().strip() == b"ready"


class Deaf(Case):
    """a hundred clients that ask as much as they can, and never read"""

    AUTH = b"\0AUTH EXTERNAL " + b"0".hex().encode() + b"\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"
    FIELDS = b"\1\1o\0\x0f\0\0\0/org/numaplace1\0\3\1s\0\x09\0\0\0GetStatus\0"

    def with_daemon(self, runtime: pathlib.Path) -> None:
        self.fork(self.ask, str(runtime / "bus"))

    def ask(self, path: str) -> None:
        call = b"l\1\0\1" + b"".join(number.to_bytes(4, "little") for number in (0, 7, len(self.FIELDS)))
        call += self.FIELDS + bytes(-len(self.FIELDS) % 8)
        clients: list[socket.socket] = []
        while True:
            while len(clients) < 100:
                client = socket.socket(socket.AF_UNIX)
                client.connect(path)
                client.sendall(self.AUTH)
                client.setblocking(False)
                clients.append(client)
            for client in clients:
                try:
                    client.send(call * 20)
                except BlockingIOError:
                    continue
                except OSError:
                    client.close()
            clients = [client for client in clients if client.fileno() >= 0]
            time.sleep(0.01)


class Hang(Case):
    """six processes whose command line and environment never come"""

    def begin(self) -> None:
        for _ in range(6):
            server = self.run([os.environ["NUMAPLACE_HANG"], "65534"], stdout=subprocess.PIPE)
            assert server.stdout.readline().startswith(b"ready ")


CASES = {one.__name__.lower(): one for one in (Nothing, Threads, Mappings, Names, Masks, Cgroups, Forks, Flood, Deaf, Hang)}


class Trial:
    """One case, and the daemon."""

    def __init__(self, name: str, directory: pathlib.Path, probes: int):
        self.directory, self.probes = directory, probes
        self.name, self.mark = name, f"hostile-{name}"
        self.everything = os.sched_getaffinity(0)
        self.newcomers: list[subprocess.Popen] = []
        self.lost: list[str] = []
        for made in ("policy.d", "case"):
            (directory / made).mkdir()
        (directory / "numaplaced.conf").touch()
        (directory / "policy.d" / "50-hostile.policy").write_text(
            f"[Match]\nEnvironment=NUMAPLACE_TEST={self.mark}\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=0\n",
            encoding="ascii")

    def start(self) -> subprocess.Popen:
        argv = [lib.DAEMON, f"--runtime-dir={self.directory / 'run'}", f"--config={self.directory / 'numaplaced.conf'}",
                f"--policy-dir={self.directory / 'policy.d'}", *(["--rehearse=2"] if lib.one_node() else [])]
        with open(self.directory / "log", "wb") as log:
            daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while daemon.poll() is None and b": ready (" not in (self.directory / "log").read_bytes():
            time.sleep(0.1)
        return daemon

    def status(self) -> dict:
        run = subprocess.run([lib.CTL, f"--socket={self.directory / 'run' / 'bus'}", "--json=short", "status"], capture_output=True,
                             check=True)
        return json.loads(run.stdout)

    def newcomer(self) -> float:
        process = subprocess.Popen([lib.SPINNER, "--asleep"], env=dict(os.environ, NUMAPLACE_TEST=self.mark))
        self.newcomers.append(process)
        begin = time.monotonic()
        while os.sched_getaffinity(process.pid) == self.everything and time.monotonic() < begin + 10 * PLACED_SEC:
            time.sleep(0.01)
        return time.monotonic() - begin

    def round(self, n_tasks: int) -> tuple[float, int]:
        """The longest wait of a newcomer, and the daemon's memory when it knows that many threads."""
        longest = 0.0
        for _ in range(self.probes):
            longest = max(longest, self.newcomer())
            time.sleep(0.3)
        # So that the second round starts from the same state as the first.
        for process in self.newcomers[:-1]:
            process.kill()
            process.wait()
        self.newcomers = self.newcomers[-1:]
        time.sleep(2)
        lib.wait_until("all threads to be known", lambda: self.status()["tasks"] > n_tasks)
        return longest, self.status()["rss_bytes"]

    def check(self, what: str, is_so: bool) -> None:
        if not is_so:
            self.lost.append(what)

    def run(self) -> dict:
        result: dict = {"trial": self.name}
        with CASES[self.name](self.directory / "case", self.mark) as case:
            daemon = self.start()
            try:
                case.with_daemon(self.directory / "run")
                for number in (1, 2):
                    result[f"placed_sec_{number}"], result[f"rss_bytes_{number}"] = self.round(case.n_tasks)
                status = self.status()
                result |= {"late_usec": status["tick_late_max_usec"], "turn_cpu_usec": status["tick_cpu_max_usec"]}
            finally:
                begin = time.monotonic()
                daemon.send_signal(signal.SIGTERM)
                result["status"] = daemon.wait()
                result["stop_sec"] = round(time.monotonic() - begin, 3)
            for process in self.newcomers:
                self.check(f"{process.pid} has its mask of before", os.sched_getaffinity(process.pid) == self.everything)
        for process in self.newcomers:
            process.kill()
            process.wait()
        log = (self.directory / "log").read_bytes()
        result["log_lines"] = log.count(b"\n")
        self.check(f"placed within {PLACED_SEC} s", max(result["placed_sec_1"], result["placed_sec_2"]) <= PLACED_SEC)
        self.check(f"no tick later than {LATE_USEC} us", result["late_usec"] <= LATE_USEC)
        self.check("its memory is flat", result["rss_bytes_2"] <= result["rss_bytes_1"] + RSS_SLACK)
        self.check("status 0", result["status"] == 0)
        self.check("no control characters in its log", not any(c < 32 and c not in b"\n\t" for c in log))
        return {**result, "lost": self.lost, **({"log": log[-2000:].decode(errors="replace")} if self.lost else {})}


def be(name: str, *args: str) -> None:
    """A hostile process, with the mark in its environment; says when it has begun to be one."""
    CASES[name].body(*args)
    os.write(1, b"x")
    while True:
        signal.pause()


def main() -> int:
    if sys.argv[1:2] == ["--be"]:
        be(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []], help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--probes", type=int, default=10, metavar="N", help="newcomers in each of two rounds (default: 10)")
    args = parser.parse_args()
    lib.need_placing()
    names = args.cases or list(CASES)
    print(f"1..{len(names)}", flush=True)
    n_lost = 0
    for number, name in enumerate(names, 1):
        with tempfile.TemporaryDirectory(prefix="np-hostile-") as directory:
            os.chmod(directory, 0o755)
            result = Trial(name, pathlib.Path(directory), args.probes).run()
        n_lost += bool(result["lost"])
        print(json.dumps(result), flush=True)
        print(f"{'not ok' if result['lost'] else 'ok'} {number} - {CASES[name].__doc__}", flush=True)
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())
