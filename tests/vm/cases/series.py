# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the samples of a workload show: [seconds since the start, operations done, share of local pages or None], in
order."""

import math

# Shorter times say nothing about speed: the work is counted in steps of milliseconds.
RATE_SEC_MIN = 0.5
WINDOW_SEC = 1
BEFORE_SEC = 3
NEARLY = 0.95
# A smaller share of the memory fluctuates by itself.
MOVED_SHARE = 0.02


def local_since(samples: list, share: float, begin: float = 0, end: float = math.inf) -> float | None:
    """Seconds after `begin` from which on, until `end`, at least this share was local; None: from no sample on."""
    since = None
    for at, _, local in samples:
        if local is None or not begin <= at <= end:
            continue
        if local < share:
            since = None
        elif since is None:
            since = at - begin
    return since


def relocal(samples: list, share: float, changes: list[float]) -> list[float | None]:
    """The same after each change, until the next one or the end."""
    return [local_since(samples, share, begin, end) for begin, end in zip(changes, [*changes[1:], math.inf])]


def rate(samples: list, begin: float, end: float) -> float | None:
    """Operations per second between the first and the last sample of the period; None when there are not enough."""
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    if not inside or inside[-1][0] - inside[0][0] < RATE_SEC_MIN:
        return None
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def recovered(samples: list, change: float, end: float) -> float | None:
    """Seconds from a change until a second with as much work, except for a twentieth, as in the seconds before the
    change."""
    before = rate(samples, change - BEFORE_SEC, change)
    for at, _, _ in samples:
        if change <= at <= end - WINDOW_SEC and before is not None:
            now = rate(samples, at, at + WINDOW_SEC)
            if now is not None and now >= NEARLY * before:
                return at - change
    return None


def operations_at(samples: list, time: float) -> float:
    """Operations done by then, interpolated between the samples around; nothing at 0."""
    before = [0, 0]
    for sample in samples:
        if sample[0] >= time:
            span = sample[0] - before[0]
            return before[1] + ((sample[1] - before[1]) * (time - before[0]) / span if span > 0 else 0)
        before = sample
    return before[1]


def phases(samples: list, first_home: float | None, until: float, end: float) -> dict[str, list[float]]:
    """{phase: [seconds, operations]} of a run in which all threads worked until `until`, and the last one until `end`,
    the time of the last sample. Phases: until there is a home (if a system gives one), until memory begins to move,
    while it moves, until `until`, and the rest.

        samples   local  .2  .2  .2  .4  .7  .9  .9  .9 |    |
                       |    |      |           |        |    |
                     home  evidence    moving    steady  tail
    """
    shares = [(at, local) for at, _, local in samples if local is not None and at <= until]
    began = moved = None
    if shares and shares[-1][1] - shares[0][1] > MOVED_SHARE:
        first = next(i for i, (_, local) in enumerate(shares) if local > shares[0][1] + MOVED_SHARE)
        began = shares[first - 1][0]
        moved = local_since(samples, shares[-1][1] - MOVED_SHARE, end=until)
    points = [("home", first_home), ("evidence", began), ("moving", moved), ("steady", until), ("tail", end)]
    found, last = {}, 0
    for i, (name, at) in enumerate(points):
        if at is None:
            continue
        # Where a home comes late, memory moves before it.
        at = max(last, min([at, *[later for _, later in points[i:] if later is not None]]))
        found[name] = [round(at - last, 3), round(operations_at(samples, at) - operations_at(samples, last), 1)]
        last = at
    return found
