# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lab reads and writes, without a guest: machine files, case files, TAP, initial RAM disks.

usage: test-labkit.py SUITE/MACHINE/CASE..   all that meson runs
"""

import configparser
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

VM = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(VM))

from labkit import LabError, case, cpio, emulator, guest, image, machine, tap, tour  # noqa: E402


BUILT_IN = sys.argv[1:]


class Tap(unittest.TestCase):
    def problems(self, *lines: str) -> list[str]:
        return tap.parse("\n".join(lines)).problems()

    def test_pass(self):
        self.assertEqual(self.problems("lab: begin", "1..2", "ok 1", "# note", "ok 2 - b", "", "lab: end 0"), [])

    def test_two_plans(self):
        self.assertEqual(self.problems("lab: begin", "1..1", "ok 1", "1..1", "ok 1", "lab: end 0"), [])

    def test_boots(self):
        once, twice = "1..1\nok 1\nlab: end 0", "lab: begin\n1..1\nok 1\nlab: begin\n1..1\nok 1\nlab: end 0"
        self.assertEqual(tap.parse(twice, boots=2).problems(), [])
        self.assertEqual(tap.parse(twice).problems(), ["the job began 2 times, expected 1"])
        self.assertEqual(tap.parse("lab: begin\n" + once, boots=2).problems(), ["the job began 1 times, expected 2"])

    def test_fail(self):
        for lines, expected in (
                ((), "the guest never reached the job"),
                (("lab: begin", "1..1", "ok 1"), "the job never ended"),
                (("lab: begin", "1..1", "ok 1", "lab: end 3"), "the job ended with status 3"),
                (("lab: begin", "ok 1", "lab: end 0"), "no TAP plan"),
                (("lab: begin", "1..2", "ok 1", "lab: end 0"), "1 tests of 2 planned"),
                (("lab: begin", "1..1", "not ok 1 - x", "lab: end 0"), "not ok 1 - x"),
        ):
            self.assertEqual(self.problems(*lines), [expected])

    def test_skip(self):
        one = tap.parse("lab: begin\n1..2\nok 1 # SKIP no\nok 2\nlab: end 0")
        self.assertEqual((one.problems(), one.all_skipped()), ([], False))
        # cmocka up to 1.1.5 says "not ok" of what it skips.
        every = tap.parse("lab: begin\n1..1\nnot ok 1 # SKIP x\n1..0 # SKIP y\nlab: end 0")
        self.assertEqual((every.problems(), every.all_skipped()), ([], True))

    def test_results(self):
        self.assertEqual(tap.parse('{"a": 1}\n{"b": 2}').results, ['{"a": 1}', '{"b": 2}'])


class Series(unittest.TestCase):
    def feed(self, count: int, *lines: str) -> tap.Series:
        series = tap.Series(count)
        for line in lines:
            series.feed(line)
        return series

    def test_one_after_the_other(self):
        series = self.feed(2, "noise", "lab: begin", "1..1", "ok 1", "lab: end 0", "lab: begin", "1..1", "not ok 1 - x", "lab: end 1")
        self.assertEqual(series.begun, 2)
        self.assertEqual([output.problems() for output in series.outputs], [[], ["not ok 1 - x", "the job ended with status 1"]])

    def test_the_guest_goes_under_the_first(self):
        series = self.feed(3, "lab: begin", "1..1", "ok 1")
        self.assertEqual(series.begun, 1)
        self.assertEqual(series.outputs[0].problems(), ["the job never ended"])
        self.assertFalse(series.outputs[1].begun)

    def test_a_job_cannot_begin_the_next(self):
        series = self.feed(2, "lab: begin", "1..1", "lab: begin", "ok 1", "lab: end 0")
        self.assertEqual(series.begun, 1)
        self.assertEqual(series.outputs[0].problems(), ["the job began 2 times, expected 1"])

    def test_left_and_over(self):
        series = self.feed(1, "lab: begin", "1..1", "ok 1", "lab: left process: sleep", "lab: end 124")
        self.assertEqual(series.outputs[0].problems(),
                         ["the job was still running at its limit, or ended with status 124", "left behind: process: sleep"])


class Guests(unittest.TestCase):
    def argv(self, **options) -> list[str]:
        with tempfile.NamedTemporaryFile() as file, \
                unittest.mock.patch.object(emulator, "ensure", return_value=["newer", "-L", "data"]):
            file.truncate(128 << 20)
            disk = pathlib.Path(file.name)
            bare = image.Image("bookworm", "", "bookworm", disk, disk, disk)
            return guest.Guest(bare, machine.load("2x2"), disk, pathlib.Path("logs"), **options).argv()

    def test_clocks(self):
        """CPUs that take turns use a clock of instructions; parallel ones use the plugin's, or the host's."""
        argv = self.argv()
        self.assertEqual(argv[:3], ["newer", "-L", "data"])
        self.assertIn("shift=1,sleep=off", argv)
        self.assertNotIn("-plugin", argv)
        argv = self.argv(plugin="numacost.so,cpus=0:0:1:1")
        for word in ("tcg,thread=single", "shift=0,sleep=off", "base=2026-01-01,clock=vm", "numacost.so,cpus=0:0:1:1"):
            self.assertIn(word, argv)
        # MWAIT must not be used for idling.
        self.assertTrue(argv[argv.index("-cpu") + 1].endswith(",-monitor"))
        self.assertIn(" idle=halt", argv[argv.index("-append") + 1])
        argv = self.argv(by_host=True)
        self.assertIn("tcg,thread=multi", argv)
        self.assertNotIn("-icount", argv)

    def test_limits_are_cpu_time(self):
        """Time of other work on the host is not counted: measured for this process, which works, and for one that
        sleeps."""
        own = guest.Spent(os.getpid())
        while own.seconds() < 0.05:
            sum(range(10000))
        with subprocess.Popen(["sleep", "1000"]) as sleeper:
            spent = guest.Spent(sleeper.pid)
            before = time.monotonic()
            while time.monotonic() < before + 0.3:
                pass
            self.assertLess(spent.seconds(), 0.1)
            sleeper.kill()


class Tours(unittest.TestCase):
    def make(self, name: str, **keys) -> case.Case:
        return case.Case(name, "d", keys.pop("machines", ["2x2"]), keys.pop("suites", ["bookworm"]), "true\n", **keys)

    def titles(self, *cases: case.Case, **filters) -> list[str]:
        return [one.title for one in tour.plan(list(cases), **filters)]

    def test_shared(self):
        self.assertEqual(self.titles(self.make("a"), self.make("b", machines=["4x1", "2x2"]), self.make("c", suites=["trixie"])),
                         ["bookworm/2x2: a b", "bookworm/4x1: b", "trixie/2x2: c"])

    def test_filters(self):
        both = self.make("a", suites=["bookworm", "trixie"])
        self.assertEqual(self.titles(both, suites=["trixie"]), ["trixie/2x2: a"])
        self.assertEqual(self.titles(both, suites=["trixie"], machines=["8x1"]), ["trixie/8x1: a"])

    def test_apart(self):
        for keys in ({"kernel_args": "x"}, {"cost": True}, {"image": "service"}, {"parallel": True}, {"alone": True}):
            with self.subTest(keys=keys):
                self.assertEqual(self.titles(self.make("a"), self.make("b", **keys), self.make("c")),
                                 ["bookworm/2x2: a c", "bookworm/2x2: b"])


class Machines(unittest.TestCase):
    def parse(self, text: str) -> machine.Machine:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string("[Machine]\n" + text)
        found = machine.parse("test", parser["Machine"])
        machine.check(found)
        return found

    def test_all_load(self):
        self.assertGreaterEqual(len(machine.names()), 9)
        for name in machine.names():
            self.assertEqual(machine.load(name).name, name)

    def test_arguments(self):
        shape = self.parse("Nodes=3\nCPUs=2 2 0\nThreads=2\nMemoryMB=64 0 32\nDistances=10 20 30\n 20 10 31\n 30 31 10")
        argv = machine.qemu_arguments(shape)
        self.assertIn("4,sockets=2,dies=1,cores=1,threads=2", argv)
        for word in ("96M", "node,nodeid=0,cpus=0-1,memdev=mem0", "node,nodeid=1,cpus=2-3", "node,nodeid=2,memdev=mem2",
                     "dist,src=1,dst=2,val=31", "dist,src=2,dst=0,val=30"):
            self.assertIn(word, argv)
        self.assertEqual(machine.cost_arguments(shape), "nodes=64:0:32,cpus=0:0:1:1,dist=10:20:30/20:10:31/30:31:10")
        self.assertFalse([word for word in argv if "initiator" in word or "hmat" in word])
        argv = machine.qemu_arguments(machine.load("2x2-cpuless"))
        for word in ("hmat=on", "node,nodeid=2,memdev=mem2,initiator=0",
                     "hmat-lb,initiator=1,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=40960M",
                     "hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=10240M"):
            self.assertIn(word, argv)
        self.assertRegex(machine.cost_arguments(machine.load("2x4-llc")), r",cpus=0:0:0:0:1:1:1:1,dist=10:20/20:10,llcs=2$")

    def test_refused(self):
        good = {"Nodes": "2", "CPUs": "2", "MemoryMB": "64", "Distances": "10 20\n 20 10"}
        self.parse("\n".join(f"{k}={v}" for k, v in good.items()))
        for key, value in (("Nodes", "0"), ("Nodes", "x"), ("CPUs", "2 1"), ("CPUs", "0"), ("CPUs", "2 2 2"),
                           ("CPUs", "-1"), ("Threads", "4"), ("Threads", "0"), ("LLCs", "3"), ("MemoryMB", "0"), ("MemoryMB", "99999"),
                           ("Distances", "10 20"), ("Distances", "20 20\n 20 10"), ("Distances", "10 10\n 20 10"),
                           ("Distances", "10 255\n 20 10"), ("Colour", "red")):
            text = "\n".join(f"{k}={v}" for k, v in {**good, key: value}.items())
            with self.subTest(key=key, value=value), self.assertRaises((LabError, ValueError)):
                self.parse(text)

    def test_no_such(self):
        with self.assertRaisesRegex(LabError, "no machine 'x': expected one of"):
            machine.load("x")


class Cases(unittest.TestCase):
    def parse(self, text: str) -> case.Case:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_file(io.StringIO("[Case]\n" + text))
        return case.parse("test", parser["Case"])

    def test_all_load(self):
        for name in case.names():
            for machine_name in case.load(name).machines:
                machine.load(machine_name)

    def test_meson_runs_all(self):
        self.assertEqual(sorted(f"{suite}/{machine_name}/{name}" for name in case.names() for suite in case.load(name).suites
                                for machine_name in case.load(name).machines), sorted(BUILT_IN))

    def test_keys(self):
        found = self.parse("Description=d\nMachine=2x2 4x1\nSuites=trixie\nCost=yes\nLimitSec=7\nCommand=a\n  b")
        self.assertEqual((found.machines, found.suites, found.cost, found.limit_sec), (["2x2", "4x1"], ["trixie"], True, 7))
        self.assertEqual(found.command, "a\nb\n")
        self.assertEqual((found.image, found.boots, found.alone, found.parallel), ("", 1, False, True))
        found = self.parse("Description=d\nMachine=2x2\nClock=parallel\nNumaBalancing=no\nCommand=a")
        self.assertEqual((found.parallel, found.cost, found.balancing), (True, False, False))
        self.assertFalse(self.parse("Description=d\nMachine=2x2\nCommand=a").parallel)
        found = self.parse("Description=d\nMachine=2x2\nImage=service\nBoots=2\nCommand=a")
        self.assertEqual((found.image, found.boots, found.alone), ("service", 2, True))
        self.assertEqual(self.parse("Description=d\nMachine=all\nCommand=a").machines, machine.names())

    def test_refused(self):
        for text in ("Machine=2x2\nCommand=a", "Description=d\nCommand=a", "Description=d\nMachine=2x2",
                     "Description=d\nMachine=2x2\nCommand=a\nSuites=sid", "Description=d\nMachine=2x2\nCommand=a\nImage=x",
                     "Description=d\nMachine=2x2\nCommand=a\nLimit=3", "Description=d\nMachine=2x2\nCommand=a\nClock=host"):
            with self.subTest(text=text), self.assertRaises((LabError, KeyError)):
                self.parse(text)


class Retries(unittest.TestCase):
    OOPS = "[    9.446454] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n"

    def boots(self, *guests):
        """How many of these guests are booted: what each leaves on its console, whether its job began, how it ended."""
        with tempfile.TemporaryDirectory() as directory:
            logs = pathlib.Path(directory)
            rest = list(guests)

            def run():
                console, begun, reason = rest.pop(0)
                (logs / "console").write_text(console, encoding="ascii")
                return types.SimpleNamespace(seconds=1, reason=reason, series=types.SimpleNamespace(begun=begun))

            result = tour.Result("a", "bookworm", logs, logs)
            with contextlib.redirect_stderr(io.StringIO()):
                tour.boot(types.SimpleNamespace(run=run, logs=logs), result)
            self.assertEqual(result.boots + len(rest), len(guests))
            return result.boots

    def test_boots(self):
        good, early = ("fine\n", True, ""), ("fine\n", False, "the guest ended")
        self.assertEqual(self.boots(good, good), 1)
        self.assertEqual(self.boots(early, good), 2)
        self.assertEqual(self.boots(early, early, early, good), 3)

    def test_jobs(self):
        good, panics = ("fine\n", True, ""), ("Kernel panic - not syncing: sysrq\n", True, "the guest ended")
        self.assertEqual(self.boots(panics, good), 1)
        self.assertEqual(self.boots((self.OOPS, True, "the guest ended"), good), 2)
        self.assertEqual(self.boots((self.OOPS, True, ""), good), 1)
        stall = "[  243.138804] rcu: INFO: rcu_preempt self-detected stall on CPU\n"
        self.assertEqual(self.boots((stall, True, "the job did not end"), good), 1)


class Cpio(unittest.TestCase):
    def test_archive(self):
        data = cpio.archive({"init": b"#!/busybox sh\n", "odd": b"x"})
        with tempfile.TemporaryDirectory() as name:
            listed = subprocess.run(["cpio", "-t"], input=data, capture_output=True, check=True).stdout.decode().split()
            self.assertEqual(listed, ["dev", "root", "dev/console", "init", "odd"])
            subprocess.run(["cpio", "-i", "init", "odd"], input=data, cwd=name, capture_output=True, check=True)
            self.assertEqual((pathlib.Path(name) / "init").read_bytes(), b"#!/busybox sh\n")
            self.assertEqual((pathlib.Path(name) / "odd").read_bytes(), b"x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
