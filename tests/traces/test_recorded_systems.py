"""What the executable system records under faults is explained, and every wrong build of it is not.

The verdicts come from the recorded files alone: nothing is known here of what happened in the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.thorough import THOROUGH, some_of

from stagewright.checker.check import check
from stagewright.impl.cluster.defects import Defect
from stagewright.impl.simulator.faults import parse_faults
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.recorder import recorded_definitions
from stagewright.impl.simulator.simulation import program, run
from stagewright.machines.recorded import RECORDED
from stagewright.machines.scylladb.tablets.tablet_stages import Kind
from stagewright.spec import scope_of
from stagewright.spec.definition import Definition
from stagewright.spec.trace import TraceVerdict
from stagewright.spec.verdict import Outcome
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SEEDS = range(240 if THOROUGH else 12)
BATCH = 12  # runs that are validated together
SMALL: dict[str, object] = {"nodes": 4, "tablets": 3, "migrations": 6, "writes": 100}
SLOW_STREAMS: dict[str, object] = {
    "tablets": 2,
    "migrations": 8,
    "writes": 400,
    "gap_ms": (0, 2),
    "keys_a_tablet": 40,
    "chunk_rows": 1,
    "kinds": (Kind.migration,),
}
FAULTS = ("all", "all", "loss=0.2,delay=0.3,duplicate=0.2", "crash@every,failover", "dead,action")


def resolve(machine: str, profile: str) -> Definition:
    """The definition that an event names."""
    known = {d.name: d for d in recorded_definitions().values()}
    return known.get(machine) or program(profile).definition


def record(directory: Path, seed: int, faults: str, **options: object) -> tuple[Path, ...]:
    """The files that a run records."""
    return run(
        Options(seed=seed, faults=parse_faults(faults), **options),  # type: ignore[arg-type]
        directory,
    ).traces


def judged(paths: tuple[Path, ...]) -> TraceReport:
    return validate(paths, resolve, engine=Embedded(1))


def varied(seed: int) -> dict[str, object]:
    """Runs of different sizes, kinds and releases."""
    sizes = {"nodes": 3 + seed % 3, "tablets": 1 + seed % 4, "writes": 40 + 30 * (seed % 4)}
    profile = {"profile": "scylla-2025.4"} if seed % 7 == 6 else {}
    return {**SMALL, **sizes, **profile}


@pytest.mark.parametrize("first", SEEDS[::BATCH])
def test_what_a_sound_system_records_under_faults_is_ok(first: int, tmp_path: Path) -> None:
    paths: list[Path] = []
    for seed in SEEDS[first : first + BATCH]:
        paths += record(tmp_path / str(seed), seed, FAULTS[seed % len(FAULTS)], **varied(seed))
    report = judged(tuple(paths))
    assert not report.entities, report.entities[0]
    assert report.exit_code == 0
    assert report.verdicts[TraceVerdict.OK] > 50 * BATCH
    machines = {place.partition(":")[2] for place in RECORDED.values()} | {"TabletMigration"}
    assert {text.partition(" ")[0].rstrip(",") for text in report.machines} == machines
    assert report.totals.judged == report.totals.lines, "nothing is left out"


@dataclass(frozen=True)
class Shown:
    """Where a wrong build shows in its trace: the machine, the action and what it should have waited for."""

    defect: Defect
    machine: str
    action: str
    requirement: str
    seed: int = 2
    faults: str = "all"
    options: dict[str, object] = field(default_factory=lambda: SMALL)


COUNTED = "a barrier of this stage has passed"
SLOW = Shown(
    Defect.session_is_not_checked,
    "RecordedSession",
    "store",
    "the session is open",
    0,
    "unwanted@streaming,delay",
    SLOW_STREAMS,
)
SHOWN = (
    Shown(
        Defect.barrier_asks_nobody,
        "NodeBarrier",
        "end",
        "the node has acknowledged that it drained",
    ),
    Shown(
        Defect.barrier_does_not_learn,
        "NodeBarrier",
        "answer_drain",
        "the node has learned what is committed",
    ),
    Shown(
        Defect.barrier_does_not_drain,
        "NodeBarrier",
        "answer_drain",
        "the node has drained older requests",
    ),
    Shown(
        Defect.fence_is_ignored,
        "RecordedReplica",
        "read",
        "the request is not older than the fence",
    ),
    Shown(Defect.fence_is_not_awaited, "NodeBarrier", "end", "the node has acknowledged the fence"),
    SLOW,
    Shown(
        Defect.writes_skip_the_pending_replica,
        "RecordedWrite",
        "acknowledge",
        "it went to every replica that the stage writes to",
    ),
    Shown(
        Defect.pending_replica_is_not_awaited,
        "RecordedWrite",
        "acknowledge",
        "enough replicas have stored it, the pending one among them",
    ),
    Shown(Defect.streaming_does_not_wait, "StageBarrier", "count", COUNTED),
    Shown(Defect.old_reads_are_not_awaited, "StageBarrier", "count", COUNTED),
    Shown(Defect.cleanup_does_not_wait, "StageBarrier", "count", COUNTED),
    Shown(
        Defect.streaming_misses_rows, "RecordedSession", "send", "every row of the range is sent"
    ),
    Shown(Defect.cleanup_leaves_rows, "RecordedReplica", "answer_cleanup", "there are no rows"),
    Shown(Defect.end_is_not_awaited, "TabletMigration", "finish", "barrier done"),
    # The next coordinator goes on where the stage was that is committed: the observed values say so.
    Shown(Defect.commit_is_forgotten, "TabletMigration", "fail_over", ""),
)


def test_every_wrong_build_is_among_these() -> None:
    assert Counter(shown.defect for shown in SHOWN) == Counter(Defect)


@pytest.mark.parametrize("shown", some_of(SHOWN), ids=lambda s: s.defect.name)
def test_wrong_build_is_seen_in_its_trace(shown: Shown, tmp_path: Path) -> None:
    options = {**shown.options, "defects": frozenset({shown.defect})}
    report = judged(record(tmp_path / "wrong", shown.seed, shown.faults, **options))
    assert report.exit_code == 1
    told = set(_told(report))
    assert (shown.machine, shown.action, shown.requirement) in told, told


def _told(report: TraceReport) -> Iterator[tuple[str, str, str]]:
    for entity in report.entities:
        assert entity.verdict is TraceVerdict.VIOLATION
        assert entity.explanation is not None
        action = entity.explanation.event.partition("(")[0]
        for requirement in (name for name, _ in entity.explanation.failed or (("", ""),)):
            yield entity.key.stream.machine, action, requirement


@pytest.mark.parametrize("shown", [SHOWN[0], SLOW], ids=lambda s: s.faults)
def test_sound_build_is_ok_where_the_wrong_one_is_not(shown: Shown, tmp_path: Path) -> None:
    assert judged(record(tmp_path, shown.seed, shown.faults, **shown.options)).exit_code == 0


@pytest.mark.parametrize("name", RECORDED)
def test_definitions_of_what_is_recorded_keep_their_promises(name: str) -> None:
    definition = recorded_definitions()[name]
    report = check(definition, scope_of(definition), workers=1)
    assert report.outcome is Outcome.HOLDS
    assert report.coverage is not None
    assert not report.coverage.never_fired
