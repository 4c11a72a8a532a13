# SPDX-License-Identifier: LGPL-2.1-or-later
"""The computations of the placement benchmark on the host, without a guest."""

import argparse
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

VM = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(VM), str(VM / "cases")]

import programs  # noqa: E402
import series  # noqa: E402
from labkit import LabError, bench_placement as bench  # noqa: E402


def mark(number: int, local: int, remote: int, event: str = "mark") -> str:
    """A report of two CPUs, the second of which missed twice as often."""
    def cpu(factor: int) -> dict:
        return {"user_local": local * factor, "user_remote": remote * factor, "kernel_local": 0, "kernel_remote": 0,
                "line_local": 0, "line_remote": 0}
    return json.dumps({"event": event, "number": number, "cpus": [cpu(1), cpu(2)]})


def run(seconds: float, window: int = 0, system: str = "none", **more) -> dict:
    return {"workload": "numa01", "system": system, "window": window, "seconds": seconds, "operations": 100, "local90_s": None,
            "local95_s": None, "system_cpu_s": 1, "pages_moved": 0, "daemon_cpu_s": 0, "note": "", "kernel": "6.1.0-1-amd64", **more}


class Plan(unittest.TestCase):
    def test_rounds_turn(self):
        firsts = [bench.plan(["numa01"], ["none", "kernel", "hard"], number)[0]["system"] for number in range(4)]
        self.assertEqual(firsts, ["none", "kernel", "hard", "none"])

    def test_every_pair_once(self):
        pairs = bench.plan(list(bench.WORKLOADS), list(bench.SYSTEMS), 1, scale=0.5)
        self.assertEqual(len({(pair["workload"], pair["system"]) for pair in pairs}), len(bench.WORKLOADS) * len(bench.SYSTEMS))
        self.assertEqual([pair["window"] for pair in pairs], list(range(0, 2 * len(pairs), 2)))
        self.assertEqual({pair["scale"] for pair in pairs}, {0.5})

    def test_only_what_applies(self):
        pairs = bench.plan(["numa01", "uneven", "hackbench"], ["none", "hard", "pinned"], 0)
        self.assertEqual([(pair["workload"], pair["system"]) for pair in pairs],
                         [("numa01", "none"), ("numa01", "hard"), ("uneven", "none"), ("uneven", "hard"), ("uneven", "pinned"),
                          ("hackbench", "none")])

    def test_too_many(self):
        with self.assertRaises(LabError):
            bench.plan([str(number) for number in range(bench.WINDOWS_MAX + 1)], ["none"], 0)

    def test_check(self):
        def check(workloads, systems, **more):
            bench.check(workloads, systems, types.SimpleNamespace(**{"runs": 1, "scale": 1, "jobs": 0, **more}))
        check(["numa01"], ["hard"])
        for wrong in ((["forker"], ["hard"]), (["numa01", "uneven"], ["pinned"])):
            with self.assertRaises(LabError):
                check(*wrong)
        for more in ({"runs": 0}, {"scale": 0}, {"jobs": -1}):
            with self.assertRaises(LabError):
                check(["numa01"], ["hard"], **more)

    def test_names(self):
        self.assertEqual(bench.names("hard,none", bench.SYSTEMS, "--systems"), ["hard", "none"])
        for text in ("", "none,none", "none,soft"):
            with self.assertRaises(LabError):
                bench.names(text, bench.SYSTEMS, "--systems")


