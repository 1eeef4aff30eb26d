"""Each wrong build of change logs is noticed twice: by what clients, disks and consumers show, and by its trace alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.impl.simulator.database.changes.test_cdc import CHANGES, WIDE
from tests.impl.simulator.database.changes.test_cdc_of_tablets import CUT_OFF, RESIZED
from tests.thorough import by_turns, some_of

from stagewright.commands.validation.traced_machines import resolver
from stagewright.impl.cdc.consumer import Consumer, Generation, Position, Source
from stagewright.impl.cdc.rows import Change
from stagewright.impl.node.defects import Defect
from stagewright.impl.simulator.database.clients import Workload
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.validate import validate

WRITES = Plan(  # nothing but clients puts rows on disks: each has a row and its log row, or neither
    nodes=4,
    script=parse_script("table t tablets 4 rf 3; write 600"),
    faults=parse_faults("loss=0.1,delay=0.1,crash=120"),
    workload=Workload(clients=6, keys=12, gap=(0, 2), reads=0),
    cdc=True,
)
IMAGED = Plan(
    nodes=4,
    script=parse_script("table t tablets 2 rf 3; write 300; join n5; write 100"),
    faults=parse_faults("loss=0.2,crash=30,skew=40"),
    workload=Workload(clients=8, keys=6, gap=(0, 2), odd=0.05),
    cdc=True,
    images=True,
)
WAITS = "wait 2000;" * 6  # the consumer reads on between two operations
EXPIRING = Plan(  # the consumer is never behind by as much as the log keeps
    script=parse_script(
        f"table t tablets 2 rf 3; write 150; {WAITS} write 150; {WAITS} write 50; {WAITS}"
    ),
    faults=parse_faults("skew=40"),
    workload=Workload(keys=12, gap=(0, 3)),
    cdc=True,
    ttl=20_000,
)
BEHIND = replace(EXPIRING, script=parse_script("write 200; wait 50000; write 50"))
SWITCHED = Plan(  # generations follow each other while clients write
    script=parse_script("write 60; " + "generation; write 150; " * 4),
    faults=parse_faults("skew=40"),
    workload=Workload(keys=12, gap=(0, 3)),
    cdc=True,
)
PRECEDED = replace(  # two generations while clients write, the second before the first operates
    SWITCHED,
    script=parse_script("wait 2000; write 300; generation; generation; wait 3000"),
    workload=Workload(keys=12, gap=(10, 30)),
)
TABLETS = replace(RESIZED, faults=parse_faults("loss=0.1,crash=20,skew=40"))


@dataclass(frozen=True)
class Shown:
    """Where a defect shows, what the oracle says of it, and what the trace: nothing, if that is empty."""

    defect: Defect
    plan: Plan
    seed: int
    says: str
    refuses: str


D = Defect
NEVER = "the CDC consumer never read"
FOLLOWS = "it begins where the reader stands"
BOTH = "a replica of both rows stores both at once"
STAYS = "a quorum of the replicas that stay has stored it"
SHOWN = (
    Shown(D.leaving_replicas_suffice, CHANGES, 6, NEVER, STAYS),
    Shown(
        D.log_takes_the_newest_generation,
        CHANGES,
        0,
        NEVER,
        "the generation of its stream operates at its timestamp",
    ),
    Shown(D.log_rows_are_sent_apart, WRITES, 0, "alone", BOTH),
    Shown(D.log_rows_are_stored_apart, WRITES, 1, "alone", BOTH),
    Shown(D.log_skips_pending, WIDE, 0, "only", "it went to every replica"),
    Shown(D.log_goes_with_the_row, WIDE, 3, NEVER, "it went to every replica"),
    Shown(
        D.cut_off_nodes_write_to_logs,
        CUT_OFF,
        9,
        NEVER,
        "the generation of its stream operates at its timestamp",
    ),
    Shown(D.log_window_is_open, WIDE, 1, NEVER, "its timestamp is in the window"),
    Shown(
        D.log_takes_the_stream_of_the_key,
        TABLETS,
        0,
        NEVER,
        "its stream is that of the row's token",
    ),
    Shown(
        D.images_are_of_one_replica,
        IMAGED,
        0,
        "and was not then",
        "the image is of the newest acknowledged version",
    ),
    Shown(
        D.images_may_be_newer,
        replace(IMAGED, faults=parse_faults("delay=0.25,crash=20")),
        0,
        "and was not then",
        "the image is of the newest acknowledged version",
    ),
    Shown(
        D.log_rows_expire_early,
        EXPIRING,
        0,
        "only",
        "the rows are older than the log keeps them",
    ),
    Shown(
        D.generations_are_cleared_early,
        SWITCHED,
        0,
        "refused a write of now",
        "no write is for it any more",
    ),
    Shown(
        D.only_the_last_generation_is_loaded,
        replace(SWITCHED, faults=parse_faults("crash=100,skew=40")),
        0,
        "refused a write of now",
        "no set operated at the timestamp",
    ),
    Shown(D.generations_are_not_queued, SWITCHED, 0, NEVER, FOLLOWS),
    Shown(
        D.generations_precede_each_other,
        PRECEDED,
        0,
        NEVER,
        "it begins after the set before it",
    ),
    Shown(
        D.streams_are_limited,
        SWITCHED,
        0,
        "has 1 streams: 2 shards",
        "there is a stream where each tablet, or shard of a vnode, lies",
    ),
    Shown(D.logs_stay_behind, TABLETS, 0, NEVER, "each range came from enough replicas"),
    Shown(
        D.streams_outlive_their_tablets,
        replace(TABLETS, script=parse_script("table t tablets 2 rf 3; write 60; split t")),
        0,
        "has not one stream",
        "the new tablets have their streams in the same command",
    ),
)


@pytest.mark.parametrize("shown", by_turns(some_of(SHOWN)), ids=lambda s: s.defect.name)
def test_a_wrong_build_is_noticed_by_its_rows_and_by_its_trace(
    shown: Shown, tmp_path: Path
) -> None:
    said, refused = list[str](), list[str]()
    for seed in range(shown.seed, shown.seed + 3):
        directory = tmp_path / str(seed)
        plan = replace(shown.plan, seed=seed, defects=frozenset({shown.defect}))
        said += run(plan, directory).breaches
        refused += refusals(directory)
        traced = not shown.refuses or any(shown.refuses in r for r in refused)
        if traced and any(shown.says in s for s in said):
            return
    raise AssertionError((said[:3], refused[:3]))


def refusals(directory: Path) -> list[str]:
    """The conditions that the files of a run break, as `validate` finds them."""
    kinds = ("lives", "writes", "changes", "streams", "readers")
    paths = [p for kind in kinds if (p := directory / f"{kind}.jsonl").exists()]
    found: list[str] = []
    for entity in validate(paths, resolver(None), engine=Embedded(1)).entities:
        assert entity.verdict is TraceVerdict.VIOLATION
        assert entity.explanation is not None
        found += [name for name, _ in entity.explanation.failed or ()]
    return found


class Hasty(Consumer):
    """Reads what may be written still."""

    def __init__(
        self, source: Source, now: Callable[[], int], _: int, position: Position | None, most: int
    ) -> None:
        super().__init__(source, now, 0, position, most)


class Forgetful(Consumer):
    """Goes on behind what could not be read."""

    def poll(self) -> list[Change]:
        before = self.position
        try:
            return super().poll()
        except Exception:
            if before is not None:
                self.position = replace(before, read=before.read + 100_000)
            raise


class Late(Consumer):
    """Takes up a generation where it stands when it hears of it, not where that one begins."""

    def poll(self) -> list[Change]:
        known, at = self._source.generations(), self.position
        if at is not None:
            newest = max(g.start for g in known)
            if newest > at.generation and at.read > newest - 600_000:
                self.position = Position(newest, max(newest, at.read) + 200_000)
        return super().poll()


class Loyal(Consumer):
    """Stays with the streams that it began with."""

    def poll(self) -> list[Change]:
        source = self._source
        first = min(source.generations(), key=lambda g: g.start)
        self._source = _Only(source, first)
        try:
            return super().poll()
        finally:
            self._source = source


class Blind(Consumer):
    """Does not ask whether what it reads is there still."""

    def __init__(
        self,
        source: Source,
        now: Callable[[], int],
        wait: int,
        position: Position | None,
        most: int,
    ) -> None:
        start = position or Position(min(g.start for g in source.generations()), 0)
        start = replace(start, read=max(start.generation, start.read))
        super().__init__(_Only(source, None), now, wait, start, most)


class Twice(Consumer):
    """Begins the next span a little before where it stands."""

    def poll(self) -> list[Change]:
        if self.position is not None:
            start = max(self.position.generation, self.position.read - 50_000)
            self.position = replace(self.position, read=start)
        return super().poll()


class _Only:
    """A log of which one generation is known, or all; it says that nothing expires."""

    def __init__(self, source: Source, first: Generation | None) -> None:
        self._of, self._first = source, first

    def generations(self) -> Sequence[Generation]:
        return self._of.generations() if self._first is None else [self._first]

    def kept_from(self) -> int:
        return 0

    def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
        return self._of.changes(streams, start, end)


POLLED = replace(  # again and again while clients write
    TABLETS, script=parse_script("table t tablets 2 rf 3; write 400;" + "wait 40;" * 12)
)
READERS = (
    (Hasty, POLLED, NEVER, "nothing can be written to it any more"),
    (Blind, BEHIND, NEVER, "nothing of it has expired"),
    (Twice, TABLETS, "twice", FOLLOWS),
    (Loyal, TABLETS, NEVER, FOLLOWS),
    (Late, TABLETS, NEVER, FOLLOWS),
    (Forgetful, TABLETS, NEVER, FOLLOWS),
)


@pytest.mark.parametrize("wrong", some_of(READERS, each=2), ids=lambda w: w[0].__name__)
@pytest.mark.long
def test_a_wrong_consumer_is_noticed_by_what_it_reads_and_by_its_trace(
    wrong: tuple[type[Consumer], Plan, str, str], tmp_path: Path
) -> None:
    consumer, plan, says, refuses = wrong
    said, refused = list[str](), list[str]()
    for seed in range(4):
        directory = tmp_path / str(seed)
        said += run(replace(plan, seed=seed, consumer=consumer), directory).breaches
        refused += refusals(directory)
        if any(says in s for s in said) and any(refuses in r for r in refused):
            return
    raise AssertionError((said[:3], refused[:3]))


class Sleeper(Consumer):
    """Begins behind changes that are there."""

    def poll(self) -> list[Change]:
        if self.position is None:
            first = min(g.start for g in self._source.generations())
            self.position = Position(first, max(first, self._source.kept_from()) + 2_000_000)
        return super().poll()


SHORT = replace(EXPIRING, script=parse_script("write 60; wait 3000; write 60"), ttl=2_000)


def test_what_has_expired_as_a_consumer_begins_is_not_asked_of_it_and_all_else_is() -> None:
    assert not run(SHORT).breaches
    asleep = replace(EXPIRING, script=parse_script("write 60"), consumer=Sleeper)
    assert any(NEVER in text for text in run(asleep).breaches)
