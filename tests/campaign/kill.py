#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kill campaign: kills.py in guests of several nodes, in portions, each of which is a boot.

Trials come by turns from the suites and machines below; which one a trial gets follows from its number. What is done is kept in
build-campaign/kill.jsonl: an interrupted campaign goes on from there, as long as its options are the same.
"""

import argparse
import concurrent.futures
import json
import pathlib
import signal
import sys

import progress

sys.path.insert(0, str(progress.SOURCE / "tests" / "vm"))
from labkit import LabError, Unavailable, guest, tour
from labkit.case import Case

# Guests of at least four CPUs, whose homes are of one, two and four.
PLACES = (("trixie", "4x2"), ("bookworm", "4x2"), ("trixie", "2x4-llc"), ("bookworm", "2x2"), ("trixie", "2x2"), ("bookworm", "4x1"))
PORTION = 20
LIMIT_SEC = 3600


def portion(args, first: int) -> list[dict]:
    """The results of some trials in a row; those that the guest did not come to are lost."""
    suite, machine = PLACES[first // PORTION % len(PLACES)]
    count = min(PORTION, args.trials - first)
    command = f"python3 campaign/kills.py --seed {args.seed} --first {first} --trials {count} --kills {args.kills}\n"
    case = Case(f"kill-{first}", "a portion of the kill campaign", [machine], [suite], command, limit_sec=LIMIT_SEC)
    ended = tour.run(tour.Tour(suite, machine, (case,)), args.build)[0]
    results = [json.loads(line) for line in ended.results]
    found = {result["trial"]: {**result, "suite": suite, "machine": machine} for result in results}
    for number in range(first, first + count):
        found.setdefault(number, {"trial": number, "suite": suite, "machine": machine, "kills": 0,
                                  "lost": ended.problems or ["no result"], "console": ended.console_tail})
    return list(found.values())


def total(results: list[dict], args) -> dict:
    sums = {name: sum(result.get(name, 0) for result in results) for name in ("kills", "by_call", "restores_killed", "placed")}
    return {"campaign": "kill", "seed": args.seed, "trials": len(results), **sums, "lost": sum(bool(result["lost"]) for result in results)}


def gave_up(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if isinstance(error, Unavailable):
        print(f"the lab cannot run here: {error}", file=sys.stderr)
        return 77
    if isinstance(error, LabError):
        print(f"lab: {error}", file=sys.stderr)
        return 1
    raise error


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev campaign kill", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--trials", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--kills", type=int, default=10, metavar="N", help="in each (default: 10)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what all chance follows from (default: 1)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="guests at a time (default: 2)")
    parser.add_argument("--again", action="store_true", help="forget what an interrupted campaign has done")
    parser.add_argument("--json", action="store_true", help="print each trial's result as a line of JSON")
    args = parser.parse_args()
    args.build = args.build.resolve()
    done = progress.Progress("kill", {"seed": args.seed, "kills": args.kills}, args.again)
    missing = [first for first in range(0, args.trials, PORTION)
               if any(number not in done.results for number in range(first, min(first + PORTION, args.trials)))]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for future in concurrent.futures.as_completed([pool.submit(portion, args, first) for first in missing]):
                for result in future.result():
                    done.add(result)
                    if args.json or result["lost"]:
                        print(json.dumps(result), flush=True)
                if not args.json:
                    print(json.dumps(total(list(done.results.values()), args)), flush=True)
        except BaseException as error:
            guest.stop.set()
            pool.shutdown(cancel_futures=True)
            return gave_up(error)
    result = total([done.results[number] for number in range(args.trials)], args)
    print(json.dumps(result))
    return 1 if result["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