class Windows(unittest.TestCase):
    def test_difference_of_all_cpus(self):
        lines = [json.dumps({"event": "config"}), mark(0, 5, 1, "on"), mark(0, 10, 1), mark(1, 40, 11), mark(2, 40, 11),
                 mark(3, 40, 21)]
        found = bench.windows(lines)
        self.assertEqual(sorted(found), [0, 2])
        self.assertEqual((found[0]["user_local"], found[0]["user_remote"]), (90, 30))
        self.assertEqual((bench.remote_share(found[0]), bench.remote_share(found[2])), (0.25, 1))

    def test_half_a_window_is_none(self):
        self.assertEqual(bench.windows([mark(0, 1, 1), mark(3, 2, 2)]), {})

    def test_all_kinds_count(self):
        counters = dict.fromkeys((*bench.LOCAL, *bench.REMOTE), 10)
        self.assertEqual(bench.remote_share(counters), 0.5)
        self.assertIsNone(bench.remote_share(dict.fromkeys(counters, 0)))


class Series(unittest.TestCase):
    """A sample every half second, with 50 operations in each; `local` by sample."""

    def samples(self, *local: float | None, speed: int = 100) -> list:
        return [[i / 2, i * speed // 2, share] for i, share in enumerate(local)]

    def test_local_since(self):
        for local, expected in (
                ((0.5, 0.9, 1, 0.95), 0.5),
                ((0.5, 0.9, 0.89, 0.9), 1.5),
                ((1, 1), 0),
                ((0.5, None, 0.9, None), 1),
                ((1, 1, 0.5), None),
                ((), None),
        ):
            self.assertEqual(series.local_since(self.samples(*local), 0.9), expected)

    def test_relocal(self):
        samples = self.samples(0, 1, 1, 0, 1, 0, 0, 0, 0.5, 0.9)
        self.assertEqual(series.local_since(samples, 0.9), 4.5)
        self.assertEqual(series.relocal(samples, 0.9, [1.5]), [3])
        self.assertEqual(series.relocal(samples, 0.9, [1.5, 2.25, 2.5]), [0.5, None, 2])
        self.assertEqual(series.relocal(samples, 0.9, []), [])

    def test_rate(self):
        samples = self.samples(1, 1, 1, 1, 1)
        self.assertEqual(series.rate(samples, 0.4, 2), 100)
        self.assertIsNone(series.rate(samples, 1.9, 2))
        self.assertIsNone(series.rate(samples, 3, 9))

    def test_phases(self):
        """At half speed until memory has moved, which takes from 2 s to 3 s, and alone from 6 s on."""
        shares = [(0, 0, 0.2), (1, 5, 0.2), (2, 10, 0.21), (2.5, 12, 0.6), (3, 15, 0.99), (6, 45, 1), (7, 50, None)]
        samples = [list(sample) for sample in shares]
        self.assertEqual(series.phases(samples, 1.5, 6, 7), {"home": [1.5, 7.5], "evidence": [0.5, 2.5], "moving": [1, 5],
                                                             "steady": [3, 30], "tail": [1, 5]})
        # No placer gives homes; or a home comes when memory is there.
        self.assertEqual(series.phases(samples, None, 6, 7)["evidence"], [2, 10])
        self.assertEqual(series.phases(samples, 4, 6, 7)["home"], [2, 10])
        # What stays where it is.
        still = [[at, done, 0.5] for at, done, _ in samples]
        self.assertEqual(series.phases(still, None, 6, 7), {"steady": [6, 45], "tail": [1, 5]})

    def test_recovered(self):
        """Nothing is done for a second after the change."""
        operations = [0, 50, 100, 150, 200, 200, 200, 250, 300, 350]
        samples = [[i / 2, n, None] for i, n in enumerate(operations)]
        self.assertEqual(series.recovered(samples, 2, 4.5), 1)
        self.assertIsNone(series.recovered(samples, 2, 3))
        self.assertIsNone(series.recovered(samples, 0, 4.5))


class Programs(unittest.TestCase):
    PAIR = {"scale": 1, "window": 0, "memory": "main", "order": "random"}

    def setUp(self):
        for name, value in (("tap.info", {"machine": {"cpus": [[0, 1, 2, 3], [4, 5, 6, 7], []]}}), ("os.cpu_count", 8)):
            patch = unittest.mock.patch(name, return_value=value)
            patch.start()
            self.addCleanup(patch.stop)

    def argv(self, name: str, bind: str = "", **more) -> list[str]:
        return programs.PROGRAMS[name].argv({**self.PAIR, **more}, bind)

    def test_all_are_known(self):
        self.assertEqual(set(programs.PROGRAMS), {*bench.WORKLOADS, *bench.MORE_WORKLOADS})
        for names in (bench.TIMED, bench.UNBOUND, bench.LENDING):
            self.assertLessEqual(set(names), set(programs.PROGRAMS))

    def test_threads(self):
        """They fill the machine, except for the uneven ones, which have half as many threads again."""
        for name, words in (("numa01", ("--threads=4", "--processes=2")), ("numa02", ("--threads=8", "--processes=1")),
                            ("multi-heap", ("--threads=4", "--processes=2")), ("uneven-swap", ("--threads=6", "--swap"))):
            for word in words:
                self.assertIn(word, self.argv(name))
        self.assertFalse([word for word in self.argv("ping-pong") if word.startswith(("--threads", "--sample"))])

    def test_order(self):
        """For workloads that visit lines."""
        for name, expected in (("numa01", True), ("uneven-swap", True), ("stream", False), ("ping-pong", False)):
            self.assertEqual("--order=random" in self.argv(name), expected, name)

    def test_places(self):
        for memory, bind, words in (
                ("main", "", ["--placement=main"]),
                ("placed", "", ["--bind=start", "--placement=local"]),
                ("main", "run", ["--bind=run", "--placement=local"]),
                ("main", "lend", ["--bind=lend", "--placement=process"]),
        ):
            self.assertEqual(programs.PROGRAMS["uneven"].places(memory, bind), words)
        self.assertEqual(programs.PROGRAMS["ping-pong"].places("main", "run"), ["--bind=run"])
        self.assertIn("--bytes=64M", self.argv("stall", bytes="64M"))
        self.assertFalse([word for word in self.argv("stall", bytes="") if word.startswith("--bytes")])

    def test_figures(self):
        samples = [[0, 0, 0.5], [1, 10, 0.92], [2, 20, 1], [4, 40, 0.5], [5, 50, 1], [8, 80, 1], [9, 81, 1]]
        result = {"samples": samples, "changes_s": [], "all_work_s": 8.5, "laps": 0, "operations": 81}
        found = programs.figures(dict(result))
        self.assertEqual(found, {"samples": samples, "changes_s": [], "all_work_s": 8.5, "laps": 0, "operations": 81, "local90_s": 5, "local95_s": 5,
                                 "rate_after_3s": 10, "rate_after_5s": 10})
        found = programs.figures({**result, "changes_s": [3.5, 6]})
        self.assertEqual((found["relocal90_s"], found["recovered_s"]), (2, 0.5))
        # A phase without a sample has no figures.
        self.assertIsNone(programs.figures({**result, "changes_s": [3.5, 6, 7]})["relocal90_s"])

    def test_figures_of_stalls(self):
        laps = [[0.0005, 9], [0.001, 7], [0.002, 6], [0.005, 3], [0.01, 1], [0.02, 0], [0.05, 0]]
        found = programs.figures({"samples": [], "changes_s": [], "all_work_s": 20, "laps": 100, "lap_worst_s": 0.012,
                                  "laps_of_s": laps})
        self.assertEqual((found["stall_worst_s"], found["stalls"]), (0.012, [7, 3, 1, 0]))
        self.assertNotIn("local90_s", found)


class Rows(unittest.TestCase):
    def collect(self, results: list[dict], cost: list[str] | None, problem: str = "") -> bench.Row:
        pairs = bench.plan(["numa01"], ["none"], 0)
        rows = {("numa01", "none"): bench.Row("numa01", "none")}
        bench.collect(rows, pairs, [json.dumps(result) for result in results], cost, problem)
        return rows["numa01", "none"]

    def test_good(self):
        row = self.collect([run(2.0)], [mark(0, 0, 0), mark(1, 3, 1)])
        self.assertEqual((row.errors, row.runs[0]["remote_share"]), ([], 0.25))

    def test_failed(self):
        marks = [mark(0, 0, 0), mark(1, 3, 1)]
        for results, cost, expected in (
                ([{"workload": "numa01", "system": "none", "window": 0, "error": "status 1"}], marks, "status 1"),
                ([run(2.0)], marks[:1], "the cost plugin did not see both marks"),
                ([], marks, "not run: the job never ended"),
        ):
            row = self.collect(results, cost, "the job never ended")
            self.assertEqual((row.runs, row.errors), ([], [expected]))

    def test_other_work(self):
        rows = [bench.Row("numa01", "none", [run(1, operations=4), run(1, operations=4)]),
                bench.Row("numa01", "kernel", [run(1, operations=2), run(1, operations=4)]),
                bench.Row("numa02", "none", [run(1, operations=2)]),
                bench.Row("uneven", "none", [run(1, operations=2), run(1, operations=4)])]
        bench.check_work(rows)
        self.assertEqual([len(row.runs) for row in rows], [2, 1, 1, 2])
        self.assertEqual([row.errors for row in rows], [[], ["2 operations, others did 4"], [], []])

    def test_figures(self):
        more = {"remote_share": 0.5}
        row = bench.Row("numa01", "none", [run(3.0, local90_s=1, **more), run(5.0, **more), run(4.0, local90_s=2, **more)])
        hard = bench.Row("numa01", "hard", [run(2.0, **more)])
        found = bench.figures(row, hard, row)
        self.assertEqual(found["kernel"], "6.1.0-1-amd64")
        self.assertEqual((found["median_s"], found["range_s"]), (4.0, 2.0))
        self.assertEqual((found["ratio_to_hard"], found["ratio_to_none"]), (2.0, 1))
        self.assertEqual((found["local90_s"], found["local95_s"], found["failed"]), (2, None, 0))
        self.assertEqual((found["operations_per_s"], found["throughput_after_3s"]), (25, None))
        self.assertNotIn("relocal90_s", found)
        found = bench.figures(row, None, None)
        self.assertEqual((found["ratio_to_hard"], found["ratio_to_none"]), (None, None))

    def test_profile(self):
        row = bench.Row("numa01", "kernel", [run(5.0, phases={"evidence": [3, 30], "steady": [2, 70]}),
                                             run(6.0, phases={"evidence": [4, 30], "steady": [2, 70]})])
        hard = bench.Row("numa01", "hard", [run(2.0, phases={"steady": [2, 100]})])
        found = bench.figures(row, hard, None)["profile"]
        self.assertEqual(found, {"evidence": {"s": 3.5, "lost_s": 2.9}, "steady": {"s": 2, "lost_s": 0.6}})
        self.assertEqual(bench.figures(hard, hard, None)["profile"]["steady"]["lost_s"], 0)
        self.assertNotIn("profile", bench.figures(row, None, None))
        self.assertEqual(bench.lost(bench.figures(row, hard, None)), "-, 2.90, -, 0.60, -")

    def test_throughput(self):
        """Those that count for a fixed time are slower by as much as they did less."""
        row = bench.Row("uneven", "none", [run(20, operations=75, rate_after_3s=4, rate_after_5s=6, recovered_s=1)])
        hard = bench.Row("uneven", "hard", [run(20, operations=100, rate_after_3s=5, rate_after_5s=5, recovered_s=0)])
        found = bench.figures(row, hard, None)
        self.assertEqual((found["ratio_to_hard"], found["throughput_after_3s"], found["throughput_after_5s"]), (1.333, 0.8, 1.2))
        for text in ("after 5 s x1.20", "seconds to as before the swap: 1.00"):
            self.assertIn(text, bench.remarks(found))
        short = bench.Row("uneven", "none", [*row.runs, run(20, rate_after_3s=None)])
        self.assertIsNone(bench.figures(short, hard, None)["throughput_after_3s"])

    def test_stalls(self):
        row = bench.Row("stall", "none", [run(20, stall_worst_s=0.003, stalls=[2, 0, 0, 0]),
                                          run(20, stall_worst_s=0.006, stalls=[5, 1, 0, 0])])
        found = bench.figures(row, None, row)
        self.assertEqual((found["stall_worst_s"], found["stall_worst_of_s"]), (0.006, [0.003, 0.006]))
        self.assertEqual(found["stalls"], [7, 1, 0, 0])
        self.assertIn("worst stall 6.0 ms; from 1/5/10/20 ms: 7/1/0/0", bench.remarks(found))

    def test_phases(self):
        row = bench.Row("phase-changer", "none", [run(9, relocal90_s=None), run(9, relocal90_s=0.5), run(9, relocal90_s=0.7)])
        self.assertIn("seconds to 90 % local after a change: 0.70", bench.remarks(bench.figures(row, None, None)))
        del row.runs[1:]
        self.assertIn("after a change: never", bench.remarks(bench.figures(row, None, None)))

    def test_never_is_late(self):
        self.assertIsNone(bench.median([1, None, None]))
        self.assertIsNone(bench.median([1, None]))
        self.assertEqual(bench.median([1, 3, None]), 3)


class Keeping(unittest.TestCase):
    def test_kept(self):
        """Successful results are found again, with the same settings and for the same runs."""
        pairs = bench.plan(["numa01"], ["none"], 0)
        with tempfile.TemporaryDirectory() as directory:
            args = argparse.Namespace(**dict.fromkeys(bench.SETTINGS, ""), keep=f"{directory}/kept", build=directory)
            good = bench.Guest([json.dumps(run(2.0))], [mark(0, 0, 0), mark(1, 3, 1)])
            for number, guest in enumerate((good, bench.Guest(good.results, good.cost, "left behind: numa_balancing: 0"), bench.Guest([], good.cost),
                                            bench.Guest([json.dumps({"error": "status 1"})], good.cost),
                                            bench.Guest(good.results, good.cost[:1]))):
                bench.Kept(args.keep, args).add(number, pairs, guest)
            with open(args.keep, "a", encoding="utf-8") as file:
                file.write('{"of": half a li')
            bench.Kept(args.keep, args).add(5, pairs, good)
            kept = bench.Kept(args.keep, args)
            self.assertEqual([kept.find(number, pairs) for number in (0, 1, 5)], [good, good, good])
            self.assertEqual([kept.find(number, pairs) for number in (2, 3, 4)], [None] * 3)
            self.assertIsNone(kept.find(0, bench.plan(["numa01"], ["none", "hard"], 0)))
            args.scale = 2
            self.assertIsNone(bench.Kept(args.keep, args).find(0, pairs))
        self.assertIsNone(bench.Kept("", args).find(0, pairs))


class Table(unittest.TestCase):
    def test_rows(self):
        good = bench.figures(bench.Row("numa01", "none", [run(3.0, remote_share=0.5)]), None, None)
        some = bench.figures(bench.Row("numa01", "kernel", [run(3.0, remote_share=0.5)], ["status 1"]), None, None)
        none = bench.figures(bench.Row("numa01", "hard", [], ["no boot"]), None, None)
        lines = bench.table([bench.HEAD, *map(bench.table_row, (good, some, none))]).splitlines()
        self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")})
        self.assertEqual(len(lines), 5)
        # No row has figures about others here.
        self.assertNotIn("to hard", lines[0])
        self.assertNotIn("FAILED", lines[2])
        for word in ("3.00", "50.0%", "never"):
            self.assertIn(word, lines[2])
        self.assertIn("FAILED 1 of 2: status 1", lines[3])
        self.assertIn("FAILED: no boot", lines[4])


if __name__ == "__main__":
    unittest.main()
