"""Rows and entries stay together while an index is built, and the guards that see to it are needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.machines.violated import broken
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import (
    HybridTime,
    IndexRows,
    PromptIndex,
    Row,
    Stored,
    Value,
    number_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Maybe, Term, action, choose, part, require, some
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.machine import Machine
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.verdict import Report

SMALL = {"writes": 1, "drops": 0}


def scope_at(
    machine: type[Machine],
    profile: str,
    budgets: dict[str, int] | None = None,
    sizes: dict[str, int] | None = None,
) -> Scope:
    definition = define(machine, profile)
    known = {b.name for b in definition.budgets}
    given = {name: n for name, n in {**SMALL, **(budgets or {})}.items() if name in known}
    return scope_of(definition, sizes, given)


def checked(
    machine: type[Machine],
    profile: str = "ycql",
    budgets: dict[str, int] | None = None,
    sizes: dict[str, int] | None = None,
    *,
    promises: Sequence[str] = (),
) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_at(machine, profile, budgets, sizes), properties=promises)
    assert report.exhausted
    return report


def test_every_promise_holds_at_the_default_scope_and_every_action_happens() -> None:
    report = checked(IndexRows, "ycql", {"writes": 2, "drops": 1})
    assert broken(report) == set()
    assert report.states == 520_600
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize(
    ("machine", "profile", "budgets", "sizes"),
    by_turns(
        some_of(
            [
                (IndexRows, "ycql", {"writes": 1}, {"row": 2}),
                (IndexRows, "ycql", {"writes": 2}, {"row": 2, "server": 1}),
                (IndexRows, "ycql", {"writes": 1}, {"server": 3}),
                (IndexRows, "ycql", {"writes": 0, "drops": 1}, {"row": 2}),
                (PostgresRows, "ysql", {"writes": 2}, {}),
                (PostgresRows, "ysql", {"writes": 1, "drops": 1}, {}),
            ]
        )
    ),
    ids=str,
)
def test_they_hold_at_other_scopes_too(
    machine: type[Machine], profile: str, budgets: dict[str, int], sizes: dict[str, int]
) -> None:
    assert broken(checked(machine, profile, budgets, sizes)) == set()


def test_the_seed_leaves_open_what_its_machine_says() -> None:
    gap = "index.a_deleted_index_is_not_used"
    assert broken(checked(IndexRows, "seed", {"writes": 2})) == {gap}
    late = broken(checked(IndexRows, "seed", {"old_leaders": 1}))
    assert late == {gap, "no_orphan_entry", "reads_through_the_index_find_the_rows"}


@pytest.mark.parametrize("profile", ["ysql-early", "ysql-no-do-backfill"])
def test_rows_show_what_comes_of_a_sleep_instead_of_a_barrier(profile: str) -> None:
    """Yugabyte-db #6238, #7376."""
    found = broken(checked(PostgresRows, profile))
    assert {"no_missing_entry", "reads_through_the_index_find_the_rows"} <= found


class MinimumOfSafeTimes(IndexRows):
    """`t_read` is the minimum of what the servers answer."""

    def _joint_safe_time(self, time: Term[HybridTime]) -> Term[HybridTime]:
        earlier = choose(number_of(self.t_read) < number_of(time), self.t_read, time)
        return choose(self.safe.is_empty(), time, earlier)


class OneSafeTimeIsEnough(IndexRows):
    """`t_read` is used before every server has answered."""

    def _t_read_is_chosen(self) -> None:
        require(some(self.safe.has(s) for s in Server), "a server has answered GetSafeTime")


class ScanDoesNotWait(IndexRows):
    """A tablet is scanned although something may still commit at or before `t_read`."""

    def _past_t_read(self, s: Term[Server]) -> object:  # type: ignore[override]
        return number_of(self.clock[s]) >= 0


class ScanOfTheBeginning(IndexRows):
    """The scan reads at a time of its own, before `t_read`."""

    def _visible_at(self, r: Term[Row], time: Term[HybridTime]) -> Maybe[Value]:
        return self.visible[r][HybridTime.t0]


class NoRowLocks(IndexRows):
    """Two transactions write one row at a time: what F1 needs and does not say."""

    def _begin(self, s: Term[Server], r: Term[Row]) -> None:
        write = self.transaction[s][r]
        require(~write.pending, "the transaction has not written the row")
        write.pending = True
        write.old = self._now(r)
        write.under = self._plans_by(s)


class BackfillOverwritesNewerEntries(IndexRows):
    """The backfilled entry replaces what a concurrent write has stored."""

    def _write_in_the_past(self, r: Term[Row]) -> None:
        seen = self._visible_at(r, self.t_read)
        for v in Value:
            entry = self.entry[r][v]
            entry.stored = choose(seen == v, Stored.live, entry.stored)
            entry.time = choose(seen == v, self.t_read, entry.time)


