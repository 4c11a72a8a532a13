#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl report: the day in numbers, and as a page in a browser without network."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import lib

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
# What a reader would see: where each area and curve is in its picture, and whether anything was fetched.
LOOK = """<script>
const pictures = [...document.querySelectorAll("svg")].map(svg => ({
    title: svg.querySelector("title").textContent, width: svg.getBoundingClientRect().width,
    shapes: [...svg.querySelectorAll("path:not(.g)")].map(path => {
        const box = path.getBBox(), style = getComputedStyle(path);
        return {x: box.x, y: box.y, width: box.width, height: box.height, fill: style.fill, stroke: style.stroke};
    })}));
const seen = {pictures, fetched: performance.getEntriesByType("resource").length, wide: document.documentElement.scrollWidth};
document.body.replaceChildren();
document.body.id = "seen";
document.body.textContent = JSON.stringify(seen);
</script></body>"""


class Strict(html.parser.HTMLParser):
    """Every element is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


class Report(lib.DaemonTest):
    def observed(self):
        """A daemon that has placed a process and sampled it a few times."""
        self.write_policy()
        workload = self.spinner("--threads=1")
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        lib.wait_until("it to be seen running", lambda: any(row["run_permille"] >= 10 for step in self.steps(daemon) for row in step["workloads"]))
        return daemon, workload

    def steps(self, daemon):
        run = daemon.ctl_run("--json=short", "report")
        return json.loads(run.stdout)["steps"] if run.returncode == 0 else []

    def page(self, daemon):
        path = self.directory / "report.html"
        run = daemon.ctl_run("report", f"--html={path}")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        return path.read_text(encoding="utf-8")

    def test_numbers(self):
        daemon, _ = self.observed()
        report = daemon.ctl("report")
        self.assertEqual([row["workload"] for row in report["workloads"]], ["50-test"])
        row = report["workloads"][0]
        self.assertGreater(row["run_permille"], 0)
        self.assertTrue(row["nodes"].startswith("0: "), row)
        self.assertGreaterEqual(report["homes"], 1)
        self.assertGreater(report["cpu_usec"], 0)
        self.assertGreater(report["end_realtime_usec"], report["begin_realtime_usec"])
        self.assertEqual(report["homes"], sum(step["homes"] for step in report["steps"]))
        text = daemon.ctl_run("report").stdout
        self.assertRegex(text, r"Time: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to ")
        self.assertRegex(text, r"Done: \d+ homes? set")
        self.assertRegex(text, r"(?m)^50-test +\d+\.\d\d")

    def test_idle(self):
        """Of next to nothing there are no shares."""
        self.write_policy()
        workload = lib.Workload(self, ["sleep", "1000"], self.mark)
        daemon = self.daemon().ready()
        lib.wait_until("a look", lambda: any(step["workloads"] for step in self.steps(daemon)))
        row, = daemon.ctl("report")["workloads"]
        self.assertLess(row["run_permille"], 10, workload)
        self.assertNotIn("waits_permille", row)
        self.assertEqual(row["nodes"], "")
        self.assertRegex(daemon.ctl_run("report").stdout, r"(?m)^50-test +\d+\.\d\d +- .* -$")
        self.assertRegex(self.page(daemon), r"<td>50-test</td><td class=\"n\">\d+\.\d\d</td><td class=\"n\">-</td>")

    def test_since(self):
        daemon, _ = self.observed()
        self.assertTrue(daemon.ctl("report", "--since=1h")["steps"])
        self.assertEqual(len(daemon.ctl("report", "--since=1us")["steps"]), 1)
        run = daemon.ctl_run("--json=short", "report", f"--html={self.directory}/x")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        for bad in ("soon", "0", "-1h", ""):
            run = daemon.ctl_run("report", f"--since={bad}")
            self.assertEqual(run.returncode, 2, bad)
            self.assertIn("expected a time span", run.stderr)

    def test_page(self):
        daemon, workload = self.observed()
        page = self.page(daemon)
        parser = Strict()
        parser.feed(page)
        parser.close()
        self.assertEqual(parser.open, [])
        self.assertIn("50-test", parser.text)
        self.assertTrue(any(f"[{workload.pid}]" in text for text in parser.text), "no move on the page")
        self.assertIsNone(re.search(r"https?:|src=|<link|<script|url\(", page))

    def test_page_escapes(self):
        """A command's name is foreign text."""
        program = self.directory / "<b>&x"
        shutil.copy(lib.SPINNER, program)
        self.write_policy()
        workload = lib.Workload(self, [program], self.mark)
        daemon = self.daemon().ready()
        self.wait_home(daemon, workload)
        lib.wait_until("a look", lambda: self.steps(daemon))
        page = self.page(daemon)
        self.assertIn("&lt;b&gt;&amp;x", page)
        self.assertNotIn("<b>", page)

    def test_not_written(self):
        daemon, _ = self.observed()
        run = daemon.ctl_run("report", f"--html={self.directory}/nowhere/report.html")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)

    @unittest.skipUnless(BROWSER or os.environ.get("CI") == "true", "there is no chromium")
    def test_browser(self):
        daemon, _ = self.observed()
        path = self.directory / "looked-at.html"
        path.write_text(self.page(daemon).replace("</body>", LOOK), encoding="utf-8")
        with tempfile.TemporaryDirectory() as home:
            # Tests in a container run as root, and /dev/shm is small there.
            run = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,800",
                                  f"--user-data-dir={home}", "--dump-dom", path.as_uri()],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=lib.DEADLINE_SEC,
                                 env={**os.environ, "HOME": home})
        found = re.search(r'<body id="seen">(.*?)</body>', run.stdout, re.DOTALL)
        self.assertTrue(found, run.stdout + run.stderr)
        seen = json.loads(found[1])
        self.assertEqual(seen["fetched"], 0)
        self.assertLessEqual(seen["wide"], 1000)
        pictures = {picture["title"]: picture for picture in seen["pictures"]}
        self.assertEqual(len(pictures), 6, list(pictures))
        for title, picture in pictures.items():
            self.assertGreater(picture["width"], 500, title)
            for shape in picture["shapes"]:
                self.assertGreaterEqual(shape["x"], 0, title)
                self.assertLessEqual(shape["x"] + shape["width"], 961, title)
                self.assertLessEqual(shape["y"] + shape["height"], 121, title)
        area = pictures["CPUs in use, by node"]["shapes"][0]
        self.assertGreater(area["width"] * area["height"], 1000)
        self.assertEqual(area["fill"], "rgb(68, 119, 170)")


if __name__ == "__main__":
    unittest.main()
