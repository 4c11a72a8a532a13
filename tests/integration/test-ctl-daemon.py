#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl against a running daemon: every verb, as a table and as JSON with the keys of numaplace-json(5).

The daemon only observes (--dry-run) emulated nodes, so it needs no rights and changes nothing, whatever else runs
here.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import ctllib
import lib
import terminal
from lib import CTL, DAEMON, DEADLINE_SEC, SOURCE, SPINNER

POLICY = """[Match]
Comm=nothing

[Match]
Environment=NUMAPLACE_TEST={tag}

[Workload]
Description=Under test
MinAgeSec=0

[Placement]
Mode=fixed
Nodes=0
"""


def documented_keys(kind):
    """The keys that numaplace-json(5) documents for a dictionary, without those of nested dictionaries."""
    text = (SOURCE / "man/numaplace-json.5").read_text(encoding="ascii")
    section = re.search(rf"^\.Ss {kind}\n((?:(?!\.S[sh] ).*\n)*)", text, re.MULTILINE).group(1)
    keys, depth = set(), 0
    for line in section.splitlines():
        depth += line.startswith(".Bl ") - line.startswith(".El")
        if line.startswith(".It ") and depth == 1:
            keys.update(re.findall(r"\bSy (\w+) No", line))
    return keys


def parse_metrics(text, openmetrics):
    """{(name, labels): value} of a text in one of the two formats. Asserts every rule of the format that matters
    here."""
    samples, families, family = {}, {}, None
    lines = text.split("\n")
    assert lines.pop() == ""
    if openmetrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        described = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line)
        if described and described[1] == "HELP":
            family = described[2]
            assert family not in families, f"{family} is described twice"
            families[family] = None
        elif described:
            assert described[2] == family and described[3] in ("counter", "gauge"), line
            families[family] = described[3]
        else:
            sample = re.fullmatch(r'([a-z_]+)(?:\{([a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*)\})? ([0-9.]+)', line)
            assert sample, line
            counter = families[family] == "counter"
            assert sample[1] == family + ("_total" if counter and openmetrics else ""), line
            assert sample[1].endswith("_total") == counter, line
            labels = tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', sample[2] or ""))
            assert (sample[1], labels) not in samples, f"{line} is there twice"
            samples[sample[1], labels] = float(sample[3])
    assert all(families.values())
    return samples


