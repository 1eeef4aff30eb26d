"""A build that is wrong is noticed: by the oracle, which knows rows and answers, or by the definitions."""

from dataclasses import dataclass, field, replace

import pytest
from tests.thorough import by_turns, some_of

from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.run import Plan, Report, run
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.simulator.database.weather import NONE, parse_faults

WRITES = "create table 40 rows; write 120; wait 80; create unique index i on v; create index j on w; await i; wait 300"
ENFORCED = (
    "create user-enforced table 40 rows; write 120; wait 80; create index i on v; await i; wait 300"
)
FEWER = WRITES.replace("write 120; wait 80", "write 60; wait 60").replace("wait 300", "wait 200")
SHARED = (
    "create table 30 rows; create deferred index i on v; create deferred index j on w; wait 200; "
    "backfill; await i; await j"
)
HANDED = (  # the second row of a value is read when the tablet that has the first one's entry has split
    "create table 30 rows; put 900 v=10000; wait 100; create unique index i on v; await job backfill_tablets; "
    "wait 400; split i 0; await i; wait 200"
)
ALONE = "create table 60 rows; create index i on v; await i"


@dataclass(frozen=True)
class Hunt:
    """Where a defect shows."""

    defect: Defect
    says: str
    script: str = WRITES
    seed: int = 0
    faults: str = ""
    settings: dict[str, int] = field(default_factory=dict[str, int])

    def run(self, *defects: Defect) -> Report:
        settings = replace(Settings(batch=2, chunk_rows=4), **self.settings)  # type: ignore[arg-type]
        return run(
            Plan(
                seed=self.seed,
                script=parse_script(self.script),
                faults=parse_faults(self.faults) if self.faults else NONE,
                workload=Workload(values=60),
                settings=replace(settings, defects=frozenset(defects)),
            )
        )


DRAWN = {  # seeds of campaigns at which rows and answers alone show it
    Defect.success_is_reported_early: (0, "SUCCESS is reported of index0, which tablet 0 has as"),
    Defect.reports_end_the_alteration: (0, "does not end"),
    Defect.later_checkpoints_are_not_kept: (25, "more than once"),
    Defect.unchanged_entries_are_left: (2, "has no entry of row"),
    Defect.batches_are_not_checked_within: (48, "SUCCEEDED; at"),
    Defect.parents_take_writes: (10, "no tablet that serves has the row"),
    Defect.intents_stay_with_the_parent: (10, "clients committed"),
    Defect.children_have_no_history: (2, "no tablet that serves has the row"),
    Defect.children_have_all_rows: (2, "that it is not to have"),
    Defect.late_writes_stay_with_the_parent: (10, "no tablet that serves has the row"),
    Defect.splits_do_not_wait_for_jobs: (12, "without an entry"),
    Defect.checkpoints_count_for_children: (43, "without an entry"),
    Defect.parents_take_entries: (0, "as stored: (value, row)"),
    Defect.pending_entries_stay_with_the_parent: (0, "without an entry"),
    Defect.late_entries_stay_with_the_parent: (0, "that serves has the entry of"),
    Defect.children_have_all_entries: (0, "is to have"),
    Defect.splits_reclaim_markers: (0, "that serves has the entry of"),
    Defect.entries_follow_the_first_child: (0, "is to have"),
    Defect.refused_entries_count_as_written: (1, "without an entry"),
}
HUNTS = (
    Hunt(Defect.old_transactions_are_not_awaited, "without a row"),
    Hunt(
        Defect.user_enforced_are_not_awaited,
        "without an entry",
        ENFORCED,
        6,
        "",
        {"rpc_timeout": 900, "upper_bound": 950},
    ),
    Hunt(Defect.markers_are_reclaimed_early, "the table has"),
    Hunt(Defect.entries_are_written_now, "SUCCEEDED; at"),
    Hunt(Defect.only_the_first_page, "without an entry"),
    Hunt(Defect.no_check_backwards, "SUCCEEDED; at"),
    Hunt(Defect.no_check_forwards, "SUCCEEDED; at", seed=2),
    Hunt(Defect.row_itself_is_a_duplicate, "no two rows ever shared", faults="all"),
    Hunt(Defect.failure_is_of_all, "FAILED, which has no constraint"),
    Hunt(Defect.publishes_too_early, "without an entry"),
    Hunt(Defect.schemas_do_not_converge, "every server has reported", seed=3, faults="all"),
    Hunt(Defect.one_scan_an_index, "more than once", SHARED),
    Hunt(Defect.checkpoint_skips_a_row, "without an entry", FEWER),
    Hunt(
        Defect.waiting_is_credit,
        "in the second from",
        ALONE,
        0,
        "",
        {"rows_per_second": 10, "slots": 1},
    ),
    Hunt(
        Defect.writes_wait_for_the_backfill,
        "0 of them for locks",
        FEWER,
        0,
        "",
        {"rows_per_second": 4},
    ),
    Hunt(Defect.old_reads_are_served, "found rows []", FEWER, 1),
    Hunt(Defect.requests_are_not_checked, "SUCCEEDED; at", FEWER),
    Hunt(
        Defect.children_do_not_know_values,
        "SUCCEEDED; at",
        HANDED,
        0,
        "",
        {"rows_per_second": 20, "tablets": 1},
    ),
    Hunt(Defect.safe_time_is_the_least, "SUCCEEDED; at", FEWER, 2),
)
BY_RECORDS = {
    Defect.last_write_of_a_time,
    Defect.intents_are_not_looked_at,
    Defect.lost_chunks_are_not_retried,  # the oracle finds it after two simulated minutes
    Defect.late_requests_count,
    Defect.old_answers_count,
    Defect.readiness_is_not_tested,
    Defect.permission_goes_back,
    Defect.tablets_have_times_of_their_own,
}
"""Shown in `test_records.py`."""


