#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adds up the results of `meson test` in several build directories and prints the closing line.

Every test executable counts once per build directory. Skipped ones are named, because a silent skip would pass for
success; exits non-zero on any failure, and when nothing ran at all.
"""

import json
import pathlib
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}


def main() -> int:
    passed = failed = skipped = 0
    for directory in sys.argv[1:]:
        log = pathlib.Path(directory) / "meson-logs" / "testlog.json"
        if not log.exists():
            print(f"{directory}: no test log", file=sys.stderr)
            failed += 1
            continue
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            entry = json.loads(line)
            result = entry["result"]
            if result in PASSED:
                passed += 1
            elif result in SKIPPED:
                skipped += 1
                print(f"skipped: {directory}: {entry['name']}")
            else:
                failed += 1
                print(f"failed: {directory}: {entry['name']}: {result}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
