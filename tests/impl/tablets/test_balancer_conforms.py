"""The planner takes the definition's steps: each migration is one, and it stops where the definition does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.tablets.balancer import (
    Host,
    HostState,
    Limits,
    LoadSketch,
    Migration,
    TabletName,
    Verdict,
    plan,
)
from stagewright.machines.scylladb.tablets.load_balancer import LoadBalancer, Node, Shard, Tablet
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.define import define
from stagewright.spec.errors import RefusedError
from stagewright.spec.values import FrozenMap, Value
from stagewright.spec.verdict import Step

PROGRAM = Program(define(LoadBalancer))
EVENTS = ("finish_streaming", "finish_migration", "fail_streaming", "revert_migration", "drain")


class Pair:
    """An instance of the definition and a sketch, which the same things happen to."""

    def __init__(self, shards: list[int], placed: list[list[TabletReplica]]) -> None:
        hosts = [Host(f"n{i}", count) for i, count in enumerate(shards)]
        self.sketch = LoadSketch(hosts)
        self.shards = {r: Shard(i) for i, r in enumerate(self.sketch.shards)}
        self.replica = {s: r for r, s in self.shards.items()}
        for number, replicas in enumerate(placed):
            self.sketch.add_tablet(TabletName("t", number), replicas)
        tablets = [Tablet(i) for i in range(len(placed))]
        where: dict[Value, Value] = {
            t: frozenset(self.shards[r] for r in rs) for t, rs in zip(tablets, placed, strict=True)
        }
        nodes: dict[Value, Value] = {s: Node(int(r.host[1:])) for r, s in self.shards.items()}
        state: dict[str, Value] = {
            "node": FrozenMap(nodes),
            "replicas": FrozenMap(where),
        }
        entities = [*map(Node, range(len(shards))), *self.replica, *tablets]
        self.machine = Instance(PROGRAM, state, entities=entities)
        assert self.machine.starts()

    def take(self, one: Migration) -> None:
        """Add a migration to the definition's plan."""
        self.machine.fire(
            "plan_migration",
            t=Tablet(one.tablet.number),
            leaving=self.shards[one.leaving],
            pending=self.shards[one.pending],
        )

    def plan(self) -> list[Migration]:
        """Plan on both: the definition takes each migration, and has none to add to them."""
        made = plan(self.sketch)
        for one in made.migrations:
            self.take(one)
        assert not self.machine.choices("plan_migration")
        assert self.machine.can("find_nothing") == (made.verdict is not Verdict.work)
        return list(made.migrations)

    def persist(self, migrations: list[Migration]) -> None:
        self.machine.fire("persist_plan")
        for one in migrations:
            self.sketch.start(one.tablet, one.leaving, one.pending)

    def happen(self, step: Step) -> None:
        self.machine.fire(step)
        arguments = step.arguments
        if step.action == "drain":
            node = arguments["n"]
            assert isinstance(node, Node)
            self.sketch.set_state(f"n{node.index}", HostState.leaving)
            return
        moved = arguments["t"]
        assert isinstance(moved, Tablet)
        tablet = TabletName("t", moved.index)
        match step.action:
            case "finish_streaming":
                self.sketch.enter(tablet, Stage.write_both_read_new)
            case "fail_streaming":
                self.sketch.enter(tablet, Stage.cleanup_target)
            case ended:
                self.sketch.end(tablet, undone=ended == "revert_migration")


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    shards = draw(st.lists(st.integers(1, 2), min_size=2, max_size=3))
    copies = draw(st.integers(1, 2))
    places = [TabletReplica(f"n{i}", s) for i, count in enumerate(shards) for s in range(count)]
    replicas = st.lists(
        st.sampled_from(places), min_size=copies, max_size=copies, unique_by=lambda r: r.host
    )
    return Pair(shards, draw(st.lists(replicas, min_size=1, max_size=5)))


@settings(max_examples=30, deadline=None)
@given(pairs(), st.randoms(use_true_random=False))
def test_every_plan_is_of_steps_of_the_definition_and_lacks_none(
    pair: Pair, chance: Random
) -> None:
    for _ in range(12):
        planned = pair.plan()
        if planned and chance.random() < 0.8:
            pair.persist(planned)
        elif planned:
            pair.machine.fire("fail_over")  # the plan is lost: it is made again, the same
            assert pair.plan() == planned
            pair.persist(planned)
        steps = [s for event in EVENTS for s in pair.machine.choices(event)]
        if not steps:
            break
        pair.happen(chance.choice(steps))
    loads = pair.machine.state["replicas"]
    assert set(loads) == {Tablet(t.number) for t in pair.sketch.places}  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(pairs(), st.randoms(use_true_random=False))
def test_balanced_is_where_the_definition_rests(pair: Pair, chance: Random) -> None:
    """With nothing under way, a sketch that is balanced is a state in which the balancer finds nothing."""
    while True:
        planned = pair.plan()
        if planned:
            pair.persist(planned)
        steps = [
            s for e in ("finish_streaming", "finish_migration") for s in pair.machine.choices(e)
        ]
        if not steps:
            break
        pair.happen(chance.choice(steps))
    assert plan(pair.sketch).verdict is Verdict.balanced
    pair.machine.fire("find_nothing")
    if pair.machine.can("leave_track"):
        pair.machine.fire("leave_track")
    assert not pair.machine.enabled() or all(
        s.action in ("drain", "request_topology_change", "fail_over")
        for s in pair.machine.enabled()
    )


def test_a_planner_over_the_limit_is_refused() -> None:
    pair = Pair([1, 1], [[TabletReplica("n0")]] * 4)
    first, second = plan(pair.sketch, Limits(2, 2)).migrations
    pair.take(first)
    with pytest.raises(RefusedError, match="neither shard streams as much as it may"):
        pair.take(second)


def test_a_planner_that_does_not_count_what_is_under_way_is_refused() -> None:
    pair = Pair([1, 1], [[TabletReplica("n0")]] * 3)
    forgetful = plan(pair.sketch)
    pair.persist(pair.plan())
    pair.happen(Step("finish_streaming", FrozenMap({"t": Tablet(0)})))
    with pytest.raises(RefusedError, match="the migration improves the balance"):
        pair.take(replace(forgetful.migrations[0], tablet=TabletName("t", 1)))
