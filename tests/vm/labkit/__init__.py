# SPDX-License-Identifier: LGPL-2.1-or-later
"""The VM lab: multi-node guests in which the program is tried on real kernels."""

import pathlib
import sys

VM = pathlib.Path(__file__).resolve().parent.parent
SOURCE = VM.parent.parent
IMAGES = SOURCE / "build-lab" / "images"
# The last is trixie with the kernel of its backports: Debian's newest, for the asking (--suite).
SUITES = ("bookworm", "trixie", "backports")
USUAL_SUITES = SUITES[:2]


class LabError(Exception):
    """Something is wrong with what the lab was asked for, or with what it was given."""


class Unavailable(LabError):
    """The lab cannot be had on this machine: a program or the network is missing. Tests skip, saying so."""


def release(suite: str) -> str:
    """The release of Debian that a suite's programs are from."""
    return "trixie" if suite == "backports" else suite


def note(text: str) -> None:
    print(f"-- lab: {text}", file=sys.stderr, flush=True)
