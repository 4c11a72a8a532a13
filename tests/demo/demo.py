#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The main job on this machine, shown and measured: steal, recall, restore.

Two workloads of this program's own, each with a home on half of the CPUs (real nodes when there are several, else a
rehearsal of two). A has as many busy threads as the machine has CPUs, B as many as its half.

  1. A alone, stealing held back and let go in turns: what stealing is worth (steal_ratio), paired in one run.
  2. B alone and B waking up on CPUs that are lent to A, in turns: what B loses (owner_ratio), and how many ticks its
     CPUs take to come back (recall_ticks_max).
  3. The daemon stops: every thread must have the mask it had before (restored).

Only processes started here are managed: the policies match a variable in their environment. Ctrl-C restores too.

What is lent is an idle CPU. Where others use them all, 1 and 2 cannot be shown, and a last line says so and who that is.

Exit status: 0 all was shown, 1 something went wrong or was not restored, 2 bad arguments, 77 not all of it can be shown on this
machine now (one CPU, or none was idle), 130 interrupted.

With --act=cpuset each workload runs in a cgroup of its own, where the cpuset controller is on version 1. Its cpuset must be the
home before anybody is busy, and what it was at the end.
"""

import argparse
import contextlib
import ctypes
import json
import math
import mmap
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

PAIRS = 3
PHASE_SEC = 2.0
SETTLE_SEC = 0.6  # after a switch, before counting: six ticks
FAST_TICK_SEC = 0.1
HANG_SEC = 60  # only a hang takes longer, also beside builds on two CPUs

NOT_HERE = 77  # exit status

PR_SET_PDEATHSIG = 1


class DemoError(Exception):
    """An error that ends the demonstration with one line."""

    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.status = status


def die_with_parent() -> None:
    """In a child: end when this program dies without cleaning up. The daemon then restores what it changed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def parse_list(text: str) -> list[int]:
    """A kernel list such as 0-3,8."""
    out = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        out.extend(range(int(first), int(last or first) + 1))
    return out


def allowed(pid: int) -> dict[int, str]:
    """Cpus_allowed_list of every thread of a process."""
    out = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Cpus_allowed_list:"):
                out[int(task.name)] = line.split(":", 1)[1].strip()
    return out


class Others:
    """CPU use of processes that do not belong to this program."""

    def __init__(self, demo: "Demo"):
        self.demo = demo
        self.since = time.monotonic()
        self.before, self.own, self.all = self.ticks()

    def ticks(self) -> tuple[dict[str, int], int, int]:
        """CPU time so far of each foreign process, of this program with its children, and of the machine."""
        ours = {os.getpid(), *(child.pid for child in self.demo.children)}
        others, own = {}, 0
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                head, _, tail = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
                pid, _, name = head.partition(" (")
                fields = tail.split()
                ticks = int(fields[11]) + int(fields[12])
                # sudo's child is the daemon.
                if {int(pid), int(fields[1])} & ours:
                    own += ticks
                else:
                    others[f"{name}[{pid}]"] = ticks
        with open("/proc/stat", encoding="ascii") as file:
            busy = [int(ticks) for ticks in file.readline().split()[1:9]]
        return others, own, sum(busy) - busy[3] - busy[4]

    def used(self) -> tuple[float, str]:
        """CPUs that others have used since the beginning, and the names of the main users that still exist."""
        scale = os.sysconf("SC_CLK_TCK") * (time.monotonic() - self.since)
        others, own, busy = self.ticks()
        by_name: dict[str, list[tuple[float, str]]] = {}
        for process, ticks in others.items():
            used = (ticks - self.before.get(process, 0)) / scale
            if used > 0:
                by_name.setdefault(process.rpartition("[")[0], []).append((used, process))
        most = sorted(((sum(used for used, _ in found), f"{len(found)} x {name}" if len(found) > 1 else found[0][1])
                       for name, found in by_name.items()), reverse=True)
        cpus = max(0.0, (busy - self.all - (own - self.own)) / scale)
        return cpus, ", ".join(f"{whose} {used:.1f}" for used, whose in most[:3] if used >= 0.05)