class MarkersReclaimedDuringTheBackfill(IndexRows):
    """Delete markers may be reclaimed as soon as the job runs."""

    @action
    def allow_to_reclaim_delete_markers(self) -> None:
        require(self.index.job == Job.running, "the job is running")
        self.retains_delete_markers = False


class MarkersKeptForEver(IndexRows):
    """Nobody says when delete markers may be reclaimed."""

    def _may_reclaim_delete_markers(self) -> None:
        require(self.index.permission == Permission.absent, "the index is gone")


class ReadsBeforePublication(IndexRows):
    """A server lets clients read an index that it only writes to."""

    @action
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        require(self._plans_by(s).column(lambda p: p.write), "the server writes to the index")
        self._look_up(r, value)


class PublishedAfterOneRow(IndexRows):
    """The master does not wait until every tablet is done."""

    @action
    def finish_backfill(self) -> None:
        require(some(self.backfilled.has(r) for r in Row), "a row is backfilled")
        self.index.finish_backfill()


class AbortsAreOnlyAsked(IndexRows):
    """GetSafeTime asks for old transactions to be aborted, and goes on although they may commit."""

    def _old_transactions_have_ended(self, s: Term[Server]) -> None:
        asked = ~self._is_old(s) | (self.index.job == Job.running)
        require(asked, "old transactions are asked to end")


class NobodyAborts(IndexRows):
    """002: "somebody has a terminal open with an ongoing txn that never commits"."""

    @action
    def abort_old_transaction(self, s: Term[Server]) -> None:
        require(self._is_old(s) & ~self._is_old(s), "never")
        self._end(s)


class SkipsAWaitOfRemoval(PromptIndex):
    """While an index is dropped, servers stop to write to it at once, though others still read."""

    @action
    def drop_index(self) -> None:
        require(self.permission == Permission.read_write_and_delete, "the index is in use")
        self.drop_requested = True
        self._enter()
        self.permission = Permission.delete_only_while_removing


class WritesStopTooEarly(IndexRows):
    """The rows under such a removal."""

    index = part(SkipsAWaitOfRemoval, without=(PromptIndex.report, PromptIndex.find_violation))


@pytest.mark.parametrize(
    ("mutant", "promise", "budgets", "sizes"),
    by_turns(
        some_of(
            [
                (MinimumOfSafeTimes, "no_missing_entry", {}, {}),
                (OneSafeTimeIsEnough, "no_missing_entry", {}, {}),
                (ScanDoesNotWait, "writes_do_not_affect_the_scan", {}, {}),
                (ScanOfTheBeginning, "no_missing_entry", {}, {}),
                (NoRowLocks, "no_orphan_entry", {"writes": 2}, {}),
                (BackfillOverwritesNewerEntries, "no_orphan_entry", {}, {}),
                (MarkersReclaimedDuringTheBackfill, "no_orphan_entry", {}, {}),
                (MarkersKeptForEver, "can_be_clean", {}, {}),
                (ReadsBeforePublication, "reads_through_the_index_find_the_rows", {}, {}),
                (PublishedAfterOneRow, "no_missing_entry", {"writes": 0}, {"row": 2}),
                (AbortsAreOnlyAsked, "no_missing_entry", {}, {}),
                (NobodyAborts, "index.builds_end", {}, {}),
                (WritesStopTooEarly, "reads_through_the_index_find_the_rows", {"drops": 1}, {}),
            ]
        )
    ),
)
def test_each_guard_is_needed(
    mutant: type[Machine], promise: str, budgets: dict[str, int], sizes: dict[str, int]
) -> None:
    assert promise in broken(checked(mutant, "ycql", budgets, sizes, promises=[promise]))


def test_an_orphan_is_reported_step_by_step() -> None:
    """The run that the checker shows is one of the definition, says the reference interpreter."""
    definition = define(BackfillOverwritesNewerEntries, "ycql")
    scope = scope_at(BackfillOverwritesNewerEntries, "ycql")
    report = check(definition, scope, properties=["no_orphan_entry"])
    (run,) = (v.run for v in report.verdicts if v.name == "no_orphan_entry")
    assert run is not None
    interpreter = Interpreter(definition, scope)
    assert run.states[0] in set(interpreter.initial_states())
    for before, step, after in zip(run.states, run.steps, run.states[1:], strict=False):
        assert interpreter.take(step, before) == after
    assert [step.action for step in run.steps][-1:] == ["backfill_row"]
    assert "commit" in {step.action for step in run.steps}
