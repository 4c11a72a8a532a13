# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon's integration tests, which elsewhere run on emulated nodes, on real ones.

usage: integration.py NAME..   of /lab/integration, without .py
"""

import importlib.util
import pathlib
import sys

import tap


def load(name: str):
    """Imports a test whose name has hyphens."""
    spec = importlib.util.spec_from_file_location(name, pathlib.Path("/lab/integration") / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Ten thousand forks take minutes on emulated CPUs, and do not depend on nodes.
    if hasattr(module, "Churn"):
        del module.Churn
    return module


if __name__ == "__main__":
    tap.main(*map(load, sys.argv[1:]))
