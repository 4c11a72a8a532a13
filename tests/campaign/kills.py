#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kills the daemon, and looks whether everything goes back: at random instants, and at the calls that change something.

usage: kills.py [--seed N] [--first N] [--trials N] [--kills N]

A trial is a scene, and some kills in it. The scene has processes that are managed, with threads that their users have pinned to a home,
into it and outside of it, children that become daemons, and chains of forks; processes that only look as if they were managed;
and on systemd, units and delegated cgroups whose cpusets are managed. Meanwhile threads and children are born, threads are pinned,
and the daemon is told to reload, to release, and to stop. After some kills everything is put back, by --restore, which may be killed
itself, or by a start and a stop; then every mask, cpuset and unit property must be what it was before the daemon came. In between
the next daemon is started on what the last one left, and killed in turn.

All of a trial follows from the seed and its number, except for who runs when. Each prints a line of JSON; then there is one point of TAP.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
import lib

PR_SET_NAME, PR_SET_PDEATHSIG = 15, 1
LIBC = ctypes.CDLL(None)
KILL_AT = os.environ.get("NUMAPLACE_KILL_AT_LIBRARY", "")
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# Longer than a daemon takes to place a scene, and to change a cpuset.
RUN_SEC, RUN_FENCED_SEC = 1.5, 6.0
LINK_SEC = 0.04


def rename(name: str) -> None:
    LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def list_of(cpus) -> str:
    return lib.DaemonTest.list_of(cpus)


def systemctl(*args: str) -> str:
    return subprocess.run(["systemctl", *args], capture_output=True, text=True, check=True).stdout.strip()


#
# Processes of a scene. Each is forked from this one and gets its commands through a pipe; it answers with a number.
#


class Links:
    """What the fork chains of a process share with the campaign: whether they must end, and the current link of each."""

    def __init__(self):
        self.map = mmap.mmap(-1, 32)

    def run(self, number: int) -> None:
        """Each link forks the next one and ends. Those of the second chain have sessions of their own."""
        while not self.map[0]:
            if number == 1:
                os.setsid()
            self.map[8 * number + 8:8 * number + 16] = struct.pack("<q", os.getpid())
            time.sleep(LINK_SEC)
            if os.fork() > 0:
                break
        os._exit(0)

    def pid(self, number: int) -> int:
        return struct.unpack("<q", self.map[8 * number + 8:8 * number + 16])[0]

    def end(self) -> None:
        self.map[0] = 1