class Cpuset:
    """A cgroup of version 1 beside this program's own, with the same CPUs."""

    CONTROLLER = pathlib.Path("/sys/fs/cgroup/cpuset")

    def __init__(self, name: str):
        try:
            own = pathlib.Path("/proc/self/cpuset").read_text(encoding="ascii").strip().strip("/")
            self.parent = self.CONTROLLER / own
            self.path = self.parent / name
            self.path.mkdir()
            for file in ("cpuset.mems", "cpuset.cpus"):
                (self.path / file).write_text((self.parent / file).read_text(encoding="ascii"), encoding="ascii")
        except OSError as error:
            raise DemoError(f"--act=cpuset needs the cpuset controller of cgroup v1: {error}") from error
        self.before = self.cpus()

    def cpus(self) -> str:
        return (self.path / "cpuset.cpus").read_text(encoding="ascii").strip()

    def enter(self) -> None:
        (self.path / "cgroup.procs").write_text("0", encoding="ascii")

    def remove(self) -> None:
        """Removes it when everything in it has ended, which takes the kernel a moment longer than wait(2)."""
        for _ in range(200):
            try:
                return self.path.rmdir()
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.01)
        raise DemoError(f"{self.path} cannot be removed")


class Workload:
    """Threads that count their work; a signal wakes them or puts them to sleep."""

    def __init__(self, demo: "Demo", letter: str, n_threads: int):
        self.name = f"demo-{letter}"
        self.n_threads = n_threads
        self.awake = False
        self.counters = demo.directory / f"{self.name}.counters"
        env = dict(os.environ, NUMAPLACE_DEMO=f"{demo.tag}-{letter}")
        self.cpuset = demo.cpuset(f"numaplace-demo-{demo.tag}-{letter}")
        self.process = demo.spawn(
            [demo.program("tests/workloads/spinner"), "--threads", str(n_threads), "--name", self.name,
             "--counter-file", str(self.counters), "--asleep"],
            preexec_fn=self.cpuset.enter if self.cpuset else None, env=env)
        deadline = time.monotonic() + HANG_SEC
        while not (self.counters.exists() and self.counters.stat().st_size >= 8 * n_threads
                   and len(os.listdir(f"/proc/{self.process.pid}/task")) > n_threads):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"{self.name} did not start")
            time.sleep(0.01)
        with open(self.counters, "rb") as f:
            self.map = mmap.mmap(f.fileno(), 8 * n_threads, prot=mmap.PROT_READ)
        self.before = allowed(self.process.pid)

    def count(self) -> int:
        return sum(struct.unpack_from(f"={self.n_threads}Q", self.map))

    def wake(self, awake: bool) -> None:
        if awake != self.awake:
            self.process.send_signal(signal.SIGUSR1)
            self.awake = awake

    def rate(self, seconds: float) -> float:
        """Work per second over the next `seconds`."""
        start, count = time.monotonic(), self.count()
        time.sleep(seconds)
        return (self.count() - count) / (time.monotonic() - start)


