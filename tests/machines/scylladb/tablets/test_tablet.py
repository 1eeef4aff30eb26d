"""Tablet migration in a cluster keeps its promises, or is known to break just the documented ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.spec import Fairness, Term, action, require
from stagewright.spec.define import define
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Report, Run

SMALL = {"writes": 1, "reads": 0, "crashes": 1, "failures": 1}


def checked(
    profile: str,
    budgets: dict[str, int] | None = None,
    *,
    sizes: dict[str, int] | None = None,
    machine: type[Machine] = TabletCluster,
) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition, sizes, {**SMALL, **(budgets or {})}))
    assert report.exhausted
    return report


def replayed(profile: str, run: Run) -> None:
    """The run is one of the definition, step by step, says the reference interpreter."""
    definition = define(TabletCluster, profile)
    interpreter = Interpreter(definition, scope_of(definition, {}, SMALL))
    assert run.states[0] in set(interpreter.initial_states())
    for before, step, after in zip(run.states, run.steps, run.states[1:], strict=False):
        assert interpreter.take(step, before) == after


def test_the_newest_release_keeps_every_promise_with_a_crash_and_a_failed_action() -> None:
    assert broken(checked("scylla-2026.2")) == set()


@pytest.mark.parametrize(
    ("sizes", "budgets"),
    by_turns(
        some_of(
            [
                ({"tablet": 2}, {"crashes": 0}),
                ({"node": 3}, {"writes": 0, "failures": 0}),
                ({}, {"crashes": 0, "coordinator_changes": 1, "reads": 1}),
                ({}, {"migrations": 2}),
                ({}, {"migrations": 0, "rebuilds": 1, "writes": 0}),
                ({}, {"migrations": 1, "topology_changes": 1, "crashes": 0, "failures": 0}),
                ({}, {"migrations": 0, "repairs": 1, "crashes": 0}),
                ({}, {"loads": 1, "writes": 0, "crashes": 0}),
                ({}, {"compactions": 1, "crashes": 0, "failures": 0}),
            ]
        )
    ),
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(sizes: dict[str, int], budgets: dict[str, int]) -> None:
    assert broken(checked("scylla-2026.2", budgets, sizes=sizes)) == set()


def test_every_action_happens_and_every_requirement_refuses_something() -> None:
    report = checked("scylla-2026.2", {"reads": 1})  # the default scope
    assert broken(report) == set()
    assert (report.states, report.transitions) == (911_910, 4_150_210)  # as the README says
    assert report.coverage is not None
    others = {"change_topology", "end_topology_change", "run_repair", "finish_repair_run"}
    others |= {"tablets.begin_rebuild_repair", "tablets.stream_after_repair"}
    others |= {"tablets.end_repair", "tablets.finish_repair", "end_compaction"}
    assert set(report.coverage.never_fired) == others  # what this scope has no budget for


def test_the_seed_leaves_open_what_its_machine_says() -> None:
    report = checked("seed")
    assert broken(report) == {
        "only_replicas_hold_data",
        "only_replicas_have_storage",
        "migrations_end",
        "tablets.every_transition_ends",
        "tablets.can_come_to_rest",
    }


def test_the_release_before_has_the_cleanup_bug_that_was_reported() -> None:
    """A late write reaches a pending replica after its cleanup: scylladb #26512."""
    report = checked("scylla-2025.4")
    assert broken(report) == {"cleaned_up_replicas_stay_empty", "writes_find_storage"}
    for verdict in report.verdicts:
        if verdict.run is not None:
            replayed("scylla-2025.4", verdict.run)


class NoFence(TabletCluster):
    """The barrier does not refuse what older versions left in the network."""

    def _forget(self, n: Any, where: Any = None) -> None:
        if where is None:
            super()._forget(n)


class NobodyDrains(NoFence):
    """Nor does it wait for such requests; with the fence alone they would only be refused."""

    def _acknowledges_barrier(self, n: Any, t: Any) -> Any:
        return self.excluded.has(n) | (~self.down.has(n) & self._current(n, t))


class NobodyNeedsToLearn(TabletCluster):
    """The barrier does not wait for nodes to learn the stage."""

    def _acknowledges_barrier(self, n: Any, t: Any) -> Any:
        drained = ~self._is_older(n, t) | self.request[n].abandoned
        return self.excluded.has(n) | (~self.down.has(n) & drained)


class SessionsStayOpen(TabletCluster):
    """A chunk of a closed session is taken for one of an open one."""

    def _learns_of_closing(self, n: Any, t: Any) -> Any:
        return self.chunk[t].closed


class AnswersOutliveTheirStage(TabletCluster):
    """What a replica answered once is taken for the answer to what is asked of a dead one later."""

    @action(fair=Fairness.WEAK)
    def ask_dead_node(self, t: Term[Tablet], n: Term[Node]) -> None:
        require(self._needs(n, t) & self.down.has(n), "a node that the action needs is down")
        self.tablets[t].start_operation()


@pytest.mark.parametrize(
    ("mutant", "budgets"),
    by_turns(
        some_of(
            [
                (NobodyNeedsToLearn, {"crashes": 0, "failures": 0}),
                (AnswersOutliveTheirStage, {"migrations": 2}),
                (NoFence, {}),
                (SessionsStayOpen, {"crashes": 0, "migrations": 2}),
                (NobodyDrains, {"crashes": 0}),
            ]
        )
    ),
)
def test_weakening_a_barrier_or_a_session_breaks_a_promise(
    mutant: type[Machine], budgets: dict[str, int]
) -> None:
    assert broken(checked("scylla-2026.2", budgets, machine=mutant)) != set()
