"""What the shipped machines are declared to be seen as, they are; and a wrong step of either is found."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from tests.thorough import by_turns, some_of

from stagewright.checker.limits import Limits
from stagewright.checker.refinement.verdicts import Searching, decide
from stagewright.machines import REFINEMENTS
from stagewright.machines.recorded.barriers import NodeBarrier
from stagewright.machines.scylladb.tablets.intranode_migration import IntranodeMigration, Stage
from stagewright.machines.scylladb.topology.fencing import Fencing, Stage as FencingStage
from stagewright.machines.scylladb.topology.topology_coordinator import TopologyCoordinator
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Machine, Refinement, action, require
from stagewright.spec.refinement import refinements_in
from stagewright.spec.verdict import Outcome, PropertyVerdict

DECLARED = {one.name: one for place in REFINEMENTS for one in refinements_in(import_module(place))}
CASES = [(name, profile) for name, one in DECLARED.items() for profile in one.covered]
NEWEST = [*dict(CASES).items()][::2]

# The machines that logs are read by, those that are recorded, and each with a tablet's stage.
SEEN = {
    "TopologyTransition",
    "TopologyNode",
    "TopologyRequest",
    "CdcGeneration",
    "ViewTask",  # of which a batch has several
    "ViewDestinations",  # where a worker's staging sstables are
    "BackfillTablet",
    "PromptIndex",
    "RecordedReplica",
    "RecordedResize",
    "RecordedSession",
    "RecordedShard",
    "RecordedWrite",
    "TabletMigration",
    "Fencing",  # of which a recorded barrier is one
    "PartitionStates",
}
WITH_A_STAGE = {
    "TabletCluster",
    "TabletReplicas",
    "IntranodeMigration",
    "TabletRepair",
    "ViewBuilding",
    "TopologyCoordinator",
    "Fencing",
    "LoadBalancer",
    "SharedFence",
}


def decided(given: Refinement, profile: str) -> PropertyVerdict:
    mapped = given.mapped(profile)
    return decide(mapped, mapped.scopes, Searching(Limits()))


@pytest.mark.parametrize(("name", "profile"), by_turns(some_of(CASES, quick=NEWEST.__contains__)))
def test_every_declared_refinement_holds(name: str, profile: str) -> None:
    verdict = decided(DECLARED[name], profile)
    assert verdict.outcome is Outcome.HOLDS, verdict.note


def test_all_of_these_are_declared() -> None:
    assert {one.seen.__name__ for one in DECLARED.values()} == SEEN
    stages = {
        o.concrete.__name__ for o in DECLARED.values() if o.seen.__name__ == "TabletMigration"
    }
    assert stages == WITH_A_STAGE


class EndsAtOnce(IntranodeMigration):
    """As it was written once: no barrier between the cleanup and the end."""

    @action
    def end_at_once(self) -> None:
        """The transition is deleted with its cleanup."""
        require(self.stage == Stage.cleanup_target, "stage is cleanup_target")
        require(self.operated, "action done")
        self.stage = Stage.none
        self.operated = False


class EndsBarriersEarly(NodeBarrier):
    """A coordinator that takes a barrier for passed without asking."""

    @action
    def end_early(self) -> None:
        """Nobody has answered."""
        self.passed = True


class ForgetsARound(BackfillLeaders):
    """An index that is being removed is taken for unused while servers still delete from it."""

    @action
    def forget_a_round(self) -> None:
        """One version where two are needed."""
        removing = Permission.write_and_delete_while_removing
        require(self.permission == removing, "the index is being removed")
        self.permission = Permission.index_unused


class SkipsStreaming(Fencing):
    """Writes go to the new replicas alone, and nothing was streamed."""

    @action
    def skip(self) -> None:
        """The last stage is committed at once."""
        require(self.stage == FencingStage.old, "stage is old")
        self.stage = FencingStage.new


@pytest.mark.parametrize(
    ("name", "machine", "step"),
    [
        ("a_tablet_behind_a_fence", SkipsStreaming, "skip"),
        ("a_tablet_within_a_node", EndsAtOnce, "end_at_once"),
        ("threads_move_an_index", ForgetsARound, "forget_a_round"),
        ("a_barrier_at_a_node", EndsBarriersEarly, "end_early"),
    ],
)
def test_a_step_too_many_is_found(name: str, machine: type[Machine], step: str) -> None:
    given = DECLARED[name]
    wrong = replace(given, body=_of(given, machine))
    verdict = decided(wrong, [*given.covered][-1])
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.run is not None
    assert verdict.run.steps[-1].action == step


def _of(given: Refinement, machine: type[Machine]) -> Any:
    """The same mapping, of another machine."""

    def body(it: Any, seen: Any) -> None:
        given.body(it, seen)

    body.__annotations__ = {"it": machine, "seen": given.seen, "return": None}
    return body


def test_a_table_that_is_dropped_takes_a_tablet_out_of_its_stage() -> None:
    """`drop_table` is no step of a tablet's transition: without saying that the tablet goes, it is refused."""
    given = DECLARED["a_tablet_that_is_committed"]
    verdict = decided(replace(given, anew=()), "")
    assert verdict.run is not None
    assert verdict.run.steps[-1].action == TopologyCoordinator.drop_table.__name__
