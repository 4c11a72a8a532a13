# SPDX-License-Identifier: LGPL-2.1-or-later
"""The VM lab: multi-node guests in which the program is tried on real kernels."""

import pathlib
import sys

VM = pathlib.Path(__file__).resolve().parent.parent
SOURCE = VM.parent.parent
IMAGES = SOURCE / "build-lab" / "images"
SUITES = ("bookworm", "trixie")


class LabError(Exception):
    """Something is wrong with what the lab was asked for, or with what it was given."""


class Unavailable(LabError):
    """The lab cannot be had on this machine: a program or the network is missing. Tests skip, saying so."""


def note(text: str) -> None:
    print(f"-- lab: {text}", file=sys.stderr, flush=True)
