"""The global barrier and its fence keep their promises, or are known to break just the documented ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines.scylladb.topology.fencing import Fencing, Phase
from stagewright.spec.define import define
from stagewright.spec.definition import Role
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report

CALM = {"bumps": 0, "failures": 0, "cleanups": 0}


def checked(
    budgets: dict[str, int],
    *,
    profile: str = "scylla-2026.2",
    sizes: dict[str, int] | None = None,
    machine: type[Machine] = Fencing,
) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition, sizes, budgets))
    assert report.exhausted
    return report


def test_the_newest_release_keeps_every_promise() -> None:
    report = checked({})
    assert broken(report) == set()
    assert (report.states, report.transitions) == (453_436, 2_203_930)
    assert report.coverage is not None
    others = {"take_locks", "release_locks", "end_streaming", "fail_to_inform"}
    assert set(report.coverage.never_fired) == others  # what this scope has no budget for


@pytest.mark.parametrize(
    "budgets",
    [
        {**CALM, "writes": 0, "transactions": 2},
        {**CALM, "exclusions": 1, "cleanups": 1},
        {**CALM, "decommissions": 1},
        {**CALM, "failovers": 1, "writes": 0, "streams": 2},
    ],
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(budgets: dict[str, int]) -> None:
    assert broken(checked(budgets)) == set()


@pytest.mark.parametrize(
    ("budgets", "names"),
    [
        (
            {**CALM, "writes": 0, "transactions": 2, "failures": 1},
            {"nothing_older_runs_after_the_barrier", "transactions_exclude_each_other"},
        ),
        ({**CALM, "streams": 1, "failures": 1}, {"closed_sessions_are_drained"}),
    ],
    ids=["transactions", "sessions"],
)
def test_the_release_before_goes_on_with_stages_that_were_not_drained(
    budgets: dict[str, int], names: set[str]
) -> None:
    both = {"no_coordinator_is_older_than_the_barrier", "stages_leave_nothing_older_behind"}
    report = checked(budgets, profile="scylla-2025.4")
    lemmas = {p.name for p in report.definition.properties if p.role is Role.LEMMA}
    assert broken(report) - lemmas == names | both


def test_a_replica_need_not_know_the_fence_when_all_have_drained() -> None:
    """What is left on the wire may be stored until the replica's next read barrier: that is no mistake."""
    report = checked({**CALM, "cleanups": 1})
    assert broken(report) == set()


class FenceFirst(Fencing):
    """The fence moves before anybody has drained: what coordinators wait for is refused."""

    def _all_have_acknowledged(self) -> None:
        pass


class NobodyDrainsReplicas(Fencing):
    """A node drains what it coordinates, but not what it executes for others."""

    def _holds_older(self, n: Any) -> Any:
        return self._waits(n) & (self.request[n].version < self.view[n].version)


class NobodyReads(Fencing):
    """Nodes acknowledge without a read barrier."""

    def _apply(self, n: Any) -> None:
        view = self.view[n]
        view.version = self.version
        view.stage = self.stage


@pytest.mark.parametrize(
    ("mutant", "budgets"),
    [
        (FenceFirst, CALM),
        (NobodyDrainsReplicas, {**CALM, "writes": 0, "transactions": 2}),
        (NobodyReads, {**CALM, "cleanups": 1}),
    ],
)
def test_weakening_the_barrier_breaks_a_promise(
    mutant: type[Machine], budgets: dict[str, int]
) -> None:
    assert broken(checked(budgets, machine=mutant)) != set()


BUDGETS = (
    *("writes", "transactions", "streams", "bumps", "cleanups"),
    *("failures", "decommissions", "exclusions", "failovers"),
)
UNBOUNDED: dict[str, int | None] = dict.fromkeys(BUDGETS)


def test_every_promise_about_states_and_steps_is_proved_for_any_number_of_faults() -> None:
    definition = define(Fencing)
    report = prove(definition, scope_of(definition, {}, UNBOUNDED), max_k=1, depth=1)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    assert left == {"assigned values stay in bounds"}  # versions are as many as the model has


def test_a_barrier_has_the_phases_that_its_text_names() -> None:
    assert [phase.name for phase in Phase] == ["none", "draining", "fencing", "informing", "done"]
