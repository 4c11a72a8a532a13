# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a campaign has done so far: one line of JSON for each trial, in build-campaign/NAME.jsonl. Trials follow from
their number and the campaign's options, which are in the first line. With other options the campaign starts over."""

import json
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class Progress:
    def __init__(self, name: str, options: dict, again: bool = False):
        path = SOURCE / "build-campaign" / f"{name}.jsonl"
        head = json.dumps({"options": options}, sort_keys=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() and not again else []
        self.results: dict[int | str, dict] = {}
        if lines and lines[0] == head:
            for line in lines[1:]:
                # The last line of a killed campaign may be incomplete.
                if line.endswith("}"):
                    result = json.loads(line)
                    self.results[result["trial"]] = result
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole lines only, and never fewer than before.
        new = path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in (head, *map(json.dumps, self.results.values()))), encoding="utf-8")
        new.rename(path)
        self.file = open(path, "a", encoding="utf-8")

    def add(self, result: dict) -> None:
        self.results[result["trial"]] = result
        print(json.dumps(result), file=self.file, flush=True)
