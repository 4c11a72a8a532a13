# SPDX-License-Identifier: LGPL-2.1-or-later
"""unittest's tests as TAP, for cases in Python: end the file with tap.main()."""

import json
import pathlib
import sys
import time
import traceback
import unittest


def info() -> dict:
    """The lab's description of this guest: suite, case, machine, cost."""
    return json.loads(pathlib.Path("/lab/info.json").read_text(encoding="utf-8"))


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.bad = set()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.say(f"# {time.monotonic() - self.started:.1f} s")

    def say(self, line: str) -> None:
        print(line, flush=True)

    def point(self, test, error=None, skip: str | None = None) -> None:
        self.number += 1
        if error:
            self.bad.add(test)
            for line in "".join(traceback.format_exception(*error)).splitlines():
                self.say(f"# {line}")
        suffix = f" # SKIP {skip}" if skip is not None else ""
        self.say(f"{'not ok' if error else 'ok'} {self.number} - {test.id().removeprefix('__main__.')}{suffix}")

    def addSuccess(self, test):
        self.point(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.point(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.point(test, err)

    def addSkip(self, test, reason):
        self.point(test, skip=reason)

    def addSubTest(self, test, subtest, err):
        """Only failures are reported; the test as a whole is one point, and unittest does not call addSuccess() then."""
        super().addSubTest(test, subtest, err)
        if err and test not in self.bad:
            self.point(subtest, err)
            self.bad.add(test)


def main(*modules) -> None:
    """Runs the tests of the program itself, or of these modules; with arguments only these: Class.test_name."""
    loader, own = unittest.defaultTestLoader, sys.modules["__main__"]
    if sys.argv[1:] and not modules:
        suite = loader.loadTestsFromNames(sys.argv[1:], own)
    else:
        suite = unittest.TestSuite(loader.loadTestsFromModule(module) for module in modules or [own])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = Result()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
