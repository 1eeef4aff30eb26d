"""Tablets of indexed tables split while they are written to, and while indexes wait to be built."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.impl.indexes.test_defects import DRAWN
from tests.thorough import some_of

from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.campaign.scenario import Scenario
from stagewright.impl.indexes.campaign.trial import BY_ROWS, BY_TRACE, attempt
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.notes import TabletDivided
from stagewright.impl.indexes.schema import Values, row_key, tablet_of
from stagewright.impl.indexes.simulated.run import Plan, Report, Run
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.indexes.splits.tablet_map import TabletMap
from stagewright.impl.simulator.database.weather import NONE, Faults, parse_faults

BUSY = (
    "create table 40 rows; write 90; wait 60; split 0; wait 100; split 1; create unique index i on v; "
    "create index j on w; await i; await j; wait 300; split 3; wait 100; split 4; write 30; await splits; wait 300"
)


def made(script: str, faults: str = "", seed: int = 0) -> tuple[Run, Report]:
    found = Run(
        Plan(
            seed=seed,
            script=parse_script(script),
            faults=parse_faults(faults) if faults else NONE,
            settings=Settings(batch=2, chunk_rows=4),
        )
    )
    return found, found.report()


def results(report: Report, operation: str) -> list[str]:
    return [o.result for o in report.outcomes if o.operation == operation]


def test_a_map_has_each_key_in_one_tablet_and_only_keys_of_a_tablet_that_splits_move() -> None:
    tablets, keys = TabletMap(3), [row_key(k) for k in range(-500, 500)]
    assert [tablets.of(k) for k in keys] == [tablet_of(k, 3) for k in keys]
    for parent in (1, 3, 0, 6):
        split = tablets.halves(parent)
        assert split is not None
        after = tablets.after(split)
        assert after.version == tablets.version + 1
        moved = {after.of(k) for k in keys if tablets.of(k) == parent}
        assert moved == {*split.children}
        assert all(after.of(k) == tablets.of(k) for k in keys if tablets.of(k) != parent)
        assert after.root(split.upper) == tablets.root(parent)
        tablets = after
    assert sorted(n for family in tablets.families.values() for n in family) == sorted(
        tablets.numbers
    )


def test_halves_are_even() -> None:
    tablets = TabletMap(3)
    split = tablets.halves(2)
    assert split is not None
    after = tablets.after(split)
    found = [after.of(row_key(k)) for k in range(6_000)]
    assert (
        0.45
        < found.count(split.lower) / (found.count(split.lower) + found.count(split.upper))
        < 0.55
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("faults", ["", "all"])
def test_every_promise_is_kept_while_tablets_split(faults: str, seed: int) -> None:
    run, report = made(BUSY, faults, seed)
    assert report.breaches + report.refused == []
    assert report.counted["tablets split"] == 4
    assert run.world.tablets.numbers == (7, 8, 9, 10, 5, 6, 2)


def test_a_tablet_does_not_split_while_a_job_goes_on_but_afterwards() -> None:
    _, report = made(
        "create table 40 rows; create index i on v; await job backfill_tablets; split 1; await i; wait 200; split 1; "
        "wait 100; split 1; split 7"
    )
    assert results(report, "split 1") == ["refused: a backfill is going on", *["into 3 and 4"] * 2]
    assert results(report, "split 7") == ["refused: there is no tablet 7"]
    assert report.kept


@pytest.mark.parametrize("faults", ["", "all"])
def test_tablets_that_have_grown_split_by_themselves_but_not_during_a_backfill(faults: str) -> None:
    plan = Plan(
        seed=4,
        script=parse_script(
            "create table 20 rows; write 150; create index i on v; await i; wait 4000; await splits"
        ),
        faults=parse_faults(faults) if faults else NONE,
        workload=Workload(keys=120),
        settings=Settings(tablets=2, batch=2, chunk_rows=4, split_rows=16),
    )
    run = Run(plan)
    report = run.report()
    assert report.kept, report.breaches + report.refused
    assert report.indexes == {"i": "SUCCESS"}
    assert report.counted["tablets split"] >= 2
    rows = Counter[int]()
    for key in [key for key, values in held(run).items() if values]:
        rows[run.world.tablets.of(row_key(key))] += 1
    assert max(rows.values()) < 16


def held(run: Run) -> dict[int, Values | None]:
    """The rows at the end."""
    found: dict[int, Values | None] = {}
    for time in sorted(run.oracle.rows):
        found |= run.oracle.rows[time]
    return found


def test_a_job_waits_for_a_split_that_has_begun() -> None:
    _, report = made(
        "create table 40 rows; create deferred index i on v; wait 300; kill n1; kill n2; kill n3; split 0; split 1; split 2; backfill; await i"
    )
    assert report.kept, report.breaches + report.refused
    assert report.indexes == {"i": "SUCCESS"}


def test_a_job_goes_on_with_the_children_of_a_tablet_that_split_before_the_next_master_took_it_up() -> (
    None
):
    script = (
        "create table 40 rows; write 190; wait 60; create unique index i on v; create index j on w; "
        "await job backfill_tablets; wait 40; fail over; split 1; await i; wait 300"
    )
    run, report = made(script)
    assert results(report, "split 1") == ["into 3 and 4"]
    assert report.kept, report.breaches + report.refused
    scanned = {note.tablet for _, note in run.oracle.scanned}
    assert {1, 3, 4} <= scanned  # the parent's rows before, the children's anew


def test_what_is_pending_when_a_tablet_splits_is_committed_by_its_children() -> None:
    script = "create table 40 rows; write 60; wait 40; split 0; wait 60; split 1; wait 60; split 2; wait 900"
    run, divided = Run(Plan(seed=0, script=parse_script(script))), list[TabletDivided]()
    run.world.listeners.append(
        lambda note, _: divided.extend([note] if isinstance(note, TabletDivided) else [])
    )
    report = run.report()
    assert report.kept, report.breaches + report.refused
    assert len(divided) == 3
    assert sum(sum(note.intents) for note in divided) > 0


INDEXES = (
    "create table 40 rows; write 120; wait 60; create unique index i on v; create index j on w; "
    "await job backfill_tablets; split i 0; wait 60; split j 1; await i; await j; wait 300; split i 3; wait 100; "
    "split j 2; write 40; wait 50; split 1; wait 60; split i 6; await splits; wait 300"
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("faults", ["", "all"])
def test_every_promise_is_kept_while_tablets_of_indexes_split(faults: str, seed: int) -> None:
    _, report = made(INDEXES, faults, seed)
    assert report.breaches + report.refused == []
    assert report.counted["tablets of indexes split"] >= 4
    assert report.counted["reads through indexes"] > 5


def test_tablets_of_an_index_split_while_a_backfill_writes_to_it_and_then_those_of_the_table() -> (
    None
):
    _, report = made(
        "create table 40 rows; create index i on v; await job backfill_tablets; split i 1; split 1; wait 40; split i 4; "
        "await i; wait 200; split i 1; split i 9; split k 0; drop index i; split i 0"
    )
    assert report.kept, report.breaches + report.refused
    assert results(report, "split i 1") == ["into 3 and 4"] * 2
    assert results(report, "split 1") == ["refused: tablet index0/1 is splitting"]
    assert results(report, "split i 4") == ["into 5 and 6"]
    assert results(report, "split i 9") == ["refused: there is no tablet 9"]
    assert results(report, "split k 0") == ["there is no such index"]
    assert results(report, "split i 0") == ["refused: the index is gone, or is being removed"]


def test_an_index_that_is_dropped_while_a_tablet_of_it_splits_is_deleted_with_what_it_splits_into() -> (
    None
):
    run, report = made(
        "create table 40 rows; write 60; create index i on v; await i; split i 0; drop index i; wait 600"
    )
    assert report.kept, report.breaches + report.refused
    assert report.indexes == {"i": "SUCCESS, dropped"}
    assert not [place for place in run.world.lives if place.startswith("index0/")]


def test_tablets_of_indexes_that_have_grown_split_by_themselves() -> None:
    plan = Plan(
        script=parse_script(
            "create table 60 rows; create index i on v; await i; wait 4000; await splits"
        ),
        settings=Settings(tablets=1, batch=2, chunk_rows=4, split_rows=32),
    )
    run = Run(plan)
    report = run.report()
    assert report.kept, report.breaches + report.refused
    entries = run.world.catalog.map_of("index0")
    assert len(entries.numbers) > 1


OF_INDEXES = [
    Defect.parents_take_entries,
    Defect.pending_entries_stay_with_the_parent,
    Defect.late_entries_stay_with_the_parent,
    Defect.children_have_all_entries,
    Defect.splits_reclaim_markers,
    Defect.entries_follow_the_first_child,
    Defect.refused_entries_count_as_written,
]
WRONG = [
    *OF_INDEXES,
    Defect.parents_take_writes,
    Defect.intents_stay_with_the_parent,
    Defect.children_have_no_history,
    Defect.children_have_all_rows,
    Defect.late_writes_stay_with_the_parent,
    Defect.splits_do_not_wait_for_jobs,
    Defect.checkpoints_count_for_children,
]


@pytest.mark.parametrize("defect", some_of(WRONG, each=3), ids=lambda d: d.name)
def test_a_wrong_split_is_noticed_by_rows_and_by_the_trace(defect: Defect) -> None:
    found = attempt(draw(DRAWN[defect][0]), frozenset({defect})).failures
    assert {f.by for f in found} == {BY_ROWS, BY_TRACE}


def test_children_of_a_tablet_that_was_done_are_not_scanned_when_markers_may_be_gone() -> None:
    """Masters change, and a tablet splits, between the end of the scan and that of its job."""
    script = (
        "create table 25 rows; write 36; wait 27; create unique index i on v; create unique index j on w; wait 44; "
        "split 1; write 20; wait 221; split 4; wait 68; split 2; kill n1; wait 150; restart n1; await i; await j; wait 145"
    )
    scenario = Scenario(
        seed=5104,
        clients=2,
        script=parse_script(script),
        faults=Faults(crash=40, failover=80),
        workload=Workload(keys=25, values=200, slow=0),
        settings=Settings(batch=2, chunk_rows=2),
    )
    assert attempt(scenario).failures == ()


TWICE = Scenario(  # the leader that has made the children ends before its master hears so
    seed=2001716,
    servers=4,
    clients=3,
    script=parse_script(
        "create table 3 rows; write 7; wait 25; create unique index i on v; create index j on w; split 0"
    ),
    faults=Faults(loss=0.015, delay=0.24, crash=80, failover=40),
    workload=Workload(keys=15, values=60, slow=0),
    settings=Settings(batch=4, chunk_rows=2, slots=1, tablets=1, wait_for_old=0),
)
APART = Scenario(  # a transaction has a row at each of the children, written with different schemas
    seed=2000972,
    clients=3,
    script=parse_script(
        "create table 7 rows; write 24; wait 36; create unique index i on v; await job backfill_tablets; wait 70; "
        "fail over; split 0; create unique index j on v"
    ),
    faults=Faults(loss=0.06, duplicate=0.02),
    workload=Workload(keys=15, values=200, slow=0),
    settings=Settings(batch=4, chunk_rows=4, slots=1, tablets=1),
)


@pytest.mark.parametrize("scenario", [TWICE, APART], ids=["made twice", "statements apart"])
def test_what_is_recorded_of_a_split_is_of_each_child_and_once(scenario: Scenario) -> None:
    assert attempt(scenario).failures == ()
