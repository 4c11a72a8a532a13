# SPDX-License-Identifier: LGPL-2.1-or-later
"""What campaigns share. A campaign is a number of trials, each of which follows from the campaign's seed and its own number, so that
it can be interrupted and continued, and any trial repeated alone. It is bounded by their count, never by time.

A trial yields a dictionary of what was seen, with "lost": what is not as promised, empty when all is.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
NOT_HERE = 77


def not_here(why: str) -> None:
    """A campaign that cannot be made on this machine."""
    print(why, file=sys.stderr)
    sys.exit(NOT_HERE)


class Progress:
    """The results of the trials so far, in a file of JSON lines, and the totals. What an interrupted run had written is taken up when
    its options were the same."""

    def __init__(self, path: pathlib.Path, key: dict):
        self.path, self.results = path, {}
        head = json.dumps({"key": key}, sort_keys=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if not lines or lines[0] != head:
            lines = [head]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(head + "\n", encoding="utf-8")
        for line in lines[1:]:
            try:
                result = json.loads(line)
                self.results[result["trial"]] = result
            except (ValueError, KeyError, TypeError):
                continue  # the last line of one that was killed
        # A torn last line must not join the next one.
        self.file = open(path, "a+", encoding="utf-8")
        if lines and not path.read_text(encoding="utf-8").endswith("\n"):
            self.file.write("\n")

    def add(self, result: dict) -> None:
        self.results[result["trial"]] = result
        self.file.write(json.dumps(result) + "\n")
        self.file.flush()


class Campaign:
    """`run(trial, rng, args)` makes one trial. `trials`: their names when it is not a number of equal ones."""

    def __init__(self, name: str, doc: str, count: int = 0, trials: list[str] | None = None):
        self.name, self.trials = name, trials
        self.parser = argparse.ArgumentParser(prog=f"./dev campaign {name}", description=doc.splitlines()[0])
        self.parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
        if trials is None:
            self.parser.add_argument("--count", type=int, default=count, help=f"how many trials (default: {count})")
        self.parser.add_argument("--seed", type=int, default=1, help="what all chance follows from (default: 1)")
        self.parser.add_argument("--only", help="this trial alone, and nothing is written down: a number, or a name")
        self.parser.add_argument("--again", action="store_true", help="forget what an interrupted run has done")
        self.parser.add_argument("--json", action="store_true", help="print the result of each trial as a JSON line")

    def names(self, args) -> list:
        return self.trials if self.trials is not None else list(range(args.count))

    def one(self, run, trial, args) -> dict:
        begin = time.monotonic()
        result = run(trial, random.Random(f"{self.name}/{args.seed}/{trial}"), args)
        result = {"campaign": self.name, "seed": args.seed, "trial": trial, **result, "sec": round(time.monotonic() - begin, 3)}
        if args.json:
            print(json.dumps(result), flush=True)
        if result["lost"] and not args.json:
            print(f"trial {trial}: {'; '.join(map(str, result['lost']))}", flush=True)
        return result

    def main(self, run, key: dict | None = None, summary=None) -> None:
        """Ends the process: status 1 when something was lost, 130 when interrupted. `key`: what else the results depend on.
        `summary(results)`: one line more for the end."""
        args = self.parser.parse_args()
        args.build = args.build.resolve()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        names = self.names(args)
        if args.only is not None:
            trial = args.only if self.trials is not None else int(args.only)
            if self.trials is not None and trial not in self.trials:
                self.parser.error(f"no trial '{trial}': expected one of {', '.join(self.trials)}")
            sys.exit(1 if self.one(run, trial, args)["lost"] else 0)
        path = SOURCE / "build-campaign" / f"{self.name}.jsonl"
        if args.again:
            path.unlink(missing_ok=True)
        progress = Progress(path, {"seed": args.seed, **(key(args) if key else {})})
        try:
            for trial in names:
                if trial not in progress.results:
                    progress.add(self.one(run, trial, args))
        except KeyboardInterrupt:
            print(f"interrupted after {len(progress.results)}; the same command goes on from here", file=sys.stderr)
            sys.exit(130)
        results = [progress.results[trial] for trial in names]
        n_lost = sum(1 for result in results if result["lost"])
        if summary:
            print(summary(results), file=sys.stderr if args.json else sys.stdout)
        total = {"campaign": self.name, "seed": args.seed, "trials": len(results), "lost": n_lost,
                 "sec": round(sum(result["sec"] for result in results), 1), "cpus": len(os.sched_getaffinity(0))}
        print(json.dumps(total) if args.json else f"{len(results)} trials, {n_lost} lost, {total['sec']:.0f} s", flush=True)
        sys.exit(1 if n_lost else 0)
