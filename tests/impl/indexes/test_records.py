"""What tablets and masters record: sound runs are explained, and the records of one run refuse every wrong build."""

from pathlib import Path

import pytest
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.commands import run_command_line
from stagewright.impl.indexes.campaign.drawing import draw
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import IntentsEnded, IntentsHeld, Stored
from stagewright.impl.indexes.schema import entry_key, row_key
from stagewright.impl.indexes.simulated.run import run
from stagewright.machines.recorded import OF_INDEXES
from stagewright.spec import scope_of
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.verdict import Outcome

D = Defect
SHOWN: dict[Defect, tuple[int, str]] = {
    D.old_transactions_are_not_awaited: (5, "from before WRITE_AND_DELETE have ended"),
    D.user_enforced_are_not_awaited: (6, "from before WRITE_AND_DELETE have ended"),
    D.markers_are_reclaimed_early: (0, "the backfill is over"),
    D.entries_are_written_now: (0, "entries have the time of the scan"),
    D.only_the_first_page: (0, "all rows up to there were read"),
    D.no_check_backwards: (10, "no other row has the key at the time of the scan"),
    D.no_check_forwards: (2, "no other row is the first to get the key after the scan"),
    D.last_write_of_a_time: (16, "another row has the key"),
    D.row_itself_is_a_duplicate: (1, "another row has the key"),
    D.intents_are_not_looked_at: (2, "no pending transaction has the key"),
    D.failure_is_of_all: (2, "two rows of this index share a key"),
    D.lost_chunks_are_not_retried: (8, "a chunk without an answer is asked for again"),
    D.late_requests_count: (81, "the request is not older than the last one"),
    D.old_answers_count: (2, "the answer is to the last request"),
    D.publishes_too_early: (1, "every tablet is done"),
    D.schemas_do_not_converge: (3, "no two tablets are more than one permission apart"),
    D.readiness_is_not_tested: (275, "the tablet knows the indexes to be at DO_BACKFILL"),
    D.one_scan_an_index: (2, "the rows are the next ones of the tablet"),
    D.writes_wait_for_the_backfill: (0, "nothing but a row's lock makes a statement wait"),
    D.waiting_is_credit: (0, "no more rows are read in a second than the rate allows"),
    D.old_reads_are_served: (6, "the read point is not before the scan"),
    D.permission_goes_back: (59, "the index was not dropped"),
    D.requests_are_not_checked: (0, "it was planned by the tablet's version of the schema"),
    D.tablets_have_times_of_their_own: (0, "a chunk is read at the time of its job"),
    D.safe_time_is_the_least: (1, "the time is not before any tablet's safe time"),
    D.success_is_reported_early: (0, "every tablet reads the index of which SUCCESS is reported"),
    D.reports_end_the_alteration: (0, "no index waits for a backfill, and no job is left"),
    D.later_checkpoints_are_not_kept: (25, "the chunk begins at the last checkpoint"),
    D.unchanged_entries_are_left: (2, "the indexes have the entries of the rows"),
    D.batches_are_not_checked_within: (48, "entries of all rows that were read are written"),
    D.checkpoint_skips_a_row: (0, "all rows up to there were read"),
    D.parents_take_writes: (10, "a tablet that has split takes no writes"),
    D.intents_stay_with_the_parent: (10, "what is pending is given to the children"),
    D.children_have_no_history: (2, "each child has its rows at every time, and no others"),
    D.children_have_all_rows: (2, "each child has its rows at every time, and no others"),
    D.late_writes_stay_with_the_parent: (
        10,
        "each child has its rows at every time, and no others",
    ),
    D.splits_do_not_wait_for_jobs: (14, "no backfill is going on"),
    D.checkpoints_count_for_children: (43, "every tablet is done"),
    D.parents_take_entries: (0, "a tablet that has split takes no writes"),
    D.pending_entries_stay_with_the_parent: (0, "what is pending is given to the children"),
    D.late_entries_stay_with_the_parent: (
        0,
        "each child has its rows at every time, and no others",
    ),
    D.children_have_all_entries: (0, "each child has its rows at every time, and no others"),
    D.splits_reclaim_markers: (0, "each child has its rows at every time, and no others"),
    D.children_do_not_know_values: (117, "no other row has the key at the time of the scan"),
    D.entries_follow_the_first_child: (0, "the indexes have the entries of the rows"),
    D.refused_entries_count_as_written: (1, "entries of all rows that were read are written"),
}
"""A seed of the default campaign, and what the definition of a record says of it."""


