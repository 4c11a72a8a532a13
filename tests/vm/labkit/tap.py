# SPDX-License-Identifier: LGPL-2.1-or-later
"""The output of a job: TAP, JSON results, and the lab's own first and last line."""

import re
from dataclasses import dataclass, field

BEGIN = "lab: begin"
END = re.compile(r"^lab: end (\d+)$")
# What a job left behind, one per line; the guest prints it before the end (guest/run.sh).
LEFT = "lab: left "
# Exit status of timeout(1), by which the guest ends a job at its limit.
OVER = 124
PLAN = re.compile(r"^1\.\.(\d+)\s*(#\s*skip\b.*)?$", re.IGNORECASE)
POINT = re.compile(r"^(not )?ok\b(.*)$")
SKIP = re.compile(r"#\s*skip\b(.*)$", re.IGNORECASE)


@dataclass
class Output:
    """Several programs may each print a plan: the sum of the plans is what must have been tested. The job may begin
    several times, when the guest is booted again in between: `boots`."""

    boots: int = 1
    begins: int = 0
    status: int | None = None
    planned: int | None = None
    points: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def feed(self, line: str) -> None:
        if line == BEGIN:
            self.begins += 1
        elif match := END.match(line):
            self.status = int(match[1])
        elif line.startswith(LEFT):
            self.left.append(line.removeprefix(LEFT))
        elif line.startswith("{"):
            self.results.append(line)
        elif match := PLAN.match(line):
            self.planned = (self.planned or 0) + int(match[1])
            if match[1] == "0" and match[2]:
                self.skipped.append(match[2].lstrip("# "))
        elif match := POINT.match(line):
            self.points += 1
            # cmocka up to 1.1.5 calls a skipped test "not ok".
            if SKIP.search(match[2]):
                self.skipped.append(line)
            elif match[1]:
                self.failed.append(line)

    @property
    def begun(self) -> bool:
        return self.begins > 0

    def problems(self) -> list[str]:
        """Why the job did not pass; empty when it did."""
        found = list(self.failed)
        if not self.begun:
            return ["the guest never reached the job"]
        if self.begins != self.boots:
            found.append(f"the job began {self.begins} times, expected {self.boots}")
        if self.status is None:
            found.append("the job never ended")
        elif self.status == OVER:
            found.append("the job was still running at its limit, or ended with status 124")
        elif self.status:
            found.append(f"the job ended with status {self.status}")
        if self.planned is None:
            found.append("no TAP plan")
        elif self.planned != self.points:
            found.append(f"{self.points} tests of {self.planned} planned")
        return found + [f"left behind: {line}" for line in self.left]

    def all_skipped(self) -> bool:
        return bool(self.skipped) and len(self.skipped) >= self.points


class Series:
    """The output of the jobs of one guest, one after the other. A job owns the guest's output until its end line, so
    a line that looks like the beginning of the next job is its own."""

    def __init__(self, count: int, boots: int = 1):
        self.outputs = [Output(boots) for _ in range(count)]
        self.current = -1

    def feed(self, line: str) -> int | None:
        """Returns the number of the job to which the line belongs."""
        over = self.current < 0 or self.outputs[self.current].status is not None
        if over and line == BEGIN and self.current + 1 < len(self.outputs):
            self.current += 1
        if self.current < 0:
            return None
        self.outputs[self.current].feed(line)
        return self.current

    @property
    def begun(self) -> int:
        """How many have."""
        return self.current + 1


def parse(text: str, boots: int = 1) -> Output:
    output = Output(boots)
    for line in text.splitlines():
        output.feed(line.rstrip())
    return output
