"""Tablets are split and merged, guarded by requests, and balanced, as the documents promise."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.checker.prove import prove
from stagewright.machines.scylladb.cluster import Track
from stagewright.machines.scylladb.tablets.load_balancer import (
    MOST_READS,
    MOST_WRITES,
    LoadBalancer,
    Tablet,
)
from stagewright.machines.scylladb.tablets.resize_guards import ResizeGuards
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.tablet_resize import Resize, TabletResize
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Machine, count, every, scope_of, some
from stagewright.spec.define import define
from stagewright.spec.verdict import Outcome, Report


def checked(
    machine: type[Machine],
    budgets: dict[str, int] | None = None,
    sizes: dict[str, int] | None = None,
) -> Report:
    definition = define(machine)
    report = check(definition, scope_of(definition, sizes, budgets), symmetry=True)
    assert report.exhausted
    return report


@pytest.mark.parametrize(
    ("machine", "states", "steps"),
    [
        (TabletResize, 112_379, 510_418),
        (ResizeGuards, 5_270, 25_205),
        (LoadBalancer, 38_136, 92_676),
    ],
)
def test_every_promise_holds_and_every_action_happens(
    machine: type[Machine], states: int, steps: int
) -> None:
    report = checked(machine)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (states, steps)
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize(
    ("machine", "budgets", "sizes"),
    by_turns(
        some_of(
            [
                (TabletResize, {"decisions": 1, "migrations": 2}, {}),
                (
                    TabletResize,
                    {"decisions": 1, "migrations": 0, "failovers": 1, "restarts": 1},
                    {},
                ),
                (ResizeGuards, {"migrations": 2, "resizes": 1}, {}),
                (LoadBalancer, {"disturbances": 2}, {"tablet": 2}),
                (LoadBalancer, {}, {"tablet": 2, "node": 3}),
                (LoadBalancer, {"disturbances": 0}, {"tablet": 2, "shard": 4}),
            ]
        )
    ),
    ids=str,
)
def test_they_hold_at_other_scopes_too(
    machine: type[Machine], budgets: dict[str, int], sizes: dict[str, int]
) -> None:
    assert broken(checked(machine, budgets, sizes)) == set()


# -- mistakes of the kinds that were made ------------------------------------------------------------------


class AnyReadinessCounts(TabletResize):
    """A replica's readiness for an earlier split, since revoked, is taken for this one."""

    def _is_split_everywhere(self) -> Any:
        ready = every(self.reported[n] > 0 for n in self.replicas[Half.left])
        return (self.decision == Resize.split) & ready


class OneReplicaIsEnough(TabletResize):
    """A split is finalized once one of the replicas is ready."""

    def _is_split_everywhere(self) -> Any:
        ready = some(self.reported[n] == self.sequence for n in self.replicas[Half.left])
        return (self.decision == Resize.split) & ready


class ReplicasApartAreMerged(TabletResize):
    """Tablets with different replicas are merged into one."""

    def _is_colocated(self) -> Any:
        return self.decision == Resize.merge


class WhatIsColocatedMovesToo(TabletResize):
    """A replica is moved to a node of the first tablet that the second one has, too: of two nodes none is such."""

    def _lacks(self, half: Any, n: Any) -> Any:
        lacks = super()._lacks(half, n)
        return lacks | ~lacks if half is Half.right else lacks


class ActiveMigrationsDoNotCount(LoadBalancer):
    """The balancer sees the replicas that there are, not those that there will be."""

    def _load(self, s: Any) -> Any:
        return count(self.replicas[t].has(s) for t in Tablet)


class TargetsAreNotLimited(LoadBalancer):
    """Only what streams from a shard is limited."""

    def _has_room(self, leaving: Any, pending: Any) -> Any:
        reads = self._reads(leaving) + count(self.plan_leaving[t] == leaving for t in Tablet)
        return (reads < MOST_READS) & (self._writes(pending) <= MOST_WRITES)


class RequestsAreIgnored(LoadBalancer):
    """The balancer goes on to plan while a topology change is waiting."""

    def _may_plan(self) -> Any:
        return self.track != Track.topology_change


class NodesAreNotTold(LoadBalancer):
    """The balancer looks at shards alone, and puts two replicas of a tablet onto one node."""

    def _can_move(self, t: Any, leaving: Any, pending: Any) -> Any:
        at_rest = (self.stage[t] == Stage.none) & self.plan_pending[t].is_none()
        here = self.replicas[t].has(leaving) & ~self.replicas[t].has(pending)
        return at_rest & here & ~self._drains(pending)


class BackAndForth(LoadBalancer):
    """A migration is planned as soon as a shard has more replicas than another one."""

    def _improves(self, leaving: Any, pending: Any) -> Any:
        return self._drains(leaving) | (self._load(pending) < self._load(leaving))


@pytest.mark.parametrize(
    ("mutant", "budgets", "promise"),
    by_turns(
        some_of(
            [
                (
                    WhatIsColocatedMovesToo,
                    {"decisions": 1, "migrations": 0},
                    "decisions_are_carried_out_or_revoked",
                ),
                (
                    AnyReadinessCounts,
                    {"decisions": 2, "migrations": 0},
                    "split_tablets_have_split_sstables",
                ),
                (
                    OneReplicaIsEnough,
                    {"decisions": 1, "migrations": 0},
                    "split_tablets_have_split_sstables",
                ),
                (
                    ReplicasApartAreMerged,
                    {"decisions": 1, "migrations": 0},
                    "replicas_store_the_rows",
                ),
                (ActiveMigrationsDoNotCount, {"disturbances": 0}, "migrations_do_not_overshoot"),
                (TargetsAreNotLimited, {}, "shards_are_not_overloaded"),
                (RequestsAreIgnored, {}, "nothing_starts_while_a_request_is_pending"),
                (NodesAreNotTold, {"disturbances": 0}, "replicas_are_on_different_nodes"),
                (BackAndForth, {"disturbances": 0}, "balance_is_reached"),
            ]
        )
    ),
)
def test_a_mistake_breaks_the_promise_that_is_about_it(
    mutant: type[Machine], budgets: dict[str, int], promise: str
) -> None:
    sizes = {"tablet": 2} if issubclass(mutant, LoadBalancer) else {}
    if mutant is WhatIsColocatedMovesToo:
        sizes = {"node": 3}
    assert promise in broken(checked(mutant, budgets, sizes))


def test_the_safety_of_guards_is_proved() -> None:
    definition = define(ResizeGuards)
    report = prove(definition, scope_of(definition), max_k=1, depth=4)
    assert {v.outcome for v in report.verdicts} == {Outcome.HOLDS}