OF_THE_JOB = {D.reports_end_the_alteration}  # what the table is said to be, the job's own trace has


def refused(defect: Defect, seed: int) -> list[str]:
    """What the definitions of records say; those that drive the master are left out, unless they alone can know."""
    report = run(draw(seed).plan(frozenset({defect})))
    kinds = ("index-", "job ") if defect in OF_THE_JOB else ("index-",)
    return [text for text in report.refused if text.startswith(kinds)]


@pytest.mark.parametrize("defect", by_turns(some_of(SHOWN, each=3)), ids=lambda d: d.name)
def test_a_wrong_build_is_refused_by_its_records_alone(defect: Defect) -> None:
    seed, says = SHOWN[defect]
    assert any(says in text for text in refused(defect, seed))


def test_every_wrong_build_is_shown() -> None:
    assert set(SHOWN) == set(Defect)


@pytest.mark.parametrize("kind", OF_INDEXES)
def test_the_definitions_of_records_keep_their_promises(kind: str) -> None:
    definition = define(find(OF_INDEXES[kind], {}))
    report = check(definition, scope_of(definition), workers=1)
    assert report.outcome is Outcome.HOLDS
    assert report.coverage is not None
    assert not report.coverage.never_fired


def test_validate_accepts_the_records_of_a_run_and_refuses_those_of_a_wrong_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = draw(2)
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    assert run(scenario.plan(), right).kept
    run(scenario.plan(frozenset({D.only_the_first_page})), wrong)
    assert run_command_line(["validate", *files(right), "--engine", "embedded"]) == 0
    capsys.readouterr()
    assert run_command_line(["validate", *files(wrong), "--engine", "embedded"]) == 1
    assert "all rows up to there were read" in capsys.readouterr().out


def files(directory: Path) -> list[str]:
    """The records of a run: of what did not happen there is no file."""
    paths = [directory / f"{kind}.jsonl" for kind in OF_INDEXES]
    return [str(path) for path in paths if path.exists()]


def test_a_rival_is_the_row_just_before_or_the_first_one_after() -> None:
    known, entry = KnownVersions(), entry_key(True, 5, 0)
    for time, value in ((10, b"1"), (20, None), (30, b"*2"), (40, b"3")):
        known.hear(Stored("index0/0", time, {entry: value}))
    assert known.rival("index0/0", entry, 10, 1) == (False, False)
    assert known.rival("index0/0", entry, 15, 9) == (True, False)
    assert known.rival("index0/0", entry, 25, 9) == (False, False)  # handed over: deleted first
    assert known.rival("index0/0", entry, 35, 2) == (False, True)


def test_rows_are_known_as_of_a_time_and_intents_until_they_end() -> None:
    known = KnownVersions()
    known.load("table/0", {row_key(1): {"v": 5}, row_key(2): {"v": 6}})
    known.hear(IntentsHeld("table/0", "t1", (row_key(2),)))
    assert known.holder_of("table/0", row_key(2)) == "t1"
    known.hear(Stored("table/0", 50, {row_key(2): None}))
    known.hear(IntentsEnded("table/0", "t1", 50))
    assert known.holder_of("table/0", row_key(2)) is None
    assert [k for k, _ in known.rows_from("table/0", b"", 49)] == [row_key(1), row_key(2)]
    assert [k for k, _ in known.rows_from("table/0", b"", 50)] == [row_key(1)]
