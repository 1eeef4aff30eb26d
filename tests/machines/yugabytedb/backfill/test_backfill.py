"""The backfill job keeps its promises, or is known to break just the documented ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken, checked
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines import SHIPPED
from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks, Until
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    NO_TIME,
    BackfillSafeTime,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import ROWS, BackfillThrottle
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import Machine, choose, every, require, some
from stagewright.spec.define import define
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome

NAMES = [name for name, place in SHIPPED.items() if ".yugabytedb.backfill." in place]


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("backfill-job", 248_525),
        ("backfill-chunks", 19_359),
        ("backfill-rpcs", 150_446),
        ("backfill-split", 690),
        ("backfill-safe-time", 38_941),
        ("backfill-leaders", 15_628),
        ("backfill-throttle", 55_736),
        ("backfill-tablet", 14),
        ("backfill-versions", 23_966),
    ],
)
def test_the_newest_version_keeps_every_promise_and_every_action_happens(
    name: str, states: int
) -> None:
    definition = load(name, "", SHIPPED)
    report = check(definition, scope_of(definition))
    assert report.exhausted
    assert broken(report) == set()
    assert report.states == states
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


def test_each_machine_is_counted_here() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize(
    ("machine", "sizes", "budgets"),
    by_turns(
        some_of(
            [
                (BackfillJob, {"tablet": 3, "index": 1}, {"faults": 2}),
                (BackfillJob, {"tablet": 1, "index": 1}, {"faults": 3, "aborts": 2}),
                (BackfillJob, {"tablet": 1}, {"faults": 2, "aborts": 0}),
                (BackfillChunks, {"index": 3}, {"failovers": 0}),
                (BackfillChunks, {"index": 1}, {"failovers": 3}),
                (BackfillRpcs, {"index": 1, "request": 2}, {"aborts": 2, "changes": 2, "lost": 2}),
                (BackfillRpcs, {"request": 1}, {"aborts": 2, "changes": 2}),
                (BackfillSplit, {"tablet": 3}, {"failovers": 2}),
                (BackfillLeaders, {"thread": 3}, {"failures": 0}),
                (BackfillVersions, {"row": 2}, {"writes": 2}),
                (BackfillThrottle, {"task": 3, "server": 1}, {"crashes": 0}),
            ]
        )
    ),
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(
    machine: type[Machine], sizes: dict[str, int], budgets: dict[str, int | None]
) -> None:
    assert broken(checked(machine, sizes=sizes, budgets=budgets)) == set()


@pytest.mark.parametrize(
    ("machine", "profile", "promises"),
    [
        (BackfillJob, "seed", {"rows_are_scanned_at_one_time"}),
        (BackfillJob, "yugabyte-2.x", {"published_indexes_are_left_alone"}),
        (BackfillRpcs, "yugabyte-2.x", {"what_is_done_is_not_asked_for"}),
        (BackfillVersions, "seed", {"reads_through_the_index_find_the_rows"}),
        (BackfillVersions, "seed-own-time", {"reads_through_the_index_find_the_rows"}),
        (
            BackfillVersions,
            "yugabyte-2026",
            {
                "reads_through_the_index_find_the_rows",
                "the_scan_sees_t_read",
                "no_missing_entry",
            },
        ),
        (
            BackfillSplit,
            "seed",
            {
                "chunks_cover_the_table",
                "jobs_know_the_tablets_that_serve",
                "backfills_and_splits_exclude_each_other",
                "chunks_are_asked_of_tablets_that_serve",
            },
        ),
    ],
)
def test_earlier_versions_leave_open_what_their_machines_say(
    machine: type[Machine], profile: str, promises: set[str]
) -> None:
    without = machine in (BackfillSplit, BackfillVersions)
    report = checked(machine, profile, sizes={} if without else {"index": 1})
    assert broken(report) == promises


@pytest.mark.parametrize("sizes", [{}, {"tablet": 3, "index": 3}], ids=str)
def test_the_job_is_proved_by_induction(sizes: dict[str, int]) -> None:
    definition = define(BackfillJob, "yugabyte-2026")
    report = prove(definition, scope_of(definition, sizes), max_k=1, depth=0)
    assert report.exhausted
    assert all(v.outcome is Outcome.HOLDS for v in report.verdicts)


def test_of_the_version_before_all_is_proved_but_what_is_broken() -> None:
    definition = define(BackfillJob, "yugabyte-2.x")
    report = prove(definition, scope_of(definition), max_k=1, depth=0)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    assert left == {"published_indexes_are_left_alone"}


def walked(profile: str) -> set[Step]:
    """The steps at which the leader changes in some run, told by walking all runs with one index."""
    definition = define(BackfillJob, profile)
    model = ground(definition, scope_of(definition, {"index": 1, "tablet": 1}))
    (step,) = (cell.index for cell in model.cells if cell.name == "step")
    seen = set(model.initial)
    todo, at = list(seen), set[Step]()
    while todo:
        state = todo.pop()
        for taken, after in successors(model, state):
            if taken.action.name == "fail_over":
                at.add(list(Step)[state[step]])
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return at


def test_the_leader_may_change_at_each_step_of_the_job() -> None:
    """And from wherever it did, the table can still be clean: so says a promise that holds."""
    assert walked("yugabyte-2.x") == set(Step)
    assert walked("yugabyte-2026") == set(Step) - {Step.clear_job}


def observed(profile: str, *actions: str) -> dict[str, int]:
    """The state after actions that are taken one after the other, each the first that is possible."""
    definition = define(BackfillJob, profile)
    model = ground(definition, scope_of(definition, {"index": 1, "tablet": 1}))
    cells = {cell.name: cell.index for cell in model.cells}
    (state,) = (s for s in model.initial if not s[cells["unbuildable"]])
    for name in actions:
        state = next(
            after for taken, after in successors(model, state) if taken.action.name == name
        )
    return {name: state[index] for name, index in cells.items()}


CREATE = ("create_index", "apply_version")
ALTER = ("launch_next_version", "apply_version")
BEGIN = ("launch", "record_job", "find_no_splits", "choose_read_time", "backfill_chunk")
RESUME = ("fail_over", "resume", "take_recorded_time", "backfill_chunk")
END = ("find_all_done", "allow_gc", "write_permissions", "clear_checkpoints", "finish")


def test_a_new_leader_goes_on_from_the_checkpoint_at_the_same_time() -> None:
    before = observed("yugabyte-2026", *CREATE, *ALTER, *ALTER, *BEGIN)
    after = observed("yugabyte-2026", *CREATE, *ALTER, *ALTER, *BEGIN, *RESUME)
    assert after["read_time"] == before["read_time"] != 0
    assert after["checkpoint[tablet0][index0]"] == before["checkpoint[tablet0][index0]"] + 1
    end = (*RESUME, *END, "apply_version", "finish_alter")
    clean = observed("yugabyte-2026", *CREATE, *ALTER, *ALTER, *BEGIN, *end)
    assert clean["read_time"] == clean["job[index0]"] == clean["is_backfilling"] == 0


class OnlyTheFirstCheckpointCounts(BackfillChunks):
    """What a reading of `UpdateBackfilledUntil` suggests: `Map::insert` does not overwrite."""

    def _recorded(self, i: Any, new: Any) -> Any:
        return choose(self.until[i] == Until.never_begun, new, self.until[i])


class AbsentCheckpointsAreSkipped(BackfillChunks):
    """What a reading of `BackfillTablet` suggests: the least key among the indexes that have an entry."""

    def _is_next(self, start: Any) -> Any:
        others = some(self._is_begun(i) for i in Index)
        return choose(others, self._is_least_begun(start), start == Until.never_begun)

    def _is_begun(self, i: Any) -> Any:
        return (self.job[i] == Status.in_progress) & (self.reached[i] != Until.never_begun)

    def _is_least_begun(self, start: Any) -> Any:
        order = list(Until).index
        least = every(
            self._is_begun(i).implies(
                self.reached[i].number_column(order) >= start.number_column(order)
            )
            for i in Index
        )
        needed = some(self._is_begun(i) & (self.reached[i] == start) for i in Index)
        return least & needed & (start != Until.end)


class GoneIndexesAreTriedAgain(BackfillRpcs):
    """An index that is not there any more is taken for one that is not ready yet."""

    def _is_hopeless(self, i: Any) -> Any:
        return self._is_removed(i) & ~self._is_removed(i)


class SplitsAreNotAwaited(BackfillSplit):
    """No split begins after the launch, but those that have begun go on."""

    def _no_split_is_going_on(self) -> None:
        pass


class TheSmallestTimeIsTaken(BackfillSafeTime):
    """The read time is safe for the slowest tablet only."""

    def _is_safe_everywhere(self, time: Any) -> None:
        require(every(self.answer[t] != NO_TIME for t in Tablet), "every tablet has answered")
        require(every(self.answer[t] >= time for t in Tablet), "no tablet answered earlier")


class OldTransactionsAreIgnored(BackfillSafeTime):
    """GetSafeTime does not wait for what began before WRITE_AND_DELETE."""

    def _old_transactions_are_over(self, t: Any) -> Any:
        return self.clock[t] > NO_TIME


class TheScanDoesNotWait(BackfillSafeTime):
    """A tablet is read at a time that it has not reached."""

    def _safe_time_is_reached(self, t: Any) -> None:
        pass


class OldLeadersWrite(BackfillLeaders):
    """The term of a write is not compared."""

    def _leads(self, th: Any) -> None:
        pass


class VersionsAreNotCompared(BackfillLeaders):
    """The version that a thread has seen is not compared."""

    def _has_seen_the_version(self, th: Any) -> None:
        pass


class EverybodyGetsASlot(BackfillThrottle):
    """`num_concurrent_backfills_allowed` is not looked at."""

    def _has_free_slot(self, task: Any) -> Any:
        return self.slots_in_use[self.server[task]] <= self.slots


class NoRate(BackfillThrottle):
    """`backfill_index_rate_rows_per_sec` is not looked at."""

    def _is_below_rate(self, task: Any) -> Any:
        return self.this_second[task] < ROWS


class LaunchBeforeTabletsKnow(BackfillJob):
    """A job begins as soon as the catalog says DO_BACKFILL."""

    def _may_begin(self) -> None:
        require(~self.is_backfilling, "no job is running")


class ReadTimeOutlivesTheJob(BackfillJob):
    """The job is erased, its read time is not."""

    def _forget_read_time(self) -> None:
        pass


@pytest.mark.parametrize(
    ("mutant", "sizes", "promise"),
    [
        (OnlyTheFirstCheckpointCounts, {"index": 1}, "only_the_last_chunk_is_repeated"),
        (AbsentCheckpointsAreSkipped, {}, "checkpoints_tell_what_is_built"),
        (GoneIndexesAreTriedAgain, {"request": 1}, "every_job_ends"),
        (SplitsAreNotAwaited, {"tablet": 1}, "chunks_cover_the_table"),
        (TheSmallestTimeIsTaken, {}, "rows_have_entries"),
        (OldTransactionsAreIgnored, {"tablet": 1}, "rows_have_entries"),
        (TheScanDoesNotWait, {}, "entries_have_rows"),
        (OldLeadersWrite, {}, "checkpoints_only_advance"),
        (VersionsAreNotCompared, {}, "tablets_are_one_version_behind"),
        (EverybodyGetsASlot, {}, "slots_are_bounded"),
        (NoRate, {}, "rate_is_bounded"),
        (LaunchBeforeTabletsKnow, {"index": 1}, "backfill_begins_when_all_tablets_know"),
        (ReadTimeOutlivesTheJob, {"index": 1}, "read_time_is_of_the_job"),
    ],
)
def test_what_is_left_out_breaks_a_promise(
    mutant: type[Machine], sizes: dict[str, int], promise: str
) -> None:
    definition = define(mutant, "")
    report = check(definition, scope_of(definition, sizes), properties=[promise])
    assert broken(report) & {promise}
