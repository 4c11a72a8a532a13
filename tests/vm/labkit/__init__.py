# SPDX-License-Identifier: LGPL-2.1-or-later
"""The VM lab: multi-node guests in which the program is tried on real kernels."""

import pathlib
import sys

VM = pathlib.Path(__file__).resolve().parent.parent
SOURCE = VM.parent.parent
IMAGES = SOURCE / "build-lab" / "images"
# The last is trixie with the kernel of its backports, Debian's newest; it runs only on request (--suite).
SUITES = ("bookworm", "trixie", "backports")
USUAL_SUITES = SUITES[:2]


class LabError(Exception):
    """The request to the lab, or its input, is wrong."""


class Unavailable(LabError):
    """The lab is not available on this machine: a program or the network is missing. Tests are skipped with that
    reason."""


def release(suite: str) -> str:
    """The Debian release of a suite's programs."""
    return "trixie" if suite == "backports" else suite


def note(text: str) -> None:
    print(f"-- lab: {text}", file=sys.stderr, flush=True)
