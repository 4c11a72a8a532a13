#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kill campaign: kills.py in guests of several nodes.

Trials come by turns from the suites and machines below; which one a trial gets follows from its number.
"""

import sys

import guests
import progress

# Guests of at least four CPUs, with homes of one, two and four CPUs.
PLACES = (("trixie", "4x2"), ("bookworm", "4x2"), ("trixie", "2x4-llc"), ("bookworm", "2x2"), ("trixie", "2x2"), ("bookworm", "4x1"))
PORTION = 50


def portion(args, first: int) -> guests.Portion:
    suite, machine = PLACES[first // PORTION % len(PLACES)]
    count = min(PORTION - first % PORTION, args.first + args.trials - first)
    return guests.Portion(tuple(range(first, first + count)), suite, machine,
                          f"kills.py --seed {args.seed} --first {first} --trials {count} --kills {args.kills}")


def total(results: list[dict]) -> dict:
    return {name: sum(result.get(name, 0) for result in results) for name in ("kills", "by_call", "restores_killed", "placed", "fenced")}


def main() -> int:
    parser = guests.parser("kill", __doc__)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first trial (default: 0)")
    parser.add_argument("--trials", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--kills", type=int, default=10, metavar="N", help="in each (default: 10)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what all chance follows from (default: 1)")
    args = parser.parse_args()
    done = progress.Progress("kill", {"seed": args.seed, "first": args.first, "kills": args.kills}, args.again)
    firsts = [number for number in range(args.first, args.first + args.trials) if number == args.first or number % PORTION == 0]
    return guests.run(args, done, [portion(args, first) for first in firsts], total)


if __name__ == "__main__":
    sys.exit(main())
