#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demonstration where there is nothing to lend: with one CPU it says so and does nothing else; when others use all CPUs it says
who, and shows the rest.

usage: test-elsewhere.py BUILD
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

DEMO = pathlib.Path(__file__).with_name("demo.py")

NOT_HERE = 77
HANG_SEC = 400


def demonstrate(build: str, cpus: set[int]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(DEMO), "--build", build, "--pairs=1", "--json"], capture_output=True, text=True,
                          timeout=HANG_SEC, check=False, preexec_fn=lambda: os.sched_setaffinity(0, cpus))


def check(said: subprocess.CompletedProcess, condition: bool) -> None:
    if not condition:
        sys.exit(f"exit {said.returncode}\n{said.stdout}\n{said.stderr}")


@contextlib.contextmanager
def busy(cpus: set[int]):
    """A loop on each CPU."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu}))
             for cpu in cpus]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> None:
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        print("needs root and two CPUs")
        sys.exit(77)
    cpus = os.sched_getaffinity(0)

    said = demonstrate(sys.argv[1], {min(cpus)})
    check(said, said.returncode == NOT_HERE and said.stdout == "")
    check(said, said.stderr.count("\n") == 1 and "needs two CPUs" in said.stderr)

    with busy(cpus):
        said = demonstrate(sys.argv[1], cpus)
    check(said, said.returncode == NOT_HERE)
    check(said, said.stderr.count("\n") == 1 and "stealing and recall could not be shown" in said.stderr and "sh " in said.stderr)
    result = json.loads(said.stdout.splitlines()[-1])
    check(said, result["restored"] and result["steal_ratio"] is None and result["lends"] == 0)
    check(said, result["others_cpus"] > 0)


if __name__ == "__main__":
    main()
