"""What a ScyllaDB log, or the history of group0, says of CDC generations.

The coordinator's commits have the life of a generation in group0; they are read with the topology's reasons.
A node's own lines say when it began to use one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration, Life
from stagewright.traces.databases.scylladb.log.patterns import UUID, form
from stagewright.traces.events.observability import Recording, hidden_but

MACHINE = CdcGeneration.__name__
LIFE = CdcGeneration.life.name
STARTS = "starts"  # what is seen of a commit beside the life of the generation: its timestamp
STARTED_USING = "generation in use"
LEARNED_LATE = "generation learned late"

FORMS = (
    form(
        STARTED_USING,
        ("cdc",),
        "Started using generation ",
        rf"Started using generation \(.*, (?P<generation>{UUID})\)",
    ),
    form("", ("cdc",), "Started using generation ", r"Started using generation [^,]*$"),  # 2020
    form(  # up to 5.2
        STARTED_USING,
        ("cdc",),
        "Starting to use generation ",
        rf"Starting to use generation \(.*, (?P<generation>{UUID})\)",
    ),
    form("", ("cdc",), "Starting to use generation ", r""),
    form(
        LEARNED_LATE,
        ("cdc",),
        "just learned about a CDC generation newer than the one used",
        r"just learned about a CDC generation newer than the one used the last time"
        r"(?:.*new generation's timestamp: (?P<timestamp>[^,]+),)?",
    ),
)

# What a reason of a commit says of a generation. The publisher's own reasons come last.
REASONS = (
    (
        re.compile(
            rf"bootstrap: insert tokens and CDC generation data \(UUID: (?P<generation>{UUID})\)"
        ),
        Life.written,
    ),
    (re.compile(rf"insert CDC generation data \(UUID: (?P<generation>{UUID})\)$"), Life.written),
    (
        re.compile(rf"committed new CDC generation, ID: \((?P<time>.*), (?P<generation>{UUID})\)"),
        Life.committed,
    ),
    (
        re.compile(rf"published CDC generation with ID \((?:.*?), (?P<generation>{UUID})\)"),
        Life.published,
    ),
)
CLEARED = re.compile(
    rf"deleted data of CDC generations with time UUID lower than (?P<bound>{UUID})"
)

# Every commit and every publication leaves a line with the coordinator of the time.
RECORDING = Recording(
    hidden_but({LIFE: frozenset({Life.committed.name, Life.published.name})}),
    from_start=False,
    end_marked=False,
)


@lru_cache(1 << 14)
def change_of(reason: str) -> tuple[str, dict[str, object]] | None:
    """The generation that a commit's reason names, and what becomes of it; of a commit, with its timestamp."""
    for pattern, life in REASONS:
        if found := pattern.match(reason):
            seen: dict[str, object] = {LIFE: life.name}
            if life is Life.committed:
                seen[STARTS] = found["time"]
            return found["generation"], seen
    return None


def time_order(timeuuid: str) -> tuple[int, str]:
    """A key by which ids made from the time sort as they were made."""
    low, middle, high, *_ = timeuuid.split("-")
    return int(f"{int(high, 16) & 0xFFF:03x}{middle}{low}", 16), timeuuid