class Daemon(ctllib.CtlTest):
    @classmethod
    def setUpClass(cls):
        if len(os.sched_getaffinity(0)) < 2:
            raise unittest.SkipTest("one CPU cannot be split into two pretend nodes")
        cls.run_dir = pathlib.Path(tempfile.mkdtemp(prefix="numaplacectl-"))
        cls.addClassCleanup(shutil.rmtree, cls.run_dir, ignore_errors=True)
        policies = cls.run_dir / "policy.d"
        policies.mkdir()
        cls.policy = policies / "10-test.policy"
        cls.policy.write_text(POLICY.format(tag=os.getpid()), encoding="ascii")
        (cls.run_dir / "numaplaced.conf").write_text("", encoding="ascii")

        cls.spinner = subprocess.Popen([SPINNER, "--threads=2", "--duty-usec=1000", "--period-usec=20000"],
                                       env={**os.environ, "NUMAPLACE_TEST": str(os.getpid())})
        cls.addClassCleanup(cls.end, cls.spinner)
        lib.wait_until("the spinner's threads", lambda: len(os.listdir(f"/proc/{cls.spinner.pid}/task")) == 3)
        cls.log = open(cls.run_dir / "log", "w+b")
        cls.addClassCleanup(cls.log.close)
        cls.daemon = subprocess.Popen(
            [DAEMON, "--dry-run", f"--runtime-dir={cls.run_dir}", f"--config={cls.run_dir}/numaplaced.conf",
             f"--policy-dir={policies}", "--rehearse=2"], stdout=cls.log, stderr=cls.log)
        cls.addClassCleanup(cls.end, cls.daemon)
        cls.socket = f"--socket={cls.run_dir}/bus"
        cls.wait_until(lambda: any(w["tasks"] for w in cls.try_json("workloads")), "the workload's threads are seen")
        cls.wait_until(lambda: cls.try_json("moves"), "its home is decided")

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.wait(timeout=DEADLINE_SEC)

    @classmethod
    def try_json(cls, *args):
        done = ctllib.run(cls.socket, "--json=short", *args)
        return json.loads(done.stdout) if done.returncode == 0 else []

    @classmethod
    def wait_until(cls, condition, what):
        with contextlib.suppress(AssertionError):
            lib.wait_until(what, lambda: cls.daemon.poll() is not None or condition())
            if cls.daemon.poll() is None:
                return
        cls.log.seek(0)
        raise AssertionError(f"waited in vain for: {what}\n{cls.log.read().decode(errors='replace')}")

    def json(self, *args):
        """One JSON value. Live numbers differ between two runs, so the two forms are not compared here."""
        value = json.loads(self.ctl(self.socket, "--json=pretty", *args))
        short = self.ctl(self.socket, "--json=short", *args)
        self.assertEqual(short.count("\n"), 1)
        self.assertIs(type(json.loads(short)), type(value))
        return value

    def has_keys(self, value, kind, without=()):
        expected = documented_keys(kind) - set(without)
        self.assertGreaterEqual(len(expected), 5)
        self.assertEqual(expected - set(value), set(), f"missing in {kind}")

    def test_status(self):
        status = self.json("status")
        self.has_keys(status, "Status")
        self.assertEqual((status["pid"], status["rehearsal"], status["mode"], status["workloads"]),
                         (self.daemon.pid, 2, "dry-run", 1))
        text = self.ctl(self.socket, "status")
        self.assertIn(f"pid {self.daemon.pid}: running, dry-run\n", text)
        self.assertIn("2 emulated nodes", text)
        self.assertIn("1 policy, 1 workload, ", text)

    def wait_managed(self):
        """Another test released the process, or made the daemon read everything anew."""
        self.wait_until(lambda: self.try_json("workloads")[0]["tasks"] == 3, "the threads are managed")

    def test_workloads(self):
        self.wait_managed()
        workload, = self.json("workloads")
        self.has_keys(workload, "Workload", without=("lent", "n_groups", "refusals"))
        self.assertEqual((workload["name"], workload["mode"], workload["processes"]), ("10-test", "fixed", 1))
        lines = self.ctl(self.socket, "workloads").splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["WORKLOAD", "10-test"])

    def test_show(self):
        self.wait_managed()
        workload = self.json("show", "10-test")
        self.assertEqual(workload["description"], "Under test")
        self.has_keys(workload["groups"][0], "Group")
        self.assertEqual(workload["n_groups"], len(workload["groups"]))
        for refusal in workload["refusals"]:
            self.has_keys(refusal, "Refusal")
        text = self.ctl(self.socket, "show", "10-test")
        self.assertTrue(text.startswith("10-test - Under test\n"), text)
        self.assertIn("Mode=fixed", text)
        self.assertIn("\nGroups:\n", text)

    def test_tasks(self):
        self.wait_managed()
        tasks = self.json("tasks", "10-test")
        for task in tasks:
            self.has_keys(task, "Task")
        self.assertEqual({task["pid"] for task in tasks}, {self.spinner.pid})
        self.assertEqual({task["tid"] for task in tasks},
                         {int(tid) for tid in os.listdir(f"/proc/{self.spinner.pid}/task")})
        self.assertEqual(self.ctl(self.socket, "tasks", "10-test", "--no-legend").count("\n"), len(tasks))

    def test_explain_process(self):
        self.wait_managed()
        explanation = self.json("explain", str(self.spinner.pid))
        self.assertEqual((explanation["kind"], explanation["managed"], explanation["policy"]),
                         ("process", True, "10-test"))
        self.assertEqual((explanation["policy_section"], explanation["policy_file"], explanation["policy_line"]),
                         (2, str(self.policy), 4))
        text = self.ctl(self.socket, "explain", str(self.spinner.pid))
        self.assertIn(f"10-test, by [Match] section 2, {self.policy}:4\n", text)
        self.assertIn("\nThreads:\n", text)
        self.assertIn(f"set-home 10-test: spinner[{self.spinner.pid}]", text)

    def test_explain_others(self):
        self.assertEqual(self.json("explain", "10-test")["kind"], "workload")
        self.assertTrue(self.ctl(self.socket, "explain", "10-test").startswith("10-test: "))
        self.assertFalse(self.json("explain", str(os.getpid()))["managed"])
        self.assertEqual(self.json("explain", str(self.daemon.pid))["verdict"], "self")

    def test_metrics(self):
        samples = parse_metrics(self.ctl(self.socket, "metrics"), openmetrics=True)
        status, workload = self.json("status"), self.json("workloads")[0]
        label = ("workload", workload["name"])
        self.assertEqual(samples["numaplace_info", (("version", status["version"]), ("mode", "dry-run"), ("state", "running"))], 1)
        self.assertEqual(samples["numaplace_cpus", ()], status["cpus"])
        self.assertEqual(samples["numaplace_workload_processes", (label,)], workload["processes"])
        self.assertEqual(samples["numaplace_workload_info", (label, ("mode", "fixed"), ("act", "auto"))], 1)
        self.assertGreater(samples["numaplace_cpu_seconds_total", ()], 0)
        self.assertEqual({dict(labels)["outcome"] for name, labels in samples if name == "numaplace_actions_total"},
                         set(status["outcomes"]))
        families = self.json("metrics")
        self.assertEqual({(family["name"], tuple(sample["labels"].items())) for family in families for sample in family["samples"]},
                         set(samples))

    def test_metrics_into_a_file(self):
        path = self.directory() / "numaplace.prom"
        path.write_text("old", encoding="ascii")
        self.assertEqual(self.ctl(self.socket, "metrics", f"--output={path}"), "")
        samples = parse_metrics(path.read_text(encoding="utf-8"), openmetrics=False)
        self.assertEqual(set(samples), set(parse_metrics(self.ctl(self.socket, "metrics"), openmetrics=True)))
        self.assertEqual((path.stat().st_mode & 0o777, list(path.parent.iterdir())), (0o644, [path]))
        self.fails(self.socket, "metrics", f"--output={path}/x", code=1, says="cannot be written: Not a directory")
        if lib.PROMTOOL:
            done = subprocess.run([lib.PROMTOOL, "check", "metrics"], input=path.read_bytes(), capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_moves(self):
        moves = self.json("moves")
        for move in moves:
            self.has_keys(move, "Move")
        sequences = [move["sequence"] for move in moves]
        self.assertEqual(sequences, sorted(set(sequences)))
        self.assertEqual(len(self.json("moves", "-n", "1")), 1)
        self.assertEqual(self.json("moves", "--lines=0"), [])
        self.assertRegex(self.ctl(self.socket, "moves", "-n1"), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+ +10-test: .*\n$")

    def test_the_log_has_the_numbers_of_moves(self):
        log = (self.run_dir / "log").read_text(encoding="utf-8")
        move = self.json("moves")[0]
        numbers = self.ctl(self.socket, "moves").splitlines()[0].rpartition(" (")[2]
        self.assertTrue(numbers.startswith(f"P{move['mechanism']}"), numbers)
        self.assertIn(f"10-test set-home: spinner[{self.spinner.pid}], CPUs {move['from']} -> {move['to']} ({numbers}", log)

    def follow(self, *args):
        child = subprocess.Popen([CTL, self.socket, "moves", "-f", *args], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.stdout.close)
        self.addCleanup(self.end, child)
        return child

    def test_follow_shows_the_last_ones_and_is_interrupted(self):
        child = self.follow("--json=short")
        self.assertGreaterEqual(json.loads(child.stdout.readline())["sequence"], 1)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=DEADLINE_SEC), -signal.SIGINT)

    def test_follow_ends_when_nobody_reads(self):
        child = self.follow("-n0")
        child.stdout.close()
        self.assertEqual(child.wait(timeout=DEADLINE_SEC), 0)

    def test_output_that_is_lost_ends_what_repeats(self):
        for args in (["moves", "-f"], ["moves", "-f", "--json=short"], ["status", "--watch"], ["workloads", "--watch"]):
            with self.subTest(args=args), open("/dev/full", "wb") as full:
                done = subprocess.run([CTL, self.socket, *args], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=DEADLINE_SEC, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_pause_and_resume(self):
        def paused():
            return self.try_json("workloads")[0]["paused"]

        self.assertEqual(self.ctl(self.socket, "pause", "10-test"), "")
        self.assertTrue(paused())
        self.assertEqual(self.ctl(self.socket, "resume", "10-test"), "")
        self.assertFalse(paused())
        self.ctl(self.socket, "pause", "--all")
        self.assertTrue(paused())
        self.ctl(self.socket, "resume", "--all")
        self.assertFalse(paused())

    def test_release_and_resume_a_workload(self):
        self.wait_managed()
        self.ctl(self.socket, "release", "10-test")
        self.assertIn("Its workload is paused or released; resume ends that.", self.ctl(self.socket, "explain", "10-test"))
        self.ctl(self.socket, "resume", "10-test")
        self.wait_until(lambda: self.json("explain", "10-test")["verdict"] == "managed", "it is taken back")

    def test_release_and_resume_a_process(self):
        pid = str(self.spinner.pid)
        self.ctl(self.socket, "release", pid)
        self.wait_until(lambda: self.json("explain", pid)["verdict"] == "released", "it is released")
        self.ctl(self.socket, "resume", pid)
        self.wait_until(lambda: self.json("explain", pid)["managed"], "it is taken back")
        self.assertEqual(self.ctl(self.socket, "resume", pid), "")

    def test_reload(self):
        self.assertEqual(self.ctl(self.socket, "reload"), "")
        bad = self.policy.parent / "20-bad.policy"
        bad.write_text("[Placement]\nMode=sideways\n", encoding="ascii")
        try:
            self.fails(self.socket, "reload", code=1, says="20-bad.policy:2: ")
            self.assertEqual(len(self.json("workloads")), 1)
        finally:
            bad.unlink()
        self.ctl(self.socket, "reload")

    def test_no_such_subject(self):
        for args in (["show", "nosuch"], ["tasks", "nosuch"], ["explain", "nosuch"], ["pause", "nosuch"],
                     ["resume", "nosuch"], ["release", "nosuch"], ["explain", "999999999"]):
            with self.subTest(args=args):
                self.fails(self.socket, *args, code=4, says=args[1])

    def test_no_number_of_a_process(self):
        self.fails(self.socket, "explain", "0", code=4, says="it is not a PID")

    def test_goes_on_after_a_name_that_failed(self):
        done = ctllib.run(self.socket, "pause", "nosuch", "10-test")
        self.assertEqual(done.returncode, 4)
        self.assertTrue(self.try_json("workloads")[0]["paused"])
        self.ctl(self.socket, "resume", "10-test")

    def test_empty_name_is_not_everything(self):
        # Wrong usage: nothing was done.
        for args in ([""], ["10-test", ""]):
            self.fails(self.socket, "pause", *args, code=2, says="--all is everything")
            self.assertFalse(self.try_json("workloads")[0]["paused"])

    def test_names_that_nothing_can_have(self):
        name = os.fsdecode(b"a\xff")
        for verb in ("show", "tasks", "explain", "pause", "resume", "release"):
            with self.subTest(verb=verb):
                self.fails(self.socket, verb, name, code=4, says="a name that is not UTF-8 names nothing")
        self.fails(self.socket, "run", f"--policy={name}", "true", code=125, says=r"there is no policy 'a\xff'")
        self.fails(self.socket, "run", f"--policy={'a' * 100}", "true", code=125, says=f"there is no policy '{'a' * 100}'")

    def test_top_once(self):
        self.wait_managed()
        text = self.ctl(self.socket, "top", "--once")
        self.assertTrue(text.startswith("numaplaced "), text)
        for part in ("\nnode 0 ", "\nnode 1 ", "\nWORKLOAD ", "\n10-test ", "\nLAST ACTIONS\n"):
            self.assertIn(part, text)
        self.assertEqual(self.ctl(self.socket, "top").splitlines()[2][:7], "node 0 ")
        shown = json.loads(self.ctl(self.socket, "--json=short", "top"))
        self.assertEqual([workload["name"] for workload in shown["workloads"]], ["10-test"])
        self.assertEqual(len(shown["cpus"]), len(os.sched_getaffinity(0)))

    def test_top_on_a_terminal(self):
        self.wait_managed()
        for env in ({}, {"NO_COLOR": "1"}, {"TERM": "vt100"}):
            with self.subTest(env=env), terminal.Terminal([CTL, self.socket, "top"], env=env) as screen:
                screen.wait("10-test")
                screen.wait("quit")
                screen.press("h")
                screen.wait("grouped by last-level cache")
                screen.press("q")
                screen.wait("LAST ACTIONS")
                screen.press("\r")
                screen.wait("THREADS OF 10-test")
                screen.wait(str(self.spinner.pid))
                screen.press("q")
                screen.wait("LAST ACTIONS")
                screen.press("e")
                screen.wait("10-test IS PLACED SO")
                screen.press("q")
                screen.wait("LAST ACTIONS")
                screen.press("/nosuch\r")
                screen.wait("no workload has that")
                screen.resize(60, 200)
                screen.wait("LAST ACTIONS")
                screen.press(" ")
                screen.wait("frozen")
                screen.press("q")
                self.assertEqual(screen.end(), 0)

    def test_watch(self):
        self.wait_managed()
        for argv in (["status", "--watch"], ["workloads", "--watch"], ["show", "10-test", "--watch"]):
            with terminal.Terminal([CTL, self.socket, *argv]) as screen:
                screen.wait("\033[H\033[2J")
                screen.wait("\033[H\033[2J")
                screen.press("\x03")
                self.assertEqual(screen.end(), -signal.SIGINT)
        with terminal.Terminal([CTL, self.socket, "workloads", "--watch"], env={"TERM": "dumb"}) as screen:
            self.assertNotIn("\033", screen.wait("WORKLOAD") + screen.wait("WORKLOAD"))
        child = subprocess.Popen([CTL, self.socket, "workloads", "--watch"], stdout=subprocess.PIPE, text=True)
        self.assertTrue(child.stdout.readline().startswith("WORKLOAD"))
        child.stdout.close()
        self.assertEqual(child.wait(DEADLINE_SEC), 0)

    def test_top_without_anybody(self):
        """It ends when its terminal goes away, and reports a terminal that cannot be used."""
        for term in ("nosuch", "dumb"):
            with terminal.Terminal([CTL, self.socket, "top"], env={"TERM": term}) as screen:
                screen.wait(f"this terminal cannot be used (TERM={term}); --once needs none")
                self.assertEqual(screen.end(), 1)
        controller, end = os.openpty()
        child = subprocess.Popen([CTL, self.socket, "top"], stdin=end, stdout=end, stderr=subprocess.DEVNULL,
                                 env={**os.environ, "TERM": "xterm"})
        os.close(end)
        self.assertTrue(os.read(controller, 100))
        os.close(controller)
        child.wait(DEADLINE_SEC)


class Leaving(unittest.TestCase):
    def test_follow_says_that_the_daemon_ended(self):
        Daemon.setUpClass()
        try:
            child = subprocess.Popen([CTL, Daemon.socket, "moves", "-f"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            child.stdout.readline()
            Daemon.end(Daemon.daemon)
            _, err = child.communicate(timeout=DEADLINE_SEC)
            self.assertEqual(child.returncode, 3)
            self.assertIn("numaplaced closed the connection", err)
        finally:
            Daemon.doClassCleanups()


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.testsRun == 0 and program.result.skipped:
        print(program.result.skipped[0][1])
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
