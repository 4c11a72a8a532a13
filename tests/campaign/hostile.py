#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hostile campaign: hostility.py in guests, one for each case, with room for a hundred thousand threads.

What takes a file system that never answers (FUSE), which Debian's kernels have as a module and the guests have not, is done on this machine.
"""

import sys

import guests
import progress

CASES = ("nothing", "threads", "mappings", "names", "masks", "cgroups", "forks", "flood", "deaf", "hang")
HERE = ("hang",)


def portion(args, name: str) -> guests.Portion:
    return guests.Portion((name,), "" if name in HERE else "trixie", "2x2-large", f"hostility.py --probes {args.probes} {name}", parallel=True)


def total(results: list[dict]) -> dict:
    return {"placed_sec": max(max(result.get("placed_sec_1", 0), result.get("placed_sec_2", 0)) for result in results),
            "late_usec": max(result.get("late_usec", 0) for result in results)}


def main() -> int:
    parser = guests.parser("hostile", __doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []], help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--probes", type=int, default=10, metavar="N", help="newcomers in each of two rounds (default: 10)")
    args = parser.parse_args()
    done = progress.Progress("hostile", {"probes": args.probes}, args.again)
    return guests.run(args, done, [portion(args, name) for name in args.cases or CASES], total)


if __name__ == "__main__":
    sys.exit(main())