class Demo:
    def __init__(self, build: pathlib.Path, quiet: bool, act: str = "auto", pairs: int = PAIRS):
        self.build = build
        self.act = act
        self.pairs = pairs
        self.cpusets: list[Cpuset] = []
        self.quiet = quiet
        self.tag = f"{os.getpid()}"
        self.children: list[subprocess.Popen] = []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="numaplace-demo-"))
        self.moves: list[dict] = []
        self.started = time.monotonic()
        self.daemon = None
        self.follower = None
        self.daemon_cpu_sec = 0.0
        self.daemon_wall_sec = 0.0

    def program(self, path: str) -> str:
        return str(self.build / path)

    def cpuset(self, name: str) -> Cpuset | None:
        if self.act != "cpuset":
            return None
        self.cpusets.append(Cpuset(name))
        return self.cpusets[-1]

    def spawn(self, argv: list[str], preexec_fn=None, **kwargs) -> subprocess.Popen:
        def prepare():
            die_with_parent()
            if preexec_fn:
                preexec_fn()

        # A new session: Ctrl-C reaches only this program, which then ends the others in order.
        child = subprocess.Popen(argv, preexec_fn=prepare, start_new_session=True, **kwargs)
        self.children.append(child)
        return child

    def say(self, text: str) -> None:
        if not self.quiet:
            print(f"{time.monotonic() - self.started:6.2f} s  {text}", flush=True)

    def ctl(self, *args: str) -> str:
        try:
            return subprocess.run(
                [self.program("src/ctl/numaplacectl"), f"--socket={self.directory / 'bus'}", *args],
                check=True, stdout=subprocess.PIPE, text=True, timeout=HANG_SEC).stdout
        except subprocess.SubprocessError as error:
            raise DemoError(f"numaplacectl {' '.join(args)}: {error}") from error

    # Setting up

    def halves(self) -> tuple[list[str], str, str, int, int]:
        """Options for the daemon, the node lists of A and B, and the CPUs in each half."""
        online = sorted(os.sched_getaffinity(0))
        if len(online) < 2:
            raise DemoError("needs two CPUs, one of which is lent, and this program may use one", NOT_HERE)
        nodes = []
        for node in parse_list(pathlib.Path("/sys/devices/system/node/online").read_text(encoding="ascii")
                               if pathlib.Path("/sys/devices/system/node/online").exists() else "0"):
            path = pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist")
            cpus = set(parse_list(path.read_text(encoding="ascii"))) if path.exists() else set(online)
            if cpus & set(online):
                nodes.append((node, len(cpus & set(online))))
        if len(nodes) < 2:
            half = len(online) // 2
            # An emulated topology gives an odd CPU to the first nodes.
            return ["--rehearse=2"], "0", "1", len(online) - half, half
        middle = len(nodes) // 2
        first, second = nodes[:middle], nodes[middle:]
        return ([], ",".join(str(n) for n, _ in first), ",".join(str(n) for n, _ in second),
                sum(c for _, c in first), sum(c for _, c in second))

    def write_policies(self, nodes_a: str, nodes_b: str, n_nodes: int) -> pathlib.Path:
        directory = self.directory / "policy.d"
        directory.mkdir()
        for letter, nodes in (("a", nodes_a), ("b", nodes_b)):
            (directory / f"10-demo-{letter}.policy").write_text(
                f"[Match]\nEnvironment=NUMAPLACE_DEMO={self.tag}-{letter}\n\n"
                f"[Workload]\nDescription=Demonstration workload {letter.upper()}\nMinAgeSec=0\n"
                f"Act={self.act}\n\n"
                f"[Placement]\nMode=fixed\nNodes={nodes}\n\n"
                # The machine may have more nodes than stealing allows by default, but this is about stealing.
                f"[Steal]\nSteal=yes\nNodeLimit={max(2, n_nodes)}\nMaxDistance=254\nLeaseSec=60s\n",
                encoding="ascii")
        return directory

    def start_daemon(self, options: list[str], policies: pathlib.Path) -> None:
        config = self.directory / "numaplaced.conf"
        config.write_text(f"[Daemon]\nFastTickSec={int(FAST_TICK_SEC * 1000)}ms\n", encoding="ascii")
        argv = [self.program("src/daemon/numaplaced"), f"--runtime-dir={self.directory}", f"--config={config}",
                f"--policy-dir={policies}", *options]
        if os.geteuid() != 0:
            if not shutil.which("sudo"):
                raise DemoError("placing needs root: run as root, or install sudo")
            argv = ["sudo", "--", *argv]
        self.log = open(self.directory / "log", "w+b")
        self.daemon_started = time.monotonic()
        self.daemon = self.spawn(argv, stderr=self.log, stdout=self.log)
        deadline = time.monotonic() + HANG_SEC
        while not (self.directory / "bus").exists():
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise DemoError("numaplaced did not start: " + self.log.read().decode(errors="replace").strip())
            time.sleep(0.02)
        self.follower = self.spawn(  # shows actions with their reasons as they happen
            [self.program("src/ctl/numaplacectl"), f"--socket={self.directory / 'bus'}", "--json=short", "moves", "-f"],
            stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self) -> None:
        for line in self.follower.stdout:
            move = json.loads(line)
            self.moves.append(move)
            what = {"set-home": "home  ", "lend": "lend  ", "recall": "recall", "release": "free  "}.get(
                move["kind"], move["kind"])
            where = f" CPU {move['cpu']}" if move.get("cpu", -1) >= 0 else f" CPUs {move['to']}"
            who = f"{move['workload']} {move['pid']}" + (f"/{move['tid']}" if move.get("tid") else "")
            why = f" ({move['value']} against {move['limit']})" if move["limit"] else ""
            self.say(f"  {what} {who}{where}: {move['text']}{why}")

    def wait_moves(self, action: str, workload: str, n: int, since: float, seconds: float) -> list[dict]:
        """Waits until n moves of this kind have happened since the instant. Returns the number in the end."""
        deadline = time.monotonic() + seconds
        while True:
            found = [m for m in list(self.moves) if m["kind"] == action and m["workload"] == workload
                     and m["time_usec"] >= since * 1e6 and m["outcome"] == "done"]
            if len(found) >= n or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def stop_daemon(self) -> None:
        if not self.daemon or self.daemon.poll() is not None:
            return
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = self.daemon.pid
            if os.geteuid() != 0:
                pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
            nsec = sum(int(p.read_text(encoding="ascii").split()[0])
                       for p in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))
            self.daemon_cpu_sec = nsec / 1e9
            self.daemon_wall_sec = time.monotonic() - self.daemon_started
        if self.follower:
            self.follower.terminate()
            self.follower.wait()
        self.daemon.terminate()
        try:
            self.daemon.wait(timeout=HANG_SEC)
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"numaplaced did not stop within {HANG_SEC} s") from error

    def close(self) -> None:
        """Ends everything that was started, first the daemon, so that it can restore."""
        with contextlib.suppress(DemoError):
            self.stop_daemon()
        for child in reversed(self.children):
            if child.poll() is None:
                child.kill()
            child.wait()
        for cpuset in self.cpusets:
            cpuset.remove()
        shutil.rmtree(self.directory, ignore_errors=True)

    # The three parts

    def steal_ratio(self, a: Workload, idle: int) -> float | None:
        """Returns None when no CPU was lent."""
        ratios = []
        a.wake(True)
        for _ in range(self.pairs):
            self.ctl("pause", self.workload_name("a"))
            time.sleep(SETTLE_SEC)
            without = a.rate(PHASE_SEC)
            since = time.monotonic()
            self.ctl("resume", self.workload_name("a"))
            if not self.wait_moves("lend", self.workload_name("a"), idle, since, 3.0):
                self.say(f"A: {without:.3g} work/s at home, and no CPU was lent in 3 s")
                continue
            time.sleep(SETTLE_SEC)
            stealing = a.rate(PHASE_SEC)
            ratios.append(stealing / without)
            self.say(f"A: {without:.3g} work/s at home, {stealing:.3g} with lent CPUs: x{ratios[-1]:.2f}")
        return statistics.median(ratios) if ratios else None

    def owner(self, a: Workload, b: Workload, idle: int) -> tuple[float, int, float, float] | None:
        """Returns None when no CPU was lent."""
        ratios, ticks, alone_all, shared_all = [], [], [], []
        for _ in range(self.pairs):
            a.wake(False)
            time.sleep(SETTLE_SEC)
            b.wake(True)
            alone = b.rate(PHASE_SEC)
            b.wake(False)
            time.sleep(SETTLE_SEC)
            since = time.monotonic()
            a.wake(True)
            lent = self.wait_moves("lend", self.workload_name("a"), idle, since, 4.0)
            if len(lent) < idle:
                self.say(f"A was lent {len(lent)} of {idle} CPUs in 4 s")
            if not lent:
                continue
            woken = time.monotonic()
            b.wake(True)
            shared = b.rate(PHASE_SEC)
            recalled = self.wait_moves("recall", self.workload_name("a"), len(lent), woken, 0.5)
            b.wake(False)
            ratios.append(shared / alone)
            alone_all.append(alone)
            shared_all.append(shared)
            if len(recalled) < len(lent):
                # Never taken back: counts as the number of ticks waited.
                ticks.append(math.ceil((PHASE_SEC + 0.5) / FAST_TICK_SEC))
            else:
                ticks.append(max(math.ceil((m["time_usec"] / 1e6 - woken) / FAST_TICK_SEC) for m in recalled))
            self.say(f"B: {alone:.3g} work/s alone, {shared:.3g} waking up on lent CPUs: x{ratios[-1]:.2f}, "
                     f"recalled within {ticks[-1]} ticks")
        if not ticks:
            return None
        return statistics.median(ratios), max(ticks), statistics.median(alone_all), statistics.median(shared_all)

    def wait_fences(self, workloads: list[Workload]) -> None:
        """Waits until each cpuset is a home, if cpusets are used."""
        deadline = time.monotonic() + HANG_SEC
        for workload in workloads:
            while workload.cpuset and workload.cpuset.cpus() == workload.cpuset.before:
                if time.monotonic() > deadline:
                    raise DemoError(f"the cpuset of {workload.name} did not become its home")
                time.sleep(0.02)
            if workload.cpuset:
                self.say(f"the cpuset of {workload.name} is its home, CPUs {workload.cpuset.cpus()}")

    def restored(self, workloads: list[Workload]) -> bool:
        ok = True
        for cpuset in self.cpusets:
            if cpuset.cpus() != cpuset.before:
                self.say(f"{cpuset.path} had CPUs {cpuset.before}, now {cpuset.cpus()}")
                ok = False
        for workload in workloads:
            now = allowed(workload.process.pid)
            for tid, mask in workload.before.items():
                if now.get(tid) != mask:
                    self.say(f"{workload.name}: thread {tid} had CPUs {mask}, now {now.get(tid)}")
                    ok = False
        return ok

    def workload_name(self, letter: str) -> str:
        return f"10-demo-{letter}"

    def run(self) -> dict:
        options, nodes_a, nodes_b, cpus_a, cpus_b = self.halves()
        n_nodes = len(parse_list(nodes_a)) + len(parse_list(nodes_b))
        kind = "a rehearsal of 2 nodes" if options else f"{n_nodes} nodes"
        self.say(f"{cpus_a + cpus_b} CPUs, {kind}: A at home on node {nodes_a} ({cpus_a} CPUs), "
                 f"B on node {nodes_b} ({cpus_b} CPUs)")
        a = Workload(self, "a", cpus_a + cpus_b)
        b = Workload(self, "b", cpus_b)
        self.start_daemon(options, self.write_policies(nodes_a, nodes_b, n_nodes))
        for letter in "ab":
            if not self.wait_moves("set-home", self.workload_name(letter), 1, 0, HANG_SEC):
                raise DemoError(f"{self.workload_name(letter)} was not confined to its home")
        self.wait_fences([a, b])

        others = Others(self)
        steal_ratio = self.steal_ratio(a, cpus_b)
        owner = self.owner(a, b, cpus_b)
        others_cpus, others_names = others.used()
        lends = sum(1 for m in self.moves if m["kind"] == "lend" and m["outcome"] == "done")
        recalls = sum(1 for m in self.moves if m["kind"] == "recall" and m["outcome"] == "done")
        a.wake(True)
        b.wake(True)
        self.stop_daemon()
        return {
            "steal_ratio": steal_ratio and round(steal_ratio, 3),
            "owner_ratio": owner and round(owner[0], 3),
            "recall_ticks_max": owner and owner[1],
            "daemon_cpu_percent": round(100 * self.daemon_cpu_sec / max(self.daemon_wall_sec, 1e-9), 3),
            "restored": self.restored([a, b]),
            "cpus": cpus_a + cpus_b,
            "rehearsal": bool(options),
            "lends": lends,
            "recalls": recalls,
            "owner_alone_per_sec": owner and round(owner[2]),
            "owner_shared_per_sec": owner and round(owner[3]),
            "others_cpus": round(others_cpus, 2),
            "others": others_names,
        }


