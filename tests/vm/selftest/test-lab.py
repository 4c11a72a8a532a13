# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lab reports what went wrong in a guest, shows the end of the console, continues with the next case, and leaves
nothing behind.

usage: test-lab.py BUILD. Exit status 77 where the lab cannot run.
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

VM = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
# Far above the time of an emulated boot on a crowded machine; only a hang reaches it.
DEADLINE_SEC = 300

HEADING = re.compile(r"^(passed|failed|skipped): (\S+) \(")


def lab_argv(case: str, directory: str) -> list[str]:
    return [sys.executable, str(VM / "lab.py"), "run", case, "--cases-dir", str(VM / directory), "--build", str(BUILD)]


def guests() -> list[int]:
    """Guests of this build directory: their command lines name its log directory."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"qemu-system" in word for word in argv[:4]) and any(str(BUILD / "lab").encode() in word for word in argv):
            found.append(int(entry.name))
    return found


def wait_until(what: str, predicate) -> None:
    end = time.monotonic() + DEADLINE_SEC
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"waited {DEADLINE_SEC} s for: {what}")
        time.sleep(0.1)


class Verdicts(unittest.TestCase):
    """One run of all cases; each test examines one of them."""

    @classmethod
    def setUpClass(cls):
        cls.run_all = subprocess.run(lab_argv("all", "selftest"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        print(cls.run_all.stdout, cls.run_all.stderr, sep="\n")
        cls.reports, current = {}, []
        for line in cls.run_all.stdout.splitlines():
            if match := HEADING.match(line):
                current = cls.reports[match[2]] = [match[1]]
            elif line.startswith("-- "):
                current = []
            else:
                current.append(line)

    def failed(self, name: str, why: str, console: str) -> None:
        report = self.reports[name]
        self.assertEqual(report[0], "failed", report)
        self.assertIn(why, "\n".join(line for line in report if not line.startswith("  |")))
        self.assertIn(console, "\n".join(line for line in report if line.startswith("  |")))

    def record(self, name: str) -> dict:
        return json.loads((BUILD / "lab" / name / "result.json").read_text(encoding="utf-8"))

    def test_disk_full(self):
        self.failed("bookworm/disk-full", "the job ended with status 1", "lab: about to fill the disk")
        self.assertIn("No space left on device", self.run_all.stdout)

    def test_drift(self):
        report = self.reports["bookworm/drift"]
        wrong = {line.split()[4] for line in report if line.startswith("  not ok")}
        self.assertLessEqual({"Calibration.test_local", "Calibration.test_instructions", "Calibration.test_streams", "Calibration.test_kernel"}, wrong)
        # Both latencies are wrong by the same factor.
        self.assertNotIn("Calibration.test_ratios", wrong)
        self.assertTrue([line for line in report if "(key='round_trip_near_nsec')" in line], report)

    def test_early_off(self):
        self.failed("bookworm/early-off", "the job never ended", "lab: about to power off")

    def test_flood(self):
        self.failed("bookworm/flood", "more than 64 MB of output: killed", "lab: about to print")

    def test_hang(self):
        self.failed("bookworm/hang", "the job was still running at its limit", "lab: about to hang")

    def test_never_ready(self):
        self.failed("bookworm/never-ready", "not booted after 20 s of CPU time: killed", "systemd")

    def test_no_boot(self):
        for suite in ("bookworm", "trixie"):
            self.failed(f"{suite}/no-boot", "the guest never reached the job", "Kernel panic")
            self.assertEqual(self.record(f"{suite}-no-boot")["boots"], 3)
            self.assertEqual(self.run_all.stderr.count(f"{suite}/no-boot: boot"), 2)

    def test_not_ok(self):
        self.failed("bookworm/not-ok", "not ok 2 - this is not", "Power down")
        self.assertIn("  skipped: ok 3 - cannot be tested # SKIP for a reason", self.reports["bookworm/not-ok"])
        results = (BUILD / "lab" / "bookworm-not-ok" / "results.jsonl").read_text(encoding="utf-8")
        self.assertEqual(results, '{"key": "value"}\n')

    def test_panic(self):
        for suite in ("bookworm", "trixie"):
            self.failed(f"{suite}/panic", "the job never ended", "Kernel panic - not syncing: sysrq triggered crash")
            # Guests may be booted again, which happens (a CPU that spins at boot), but only before the job begins.
            said = self.run_all.stdout.split(f"-- {suite}/2x2: panic")[-1].split("\n-- ")[0].splitlines()
            self.assertEqual(said.count("  lab: begin"), 1, "a job is never repeated")

    def test_skips(self):
        self.assertEqual(self.reports["bookworm/skips"][0], "skipped")

    def test_the_others_go_on(self):
        self.assertEqual(self.reports["bookworm/zz-passes"][0], "passed")
        self.assertIn("1 passed, 11 failed, 1 skipped", self.run_all.stdout)
        self.assertEqual(self.run_all.returncode, 1)

    def test_nothing_is_left(self):
        self.assertEqual(guests(), [])
        self.assertEqual(list(BUILD.glob(".disk-*")), [])


class Killed(unittest.TestCase):
    """The guest ends with the program that started it, however that ends."""

    def begin(self) -> subprocess.Popen:
        argv = lab_argv("sleeps", "selftest/killed")
        lab = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lab.stdout.close)
        self.addCleanup(lab.wait)
        self.addCleanup(lab.kill)
        said = []
        for line in lab.stdout:
            said.append(line)
            if line.strip() == "lab: begin":
                self.assertEqual(len(guests()), 1)
                return lab
        return self.fail(f"the lab ended by itself: {said}")

    def end(self, lab: subprocess.Popen, signal_number: int) -> None:
        lab.send_signal(signal_number)
        lab.wait()
        wait_until("the guest to be gone", lambda: not guests())

    def test_terminated(self):
        self.end(self.begin(), signal.SIGTERM)
        self.assertEqual(list(BUILD.glob(".disk-*")), [])

    def test_killed(self):
        self.end(self.begin(), signal.SIGKILL)
        for left in BUILD.glob(".disk-*"):
            for path in left.iterdir():
                path.unlink()
            left.rmdir()


def main() -> None:
    built = subprocess.run([sys.executable, str(VM / "lab.py"), "build"], check=False).returncode
    if built:
        sys.exit(built)
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
