"""The machines of Couchbase's view engine keep their promises, or break just the documented ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import PartitionRebalance
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.machines.couchbase.partitions.partition_states import PartitionStates
from stagewright.machines.known_bugs.couchbase.partitions.partition_lists import (
    PartitionRequests,
    PartitionVersions,
)
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


@dataclass(frozen=True)
class Default:
    """A machine, and how many states and steps it has at its default scope."""

    machine: type[Machine]
    states: int
    steps: int


DEFAULTS = [
    Default(PartitionStates, 1_024, 7_600),
    Default(PartitionIndex, 23_376, 66_032),
    Default(PartitionQueries, 47_046, 197_460),
    Default(PartitionRebalance, 240_333, 848_916),
    Default(PartitionReplicas, 33_002, 137_562),
    Default(PartitionVersions, 176, 1_180),
    Default(PartitionRequests, 224, 352),
    Default(PartitionMerge, 234_700, 525_000),
    Default(PartitionRollback, 21_534, 72_106),
]


def checked(
    machine: type[Machine],
    profile: str = "",
    sizes: dict[str, int] | None = None,
    budgets: dict[str, int | None] | None = None,
    properties: tuple[str, ...] = (),
) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition, sizes, budgets), properties=properties)
    assert report.exhausted
    return report


@pytest.mark.parametrize("default", DEFAULTS, ids=lambda default: default.machine.__name__)
def test_the_newest_profile_keeps_every_promise(default: Default) -> None:
    report = checked(default.machine)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (default.states, default.steps)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


@pytest.mark.parametrize(
    ("machine", "sizes", "budgets"),
    [
        (PartitionStates, {"partition": 3}, {}),
        (PartitionIndex, {"partition": 1}, {"requests": 5, "writes": 3}),
        (PartitionIndex, {"partition": 1}, {"requests": 4, "kept": 2, "rollbacks": 2}),
        (PartitionQueries, {"partition": 1}, {"requests": 5, "queries": 2}),
        (PartitionRebalance, {"partition": 1}, {"writes": 2, "queries": 2}),
        (PartitionReplicas, {"partition": 1}, {"requests": 8, "writes": 3}),
        (PartitionMerge, {"node": 1}, {}),
        (PartitionRollback, {"item": 1}, {"changes": 4}),
    ],
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(
    machine: type[Machine], sizes: dict[str, int], budgets: dict[str, int | None]
) -> None:
    assert broken(checked(machine, "", sizes, budgets)) == set()


CONTENT = "content_is_that_of_the_sequence_number"


@pytest.mark.parametrize(
    ("machine", "leaves_open"),
    [
        (PartitionStates, {CONTENT, "a_partition_starts_empty"}),
        (PartitionIndex, {f"index.{CONTENT}", "a_partition_starts_empty"}),
        (PartitionQueries, {f"index.{CONTENT}"}),
        (
            PartitionRebalance,
            {
                f"nodes.{CONTENT}",
                "each_partition_is_served_once",
                "an_answer_is_complete",
                "an_index_is_paused_only_while_another_catches_up",
            },
        ),
        (
            PartitionReplicas,
            {f"main.{CONTENT}", f"replica.{CONTENT}", "no_row_is_lost"},
        ),
    ],
)
def test_the_seed_leaves_open_what_its_machine_says(
    machine: type[Machine], leaves_open: set[str]
) -> None:
    """The document has no pending transition, which an asynchronous cleanup needs."""
    report = checked(machine, "seed", {"partition": 1})
    assert broken(report) == leaves_open


def test_the_partition_states_are_proved() -> None:
    definition = define(PartitionStates)
    report = prove(definition, scope_of(definition, {"partition": 2}), max_k=1, depth=1)
    assert [v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS] == []


def test_the_profiles_are_told_apart_by_what_the_document_leaves_out() -> None:
    assert not SEED.pending_transition
    assert COUCHBASE.pending_transition


class CleanupOfPendingIsOverheard(PartitionStates):
    """What the server does: while a partition is unindexable, those in cleanup are filtered out."""

    def _merge_into_pending_transition(
        self, p: Any, *, active: Any = False, passive: Any = False
    ) -> None:
        entry = self.group[p]
        asked = entry.pending_active & ~entry.pending_active
        keeps = ~self.paused.is_empty() if active is False and passive is False else asked
        entry.pending_active = (entry.pending_active & keeps) | active
        entry.pending_passive = (entry.pending_passive & keeps) | passive


def test_a_cleanup_that_the_server_overhears_adds_a_partition_nobody_wants() -> None:
    """A defect of the server that we found by reading; no row of the list of known bugs."""
    assert "roles_are_those_requested" in broken(checked(CleanupOfPendingIsOverheard))


class TakenOverTooEarly(PartitionRebalance):
    """Nobody waits for the index of the new node."""

    def _index_has_caught_up(self, p: Any, new: Any) -> None:
        pass


class QueriesReadAnything(PartitionRebalance):
    """stale=false does not wait on the nodes."""

    def _may_be_read(self, n: Any, p: Any) -> Any:
        return self.querying


@pytest.mark.parametrize("mutant", [TakenOverTooEarly, QueriesReadAnything])
def test_an_answer_is_not_complete_without_waiting_for_an_index(mutant: type[Machine]) -> None:
    report = checked(mutant, "", {"partition": 1}, {"moves": 1}, ("an_answer_is_complete",))
    assert broken(report) == {"an_answer_is_complete"}


class OursIsTheirs(PartitionIndex):
    """What the updater hands over replaces all, also what is newer than the updater."""

    def _merged(self, p: Any, theirs: Any) -> Any:
        return theirs.content


def test_a_result_of_a_worker_is_of_the_index_as_it_was() -> None:
    assert broken(checked(OursIsTheirs, "", {}, {"crashes": 0})) != set()