class Process:
    """A process of this name, which policies match, pinned to these CPUs."""

    DOES = {"x": "nothing", "t": "thread", "c": "child", "o": "orphan", "d": "daemon", "b": "busy", "0": "chain", "1": "sessions"}

    def __init__(self, comm: str, cpus):
        self.links, self.chains = Links(), set()
        asked, self.ask_fd = os.pipe()
        self.answer_fd, self.answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                os.close(self.ask_fd)
                os.sched_setaffinity(0, cpus)
                rename(comm)
                while what := os.read(asked, 1):
                    getattr(self, self.DOES[what.decode()])()
            finally:
                os._exit(1)
        os.close(asked)
        os.close(self.answers)
        self.ask("x")

    def ask(self, what: str) -> int:
        if what in "01":
            self.chains.add(int(what))
        os.write(self.ask_fd, what.encode())
        return struct.unpack("<q", os.read(self.answer_fd, 8))[0]

    def say(self, number: int) -> None:
        os.write(self.answers, struct.pack("<q", number))

    def stay(self, name: str = "") -> None:
        if name:
            rename(name)
        self.say(os.getpid())
        while True:
            signal.pause()

    def nothing(self) -> None:
        self.say(os.getpid())

    def thread(self) -> None:
        def run():
            self.say(threading.get_native_id())
            signal.pause()

        threading.Thread(target=run, daemon=True).start()

    def child(self) -> None:
        if os.fork() == 0:
            self.stay()

    def orphan(self) -> None:
        if os.fork() == 0:
            if os.fork() == 0:
                self.stay()
            os._exit(0)
        os.wait()

    def daemon(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                self.stay("np-other")
            os._exit(0)
        os.wait()

    def busy(self) -> None:
        if os.fork() == 0:
            self.say(os.getpid())
            while True:
                pass

    def chain(self, number: int = 0) -> None:
        if os.fork() == 0:
            self.say(os.getpid())
            self.links.run(number)

    def sessions(self) -> None:
        self.chain(1)

    def end(self) -> None:
        self.links.end()
        for fd in (self.ask_fd, self.answer_fd):
            os.close(fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


#
# What must be restored
#


class Masks:
    """Threads, with the mask each must have in the end."""

    def __init__(self):
        self.of: dict[tuple[int, int], tuple[frozenset, str]] = {}

    def add(self, pid: int, tid: int, cpus, what: str) -> None:
        self.of[pid, tid] = (frozenset(cpus), what)

    def lost(self) -> list[str]:
        found = []
        for (pid, tid), (cpus, what) in self.of.items():
            have = os.sched_getaffinity(tid)
            if have != cpus:
                found.append(f"{what} {tid} of {pid}: {list_of(have)}, expected {list_of(cpus)}")
        return found

    def end(self) -> None:
        for pid in {pid for pid, _ in self.of}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def start_unit(name: str, *argv: str, **properties: str) -> None:
    """A transient unit, so that the manager need not read all other units again."""
    subprocess.run(["systemd-run", "-q", f"--unit={name}", *(f"--property={key}={value}" for key, value in properties.items()), *argv],
                   check=True)


class Unit:
    """A unit whose AllowedCPUs= the daemon sets, with or without an administrator's limit."""

    def __init__(self, number: int, allowed):
        self.name, self.cpus = f"kills-{number}.service", allowed
        start_unit(self.name, lib.SPINNER, "--asleep", "--threads=2", **({"AllowedCPUs": list_of(allowed)} if allowed else {}))
        self.before = self.properties()
        self.file = CGROUPS / systemctl("show", "--value", "-p", "ControlGroup", self.name).strip("/") / "cpuset.cpus"

    def is_up(self) -> bool:
        return self.file.exists() and self.file.read_text(encoding="ascii").strip() != list_of(self.cpus)

    def properties(self) -> str:
        dropins = [str(path) for place in ("system.control", "transient") for path in
                   pathlib.Path("/run/systemd", place, f"{self.name}.d").glob("*")]
        return " ".join([systemctl("show", "-p", "AllowedCPUs,AllowedMemoryNodes", self.name), *dropins]).replace("\n", " ")

    def match(self) -> str:
        return f"Unit={self.name}"

    def lost(self) -> list[str]:
        pid = int(systemctl("show", "--value", "-p", "MainPID", self.name))
        expected = list_of(self.cpus or os.sched_getaffinity(1))
        masks = {f"a thread of {self.name}: {mask}, expected {expected}" for mask in lib.affinity(pid).values() if mask != expected}
        after = self.properties()
        return [*masks, *([f"{after}, expected {self.before}"] if after != self.before else [])]

    def end(self) -> None:
        systemctl("stop", self.name)


class Delegated:
    """A cgroup below a unit with Delegate=, whose cpuset the daemon writes."""

    def __init__(self, number: int, process: int):
        self.name = f"kills-{number}.service"
        start_unit(self.name, "sleep", "infinity", Delegate="yes")
        top = CGROUPS / systemctl("show", "--value", "-p", "ControlGroup", self.name).strip("/")
        for name in ("keep", "work"):
            (top / name).mkdir()
        for pid in (top / "cgroup.procs").read_text(encoding="ascii").split():
            (top / "keep" / "cgroup.procs").write_text(pid, encoding="ascii")
        (top / "cgroup.subtree_control").write_text("+cpuset", encoding="ascii")
        self.work = top / "work"
        self.home = pathlib.Path("/proc", str(process), "cgroup").read_text(encoding="ascii").partition("::")[2].strip()
        (self.work / "cgroup.procs").write_text(str(process), encoding="ascii")
        self.process = process

    def is_up(self) -> bool:
        return bool((self.work / "cpuset.cpus").read_text(encoding="ascii").strip())

    def lost(self) -> list[str]:
        # The kernel does not take the last CPUs from a cgroup with running tasks: a list of all CPUs is equivalent.
        found = []
        for kind, parent in (("cpus", "cpuset.cpus.effective"), ("mems", "cpuset.mems.effective")):
            have = (self.work / f"cpuset.{kind}").read_text(encoding="ascii").strip()
            everything = (self.work.parent / parent).read_text(encoding="ascii").strip()
            if have not in ("", everything):
                found.append(f"cpuset.{kind} of {self.work}: {have}, expected nothing or {everything}")
        return found

    def end(self) -> None:
        (CGROUPS / self.home.strip("/") / "cgroup.procs").write_text(str(self.process), encoding="ascii")
        systemctl("stop", self.name)


#
# A trial
#


class Trial:
    def __init__(self, seed: int, number: int, directory: pathlib.Path):
        self.rng, self.number, self.directory = random.Random(f"{seed}/{number}"), number, directory
        self.everything = lib.own_cpus()
        self.masks, self.processes, self.cpusets = Masks(), [], []
        self.comm = f"np-kill-{number % 10000}"
        self.log = directory / "log"
        self.history: list[str] = []
        self.counts = {"kills": 0, "by_call": 0, "restores_killed": 0, "placed": 0, "fenced": 0}
        self.rehearsed = lib.one_node()
        # Before 6.2, threads forget their masks whenever a cpuset changes (numaplace.policy(5)).
        self.fences = not self.rehearsed and tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 2)
        self.home = self.homes()
        self.outside = sorted(set(self.everything) - set(self.home))

    def homes(self) -> list[int]:
        """The CPUs of node 1, which are the upper half in an emulated topology."""
        if self.rehearsed:
            return self.everything[len(self.everything) // 2:]
        text = pathlib.Path("/sys/devices/system/node/node1/cpulist").read_text(encoding="ascii")
        return sorted(cpu for part in text.strip().split(",") for first, _, last in [part.partition("-")]
                      for cpu in range(int(first), int(last or first) + 1))

    #
    # The scene
    #

    def pins(self) -> dict[str, list[int]]:
        """What users pin to: exactly the home, inside it, outside it, and across its border."""
        rng = self.rng
        kinds = {"the home": self.home, "outside": rng.sample(self.outside, rng.randint(1, len(self.outside)))}
        if len(self.home) > 1:
            kinds["inside"] = [rng.choice(self.home)]
            kinds["across"] = [rng.choice(self.home), rng.choice(self.outside)]
        return kinds

    def later_pin(self) -> list[int]:
        """A user's pin of a managed thread. A pin to exactly the daemon's mask cannot be told apart from that mask."""
        pins = self.pins()
        return pins.get("across") or pins["outside"]

    def process(self, cpus, what: str, comm: str = "") -> Process:
        process = Process(comm or self.comm, cpus)
        self.processes.append((process, cpus))
        self.masks.add(process.pid, process.pid, cpus, what)
        return process

    def set_up(self) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            process = self.process(self.everything, "a managed process")
            for _ in range(rng.randint(0, 3)):
                self.bear(process, "t")
            for name, cpus in self.pins().items():
                if rng.random() < 0.5:
                    tid = process.ask("t")
                    os.sched_setaffinity(tid, cpus)
                    self.masks.add(process.pid, tid, cpus, f"a thread pinned to {name}")
        for name, cpus in self.pins().items():
            if rng.random() < 0.5:
                self.process(cpus, f"a managed process pinned to {name}")
        for name, cpus in self.pins().items():
            if rng.random() < 0.5:
                self.innocent(name, cpus)
        for number in (0,) if self.rehearsed else (0, 1):
            if rng.random() < 0.3:
                self.processes[0][0].ask(str(number))
        if rng.random() < 0.1:
            for _ in range(len(self.home) + 1):
                self.bear(self.processes[0][0], "b")
        fence = rng.random()
        if self.fences and fence < 0.1:
            self.cpusets.append(Unit(self.number, rng.choice(([], [self.home[0], self.outside[0]]))))
        elif self.fences and fence < 0.2:
            self.cpusets.append(Delegated(self.number, self.processes[0][0].pid))
        self.write_files()

    def write_files(self) -> None:
        rng = self.rng
        matches = [(self.comm, f"Comm={self.comm}", "cpuset" if any(isinstance(one, Delegated) for one in self.cpusets) else "yes")]
        matches += [("unit", one.match(), "unit") for one in self.cpusets if isinstance(one, Unit)]
        policies = self.directory / "policy.d"
        shutil.rmtree(policies, ignore_errors=True)
        policies.mkdir()
        for name, match, act in matches:
            group = rng.choice(("process", "workload"))
            steal = rng.choice(("yes", "no")) if act == "yes" else "no"
            (policies / f"50-{name}.policy").write_text(
                f"[Match]\n{match}\n[Workload]\nMinAgeSec=0\nGroupBy={'workload' if act != 'yes' else group}\n" +
                (f"Act={act}\n" if act != "yes" else "") +
                f"[Placement]\nMode=fixed\nNodes=1\nMinResidencySec=0\n[Steal]\nSteal={steal}\n", encoding="ascii")
        (self.directory / "numaplaced.conf").write_text(
            f"[Daemon]\nFastTickSec={rng.choice(('100ms', '300ms'))}\nSlowTickSec=300ms\nMaxCPU=50%\n", encoding="ascii")

    def innocent(self, name: str, cpus) -> None:
        self.process(cpus, f"an innocent process pinned to {name}", "np-innocent")

    def bear(self, process: Process, kind: str) -> None:
        cpus = next(cpus for one, cpus in self.processes if one is process)
        # If a user's pin of a background process is exactly the home, nothing shows it any more after its ancestors
        # have ended (act/undo/lineage.c).
        if kind in "od" and set(cpus) == set(self.home):
            kind = "c"
        # Others with background processes of their own could take a session without a leader for theirs.
        if kind == "d" and self.rehearsed:
            kind = "o"
        tid = process.ask(kind)
        names = {"t": "a thread", "c": "a child", "o": "an orphan", "d": "a daemon", "b": "a busy child"}
        self.masks.add(process.pid if kind == "t" else tid, tid, cpus, f"{names[kind]} of {process.pid}")

    #
    # Events in it
    #

    def argv(self, *args: str) -> list[str]:
        return [lib.DAEMON, f"--runtime-dir={self.directory / 'run'}", f"--config={self.directory / 'numaplaced.conf'}",
                f"--policy-dir={self.directory / 'policy.d'}", *(["--rehearse=2"] if self.rehearsed else []), *args]

    def start(self, *args: str, **popen) -> subprocess.Popen:
        with open(self.log, "ab") as log:
            return subprocess.Popen(self.argv(*args), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **popen)

    def ctl(self, *args: str) -> None:
        subprocess.run([lib.CTL, f"--socket={self.directory / 'run' / 'bus'}", *args], capture_output=True, check=False)

    def anybody(self) -> Process:
        return self.rng.choice(self.processes)[0]

    def disturb(self, daemon: subprocess.Popen) -> str:
        """A change that others make meanwhile."""
        what = self.rng.choice(("thread", "child", "daemon", "orphan", "pin", "innocent", "reload", "release", "stop"))
        if what in ("thread", "child", "daemon", "orphan"):
            self.bear(self.anybody(), what[0])
        elif what == "pin":
            process, cpus = self.anybody(), self.later_pin()
            tid = process.ask("t")
            time.sleep(self.rng.uniform(0, 0.5))
            os.sched_setaffinity(tid, cpus)
            self.masks.add(process.pid, tid, cpus, "a thread pinned while it was managed")
        elif what == "innocent":
            self.innocent("the home", self.home)
        elif what == "reload":
            daemon.send_signal(signal.SIGHUP)
        elif what == "release":
            self.ctl("release", "--all")
        else:
            daemon.send_signal(signal.SIGTERM)
        return what

    def is_placed(self) -> bool:
        first = self.processes[0][0].pid
        return os.sched_getaffinity(first) != set(self.everything)

    def kill(self) -> None:
        """One daemon, from its start to its end."""
        rng, env, how = self.rng, dict(os.environ), "time"
        run_sec = RUN_FENCED_SEC if self.cpusets else RUN_SEC
        until = time.monotonic() + rng.choice((rng.uniform(0, run_sec), rng.uniform(0, run_sec / 4)))
        if rng.random() < 0.5:
            nth, until = rng.choice((rng.randint(1, 40), rng.randint(1, 400))), time.monotonic() + run_sec
            how = f"call {nth}"
            env |= {"LD_PRELOAD": KILL_AT, "NUMAPLACE_KILL_AT": str(nth)}
        daemon, done, placed = self.start(env=env), [], False
        disturb_at = sorted(time.monotonic() + rng.uniform(0, run_sec) for _ in range(rng.choice((0, 0, 1, 2))))
        while time.monotonic() < until and daemon.poll() is None:
            placed |= self.is_placed()
            if disturb_at and time.monotonic() >= disturb_at[0]:
                disturb_at.pop(0)
                done.append(self.disturb(daemon))
            time.sleep(min(0.05, max(0, until - time.monotonic())))
        by_call = daemon.poll() == -signal.SIGKILL
        self.counts["fenced"] += any(one.is_up() for one in self.cpusets)
        if daemon.poll() is None:
            daemon.kill()
        status = daemon.wait()
        # Before it has installed its handlers, these signals kill it like SIGKILL.
        if status not in (0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP):
            raise AssertionError(f"the daemon ended with status {status}:\n{self.log.read_text(errors='replace')[-2000:]}")
        self.counts["kills"] += status == -signal.SIGKILL
        self.counts["by_call"] += by_call
        self.counts["placed"] += placed
        self.history.append(f"{how}{' placed' if placed else ''}{': ' if done else ''}{', '.join(done)}")

    def put_back(self) -> None:
        rng = self.rng
        if rng.random() < 0.3:
            self.innocent("the home after a kill", self.home)
        if rng.random() < 0.3:
            self.bear(self.anybody(), rng.choice("tcdo"))
        if rng.random() < 0.2:
            restore = self.start("--restore")
            time.sleep(rng.uniform(0, 0.3))
            self.counts["restores_killed"] += restore.poll() is None
            restore.kill()
            restore.wait()
            self.history.append("killed --restore")
        if rng.random() < 0.6:
            self.finish(self.start("--restore"))
            self.history.append("--restore")
            return
        size = self.log.stat().st_size
        daemon = self.start()
        while daemon.poll() is None and b": ready (" not in self.log.read_bytes()[size:]:
            time.sleep(0.1)
        time.sleep(rng.uniform(0, 1))
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
        self.finish(daemon)
        self.history.append("start and stop")

    def finish(self, daemon: subprocess.Popen) -> None:
        if daemon.wait() != 0:
            raise AssertionError(f"ended with status {daemon.returncode}:\n{self.log.read_text(errors='replace')[-2000:]}")

    #
    # What remains
    #

    def lost(self) -> list[str]:
        found = self.masks.lost()
        for process, cpus in self.processes:
            for number in process.chains:
                found += self.lost_link(process, number, cpus)
        for one in self.cpusets:
            found += one.lost()
        journal = self.directory / "run" / "journal"
        lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
        return found + [f"in the journal: {line}" for line in lines[1:]]

    @staticmethod
    def lost_link(process: Process, number: int, cpus) -> list[str]:
        seen: set[int] = set()
        while len(seen) < 3:
            pid = process.links.pid(number)
            with contextlib.suppress(ProcessLookupError):
                have = os.sched_getaffinity(pid)
                if have != set(cpus) and pid == process.links.pid(number):
                    return [f"a link of chain {number} of {process.pid}: {list_of(have)}, expected {list_of(cpus)}"]
                seen.add(pid)
            time.sleep(LINK_SEC)
        return []

    def run(self, kills: int) -> dict:
        begin, lost = time.monotonic(), []
        try:
            self.set_up()
            while self.counts["kills"] < kills and not lost:
                self.kill()
                if self.rng.random() < 0.4 or self.counts["kills"] >= kills:
                    self.put_back()
                    lost = self.lost()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            lost = traceback.format_exception(error)
        finally:
            for one in self.cpusets:
                one.end()
            for process, _ in self.processes:
                process.end()
            self.masks.end()
        result = {"trial": self.number, **self.counts, "sec": round(time.monotonic() - begin, 1), "lost": lost}
        return {**result, "history": self.history, "log": self.log.read_text(errors="replace")[-6000:]} if lost else result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value, text in (("seed", 1, "what all chance follows from"), ("first", 0, "the first trial"), ("trials", 10, "how many"),
                              ("kills", 10, "in each")):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} (default: {value})")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # about forks with threads: the child forks at once, too
    try:
        lib.need_placing()
        if not lib.one_node() and 1 not in lib.cpu_nodes():
            raise unittest.SkipTest("needs CPUs on node 1")
    except unittest.SkipTest as why:
        print(f"1..0 # SKIP {why}")
        return 77
    print("1..1", flush=True)
    n_lost = 0
    for number in range(args.first, args.first + args.trials):
        with tempfile.TemporaryDirectory(prefix="np-kills-") as name:
            os.chmod(name, 0o755)
            result = Trial(args.seed, number, pathlib.Path(name)).run(args.kills)
        print(json.dumps(result), flush=True)
        n_lost += bool(result["lost"])
    print(f"{'not ok' if n_lost else 'ok'} 1 - {args.trials} times {args.kills} kills, {n_lost} times something was lost", flush=True)
    return 1 if n_lost else 0


if __name__ == "__main__":
    sys.exit(main())
