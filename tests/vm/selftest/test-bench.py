# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the placement benchmark computes on the host, without a guest."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from labkit import LabError, bench_placement as bench  # noqa: E402


def mark(number: int, local: int, remote: int, event: str = "mark") -> str:
    """A report of two CPUs, the second of which missed twice as often."""
    def cpu(factor: int) -> dict:
        return {"user_local": local * factor, "user_remote": remote * factor, "kernel_local": 0, "kernel_remote": 0,
                "line_local": 0, "line_remote": 0}
    return json.dumps({"event": event, "number": number, "cpus": [cpu(1), cpu(2)]})


def run(seconds: float, window: int = 0, system: str = "none", **more) -> dict:
    return {"workload": "numa01", "system": system, "window": window, "seconds": seconds, "converged_s": None,
            "system_cpu_s": 1, "pages_moved": 0, "daemon_cpu_s": 0, "note": "", **more}


class Plan(unittest.TestCase):
    def test_rounds_turn(self):
        firsts = [bench.plan(["numa01"], ["none", "kernel", "hard"], number, 1, "main")[0]["system"] for number in range(4)]
        self.assertEqual(firsts, ["none", "kernel", "hard", "none"])

    def test_every_pair_once(self):
        pairs = bench.plan(list(bench.WORKLOADS), list(bench.SYSTEMS), 1, 0.5, "main")
        self.assertEqual(len({(pair["workload"], pair["system"]) for pair in pairs}), len(bench.WORKLOADS) * len(bench.SYSTEMS))
        self.assertEqual([pair["window"] for pair in pairs], list(range(0, 2 * len(pairs), 2)))

    def test_too_many(self):
        with self.assertRaises(LabError):
            bench.plan([str(number) for number in range(bench.WINDOWS_MAX + 1)], ["none"], 0, 1, "main")

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


class Rows(unittest.TestCase):
    def collect(self, results: list[dict], cost: list[str], problem: str = "") -> bench.Row:
        pairs = bench.plan(["numa01"], ["none"], 0, 1, "main")
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
                bench.Row("numa02", "none", [run(1, operations=2)])]
        bench.check_work(rows)
        self.assertEqual([len(row.runs) for row in rows], [2, 1, 1])
        self.assertEqual([row.errors for row in rows], [[], ["2 operations, others did 4"], []])

    def test_figures(self):
        more = {"remote_share": 0.5}
        row = bench.Row("numa01", "none", [run(3.0, converged_s=1, **more), run(5.0, **more), run(4.0, converged_s=2, **more)])
        hard = bench.Row("numa01", "hard", [run(2.0, **more)])
        found = bench.figures(row, hard)
        self.assertEqual((found["median_s"], found["range_s"], found["ratio_to_hard"]), (4.0, 2.0, 2.0))
        self.assertEqual((found["converged_s"], found["failed"]), (2, 0))
        self.assertIsNone(bench.figures(row, None)["ratio_to_hard"])

    def test_never_is_late(self):
        self.assertIsNone(bench.median([1, None, None]))
        self.assertIsNone(bench.median([1, None]))
        self.assertEqual(bench.median([1, 3, None]), 3)


class Table(unittest.TestCase):
    def test_rows(self):
        good = bench.figures(bench.Row("numa01", "none", [run(3.0, remote_share=0.5)]), None)
        some = bench.figures(bench.Row("numa01", "kernel", [run(3.0, remote_share=0.5)], ["status 1"]), None)
        none = bench.figures(bench.Row("numa01", "hard", [], ["no boot"]), None)
        lines = bench.table([good, some, none]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual(len(lines), 5)
        self.assertNotIn("FAILED", lines[2])
        for word in ("3.00", "50.0%", "never"):
            self.assertIn(word, lines[2])
        self.assertIn("FAILED 1 of 2: status 1", lines[3])
        self.assertIn("FAILED: no boot", lines[4])


if __name__ == "__main__":
    unittest.main()
