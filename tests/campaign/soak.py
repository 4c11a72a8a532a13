#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The soak campaign: soaking.py in guests, some hours each by their clocks."""

import sys

import guests
import progress

PLACES = (("trixie", "2x2"), ("bookworm", "4x2"))


def main() -> int:
    parser = guests.parser("soak", __doc__)
    parser.add_argument("--minutes", type=int, default=120, metavar="N", help="by the guest's clock (default: 120)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what all chance follows from (default: 1)")
    args = parser.parse_args()
    done = progress.Progress("soak", {"seed": args.seed, "minutes": args.minutes}, args.again)
    return guests.run(args, done, [
        guests.Portion((f"soak-{number}",), suite, machine,
                       f"soaking.py --seed {args.seed} --minutes {args.minutes} --trial soak-{number}",
                       limit_sec=args.minutes * 60 + 600) for number, (suite, machine) in enumerate(PLACES)],
        lambda results: {"steps": sum(result.get("steps", 0) for result in results), "wrong": sum(result.get("wrong", 0) for result in results)})


if __name__ == "__main__":
    sys.exit(main())
