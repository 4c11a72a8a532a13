#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl simulate: invalid files, tables, JSON, exit codes, progress, the picture. What scenarios show is
tested by suite sim."""

import os
import pty
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import ctllib
import terminal
from lib import CTL, DEADLINE_SEC

SCENARIO = """
[Scenario]
Description=Two and six threads on four CPUs
DurationSec=1s
Seeds=3

[Machine]
Synthetic=pack:2 [numa] l3:1 core:2 pu:1

[Workload few]
Threads=2

[Workload many]
Threads=6
BurstSec=exponential 5ms
SleepSec=exponential 1ms

[Policy first Match]
Comm=many
[Policy first Workload]
MinAgeSec=0
[Policy first Placement]
Mode=fixed
Nodes=0

[Variant few]
Daemon=no
Workloads=few

[Variant many]
Daemon=no

[Variant placed]

[Expect]
Value=run(few) few == 2000
Order=busy few < many
Value=homes placed == 1
"""


class Simulate(ctllib.CtlTest):
    def scenario(self, text=SCENARIO, name="a.scenario"):
        path = self.directory() / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def complains(self, text, *lines):
        path = self.scenario(text)
        done = ctllib.run("simulate", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.splitlines(), [f"numaplacectl: {path}:{line}" for line in lines])

    def test_usage(self):
        self.fails("simulate", code=2, says="simulate takes FILE")
        self.fails("simulate", "a", "b", code=2, says="simulate takes FILE")
        self.fails("simulate", "a", "--seeds=0", code=2, says="--seeds=0: expected a number from 1 to 10000")
        self.fails("simulate", "a", "--seeds=10001", code=2, says="expected a number from 1 to 10000")
        self.fails("simulate", "a", "--follow", code=2, says="--follow is not for simulate")
        self.fails("status", "--plot=x", code=2, says="--plot is not for status")

    def test_bad_files(self):
        self.fails("simulate", "/nonexistent", code=1, says="/nonexistent: cannot be read: No such file")
        self.complains("[Machine]\nPreset=x5-8\n[Workload w]\nTreads=3\nThreads=none\n",
                       "4: expected a key of [Workload], see numaplace.scenario(5), not: Treads=",
                       "5: Threads= takes a number from 1 to 200000, not: none")
        self.complains("[Machine]\nPreset=x5-8\n[Workload w]\n[Expect]\nValue=runs == 5\nRatio=run a b > 1\n",
                       "5: expected a metric of numaplace.scenario(5), not: runs",
                       "6: expected a variant of this scenario, not: a")

    def test_table(self):
        out = self.ctl("simulate", self.scenario())
        self.assertIn("Two and six threads on four CPUs", out)
        self.assertRegex(out, r"\nMETRIC +few +many +placed\n")
        self.assertRegex(out, r"\nrun +2000 +\d+")
        self.assertRegex(out, r"\nValue=run\(few\) few == 2000 +held +3/3 +2000\n")
        self.assertNotIn("\nlends(", out)
        out = self.ctl("simulate", self.scenario(), "--no-legend")
        self.assertTrue(out.startswith("ops "), out)
        self.assertNotIn("EXPECTATION", out)

    def test_json(self):
        path = self.scenario()
        value = self.ctl_json("simulate", path)
        self.assertEqual((value["scenario"], value["seeds"], value["held"]), ("a", 3, True))
        self.assertEqual(value["machine"], "pack:2 [numa] l3:1 core:2 pu:1")
        self.assertEqual([(v["name"], v["daemon"]) for v in value["variants"]],
                         [("few", False), ("many", False), ("placed", True)])
        self.assertEqual(value["variants"][0]["machine"]["run"], {"low": 2000, "median": 2000, "high": 2000})
        self.assertEqual(set(value["variants"][0]["workloads"]), {"few", "many"})
        # Nothing ends in this scenario: the makespan is infinite.
        self.assertIsNone(value["variants"][0]["machine"]["makespan-usec"]["median"])
        self.assertEqual([e["held"] for e in value["expectations"]], [True, True, True])
        # The same seeds give the same bytes; another number of seeds gives another table.
        self.assertEqual(self.ctl("--json=short", "simulate", path), self.ctl("--json=short", "simulate", path))
        self.assertEqual(self.ctl_json("simulate", path, "--seeds=5")["seeds"], 5)

    def test_failed_expectation(self):
        path = self.scenario(SCENARIO + "Value=run(few) few == 1999\n[Expect median]\nRange=run(few) few < 1\n")
        done = ctllib.run("simulate", path)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"\nValue=run\(few\) few == 1999 +failed +0/3 +2000\n")
        self.assertRegex(done.stdout, r"\nRange=run\(few\) few < 1 +held +1/1 +0\n")
        value = self.ctl_json("simulate", path, code=1)
        self.assertFalse(value["held"])
        self.assertEqual([e["held"] for e in value["expectations"]], [True, True, True, False, True])
        self.assertEqual([e["over"] for e in value["expectations"]], ["every"] * 4 + ["median"])

    def test_policy_dir(self):
        policies = self.directory()
        (policies / "10-few.policy").write_text(
            "[Match]\nComm=few\n[Workload]\nMinAgeSec=0\n[Placement]\nMode=fixed\nNodes=1\n", encoding="ascii")
        path = self.scenario(SCENARIO.partition("[Expect]")[0])
        placed = self.ctl_json("simulate", path, "--policy-dir", str(policies))["variants"][2]["workloads"]
        self.assertEqual(placed["many"]["homes"]["median"], 0)
        self.assertEqual(placed["few"]["homes"]["median"], 1)
        (policies / "10-few.policy").write_text("[Placement]\nMode=sideways\n", encoding="ascii")
        self.fails("simulate", path, f"--policy-dir={policies}", code=1, says="10-few.policy:2: ")

    def test_progress(self):
        controller, terminal = pty.openpty()
        path = self.scenario()
        with subprocess.Popen([CTL, "simulate", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=terminal) as process:
            os.close(terminal)
            shown = b""
            while True:
                try:
                    data = os.read(controller, 4096)
                except OSError:
                    break
                if not data:
                    break
                shown += data
            self.assertEqual(process.wait(timeout=DEADLINE_SEC), 0)
        os.close(controller)
        self.assertIn(b"9 of 9 runs, 100%", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"))

    def test_record(self):
        """The plans of the first variant with a daemon: planning again gives the same, and top shows them."""
        path, record = self.scenario(), self.directory() / "plans"
        self.ctl("simulate", f"--record={record}", "--seeds=1", path)
        replayed = self.ctl_json("replay", record)
        self.assertGreaterEqual(replayed["plans"], 9)
        self.assertEqual((replayed["same"], replayed["different"]), (replayed["plans"], []))
        cut = record.with_suffix(".cut")
        cut.write_bytes(record.read_bytes()[:-1])
        for verb in ("replay", "top"):
            self.fails(verb, str(cut), code=1, says=f"entry {replayed['plans']}, head: expected all bytes that the head announces, but the file ends")
        # What stands before the entry that a kill cut short can be had.
        last = record.read_bytes().rindex(b"\nplan by_use=") + 1
        for n in (5, 30, 1000):
            cut.write_bytes(record.read_bytes()[:last + n])
            self.fails("top", str(cut), code=1, says=f"but the file ends; its first {last} bytes are whole (head -c {last})")
        cut.write_bytes(record.read_bytes()[:last])
        self.assertEqual(self.ctl_json("replay", str(cut)), {**replayed, "plans": replayed["plans"] - 1, "same": replayed["same"] - 1})

        text = self.ctl("top", record)
        self.assertTrue(text.startswith("a record; "), text)
        for part in (", its end\n4 CPUs: ", "\nnode 1 ", "\nfirst ", " fixed    0 ", "\nLAST ACTIONS\n", " s  set-home rule="):
            self.assertIn(part, text)
        shown = self.ctl_json("top", record)
        self.assertEqual([(workload["name"], workload["nodes"], workload["tasks"]) for workload in shown["workloads"]], [("first", "0", 6)])
        self.assertEqual({cpu["state"] for cpu in shown["cpus"]}, {"busy", "overloaded"})
        for env in ({"COLUMNS": "40"}, {"COLUMNS": "200"}):
            self.assertEqual(self.ctl("top", record, env=env), text)
        for columns in (20, 40, 80, 200):
            with terminal.Terminal([CTL, "top", "--once", record], columns=columns, env={"COLUMNS": ""}) as screen:
                self.assertEqual(screen.end(), 0)
                self.assertLessEqual(max(map(len, screen.text.splitlines())), columns)
        with terminal.Terminal([CTL, "top", record]) as screen:
            for keys, part in (("", "its end"), ("\r", "PLANNED"), ("q", "LAST ACTIONS"), ("h", "plans of this second"), ("q", "LAST ACTIONS")):
                screen.press(keys)
                screen.wait(part)
            # Not keys that curses knows: arrows in another mode, an invented one, Alt.
            for keys in ("\033[A", "\033[1;2q", "\033[200~", "\033Oh", "\033q", "\033\033[B"):
                with self.subTest(keys=keys):
                    screen.press(keys + "h")
                    screen.wait("plans of this second")
                    screen.press("h")
                    screen.wait("LAST ACTIONS")
            screen.press("\033")
            self.assertEqual(screen.end(), 0)

    def test_record_to_no_file(self):
        """A pipe or an open descriptor is written to and not replaced; a regular file below /dev is replaced."""
        self.assertIn("\nplan tick=", self.ctl("simulate", "--record=/dev/fd/1", "--seeds=1", self.scenario()))
        pipe = self.directory() / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, encoding="ascii") as reader:
            self.ctl("simulate", f"--record={pipe}", "--seeds=1", self.scenario())
            self.assertTrue(pipe.is_fifo())
            self.assertIn("\nplan tick=", reader.stdout.read())
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            for _ in range(2):
                self.ctl("simulate", f"--record={directory}/plans", "--seeds=1", self.scenario())
                self.assertEqual(self.ctl_json("replay", f"{directory}/plans")["different"], [])

    def test_record_that_cannot_be(self):
        none = self.scenario(SCENARIO[:SCENARIO.index("[Variant placed]")], "none.scenario")
        self.fails("simulate", f"--record={self.directory()}/plans", none, code=1, says="--record= needs a variant with a daemon")
        self.fails("simulate", "--record=/nonexistent/plans", self.scenario(), code=1, says="/nonexistent/plans: cannot be written")
        self.fails("simulate", "--record=/dev/full", "--seeds=1", self.scenario(), code=1, says="/dev/full: cannot be written: No space")
        for name, text, says in (("empty", "", "expected a recording of at least one plan"), ("no-record", "hello\n", "entry 1, head: not a record: expected a file written by --record="),
                                 ("damaged", "plan hello\n", "entry 1, head: line 1: expected key=value")):
            path = self.directory() / name
            path.write_text(text, encoding="ascii")
            for verb in ("top", "replay"):
                self.fails(verb, path, code=1, says=says)
        self.fails("top", "/nonexistent", code=1, says="/nonexistent: No such file")
        self.fails("top", "--record=x", code=2, says="--record")

    def test_plot_needs_gnuplot(self):
        picture = self.directory() / "a.svg"
        picture.write_text("old", encoding="ascii")
        empty = self.directory()
        done = ctllib.run("simulate", self.scenario(), f"--plot={picture}", env={"PATH": str(empty)})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "numaplacectl: --plot= needs gnuplot, which is not installed\n")
        self.assertEqual(picture.read_text(encoding="ascii"), "old")

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_plot(self):
        picture = self.directory() / "a.svg"
        self.ctl("simulate", self.scenario(), f"--plot={picture}")
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        text = "".join(root.itertext())
        for title in ("few, node 0", "placed, node 1", "many", "seconds"):
            self.assertIn(title, text)
        # A new file takes its name, so that nobody sees half a picture.
        old = self.directory() / "old.svg"
        old.hardlink_to(picture)
        old.write_text("old", encoding="ascii")
        self.ctl("simulate", self.scenario(), f"--plot={picture}")
        self.assertEqual(old.read_text(encoding="ascii"), "old")
        self.assertIn("<svg", picture.read_text(encoding="utf-8"))
        self.assertEqual([path.name for path in picture.parent.iterdir()], ["a.svg"])
        self.assertIn("<svg", self.ctl("simulate", self.scenario(), "--plot=/dev/stdout"))
        done = ctllib.run("simulate", self.scenario(), "--plot=/nonexistent/a.svg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/a.svg: cannot be written: No such file", done.stderr)


if __name__ == "__main__":
    unittest.main()
