#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ctrl-C during the demonstration leaves the machine as it was: no process, no directory, exit 130.

usage: test-interrupt.py BUILD
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

DEMO = pathlib.Path(__file__).with_name("demo.py")

HANG_SEC = 120


def descendants_with(tag: str) -> list[int]:
    """Processes with the demonstration's variable in their environment."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if tag.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def interrupt(build: str, marker: str) -> None:
    """Starts the demonstration, interrupts it as soon as it has printed `marker`, and checks what is left."""
    with tempfile.TemporaryDirectory() as directory:
        env = dict(os.environ, TMPDIR=directory, PYTHONUNBUFFERED="1")
        # A session of its own, so that only the demonstration gets the signal; it also puts its children in other
        # sessions.
        demo = subprocess.Popen([sys.executable, str(DEMO), "--build", build], env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)
        said = []
        for line in demo.stdout:
            said.append(line)
            if marker in line:
                break
        else:
            sys.exit(f"the demonstration ended before it said '{marker}':\n" + "".join(said))
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=HANG_SEC)
        if demo.returncode != 130:
            sys.exit(f"after '{marker}': exit {demo.returncode}, expected 130:\n" + "".join(said) + rest)
        left = os.listdir(directory)
        if left:
            sys.exit(f"after '{marker}': left behind {left}")
        deadline = time.monotonic() + HANG_SEC
        while descendants_with(f"NUMAPLACE_DEMO={demo.pid}-"):
            if time.monotonic() > deadline:
                sys.exit(f"after '{marker}': processes {descendants_with(f'NUMAPLACE_DEMO={demo.pid}-')} still run")
            time.sleep(0.05)


def main() -> None:
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        print("needs root and two CPUs")
        sys.exit(77)
    before = os.sched_getaffinity(0)
    interrupt(sys.argv[1], "CPUs")  # the workloads are starting
    interrupt(sys.argv[1], "home")  # confined
    interrupt(sys.argv[1], "work/s")  # after the first round of lending
    if os.sched_getaffinity(0) != before:
        sys.exit("the affinity of this process changed")


if __name__ == "__main__":
    main()