def not_shown(result: dict) -> list[str]:
    """The parts without a figure, because no CPU was lent."""
    return [what for what, key in (("stealing", "steal_ratio"), ("recall", "owner_ratio")) if result[key] is None]


def print_table(result: dict) -> None:
    def ratio(key: str) -> str:
        return "-" if result[key] is None else f"{result[key]:.2f}"

    ticks = result["recall_ticks_max"]
    rows = [
        ("A with stealing / without", ratio("steal_ratio"), "ideal "
         f"{result['cpus'] / (result['cpus'] - result['cpus'] // 2):.2f}"),
        ("B waking up / B alone", ratio("owner_ratio"), "ideal 1.00"),
        ("ticks until B's CPUs were back", "-" if ticks is None else str(ticks), "at most 2"),
        ("lends, recalls", f"{result['lends']}, {result['recalls']}", ""),
        ("daemon CPU time", f"{result['daemon_cpu_percent']:.2f} %", "of one CPU"),
        ("all affinities restored", "yes" if result["restored"] else "NO", ""),
        ("CPUs that others used meanwhile", f"{result['others_cpus']:.2f}", "the figures are for a machine where it is 0"),
    ]
    print()
    for name, value, remark in rows:
        print(f"  {name:<34}{value:>8}  {remark}".rstrip())
    print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev run", description="Steal, recall and restore on this machine.")
    parser.add_argument("--build", default="build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on the last line")
    parser.add_argument("--act", default="auto", choices=["auto", "affinity", "cpuset"],
                        help="by which means (Act= of the policies)")
    parser.add_argument("--pairs", default=PAIRS, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    demo = Demo(args.build.resolve(), quiet=False, act=args.act, pairs=args.pairs)
    status = 0
    try:
        result = demo.run()
        print_table(result)
        if args.json:
            print(json.dumps(result), flush=True)
        status = 0 if result["restored"] else 1
        if not_shown(result):
            print(f"./dev run: {' and '.join(not_shown(result))} could not be shown, because no CPU was lent: others used "
                  f"{result['others_cpus']:.1f} of {os.cpu_count()} CPUs ({result['others'] or 'and have ended'})", file=sys.stderr)
            status = status or NOT_HERE
    except DemoError as error:
        print(f"./dev run: {error}", file=sys.stderr)
        status = error.status
    except OSError as error:
        print(f"./dev run: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        print("\ninterrupted: restoring", file=sys.stderr)
        status = 130
    finally:
        # A second Ctrl-C must not stop the restoring.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        demo.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