@pytest.mark.parametrize("hunt", by_turns(some_of(HUNTS, each=2)), ids=lambda h: h.defect.name)
def test_a_wrong_build_is_noticed(hunt: Hunt) -> None:
    report = hunt.run(hunt.defect)
    found = [*report.breaches, *report.refused]
    assert any(hunt.says in text for text in found), found


@pytest.mark.parametrize(
    "hunt", [HUNTS[0], HUNTS[1], HUNTS[8], HUNTS[14], HUNTS[17]], ids=lambda h: h.seed
)
def test_the_same_runs_are_sound_without_it(hunt: Hunt) -> None:
    report = hunt.run()
    assert report.breaches + report.refused == []


ONE_EACH = {  # what one promise says, which one wrong build breaks at a seed, and nothing else
    "reads find what the table has": (Defect.old_reads_are_served, 6, "found rows"),
    "an index is its table at every time": (Defect.requests_are_not_checked, 5, " without a"),
    "entries have the times of rows": (Defect.unchanged_entries_are_left, 2, "has no entry of"),
    "markers stay": (Defect.markers_are_reclaimed_early, 4, " as stored: "),
    "no failure is invented": (Defect.row_itself_is_a_duplicate, 1, "no two rows ever shared"),
    "SUCCESS means that all read": (Defect.success_is_reported_early, 0, "SUCCESS is reported of"),
    "rows are read once": (Defect.one_scan_an_index, 2, "more than once"),
    "a fault costs a chunk": (Defect.later_checkpoints_are_not_kept, 25, "more than once"),
    "a job has one time": (Defect.tablets_have_times_of_their_own, 10, "has scanned at"),
    "the rate holds": (Defect.waiting_is_credit, 0, "in the second from"),
    "nobody waits for a build": (Defect.writes_wait_for_the_backfill, 0, "of them for locks"),
    "builds end": (Defect.lost_chunks_are_not_retried, 8, "does not end"),
}


@pytest.mark.parametrize("promise", by_turns(some_of(ONE_EACH, each=4)))
def test_each_check_of_rows_and_answers_alone_notices_a_wrong_build(promise: str) -> None:
    defect, seed, says = ONE_EACH[promise]
    found = run(draw(seed).plan(frozenset({defect}))).breaches
    assert found != []
    assert all(says in text for text in found), found


@pytest.mark.parametrize("defect", by_turns(some_of(DRAWN, each=2)), ids=lambda d: d.name)
def test_a_wrong_build_is_noticed_in_a_campaign_by_rows_alone(defect: Defect) -> None:
    seed, says = DRAWN[defect]
    found = run(draw(seed).plan(frozenset({defect}))).breaches
    assert any(says in text for text in found), found


def test_every_defect_is_hunted_or_shown_by_records() -> None:
    assert {h.defect for h in HUNTS} | set(DRAWN) == set(Defect) - BY_RECORDS
