"""The balancer converges from any placement, keeps to its limits, empties hosts, and says why."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.tablets.driven import Driven

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import (
    Drain,
    Even,
    Host,
    HostState,
    Kind,
    Limits,
    LoadSketch,
    NoPlace,
    NoSource,
    TabletName,
    Verdict,
    plan,
)
from stagewright.spec.errors import InputError

CASES = settings(max_examples=30, deadline=None)


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    replicas: int = 1,
    shards: int | None = None,
    racks: int = 1,
    alike: bool = False,
) -> Driven:
    """Any placement; `alike`: all hosts have as many shards."""
    count = draw(st.integers(max(2, replicas), 6))
    same = draw(st.integers(1, 3)) if shards is None else shards
    hosts = [
        Host(
            f"n{i}",
            same if alike or shards is not None else draw(st.integers(1, 3)),
            f"r{i % racks}",
        )
        for i in range(count)
    ]
    chance = draw(st.randoms(use_true_random=False))
    skewed = draw(st.booleans())
    placed: list[tuple[TabletReplica, ...]] = []
    for _ in range(draw(st.integers(0, 40))):
        among = hosts[: max(replicas, 2)] if skewed else hosts
        chosen = chance.sample(among, replicas)
        placed.append(tuple(TabletReplica(h.name, chance.randrange(h.shards)) for h in chosen))
    limits = Limits(draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    return Driven(hosts, placed, limits)


def potential(driven: Driven) -> int:
    """Each migration that evens two shards takes at least 2 from this."""
    return sum(load * load for load in driven.loads().values())


@CASES
@given(clusters(), st.randoms(use_true_random=False))
def test_loads_of_single_replicas_end_at_most_one_apart(driven: Driven, chance: Random) -> None:
    before = potential(driven)
    driven.settle(chance)
    assert max(driven.loads().values()) - min(driven.loads().values()) <= 1
    assert driven.sketch.spread() <= 1
    assert 2 * len(driven.done) <= before - potential(driven)


@CASES
@given(clusters(replicas=3, shards=1), st.randoms(use_true_random=False))
def test_so_do_those_of_several_replicas_on_hosts_of_one_shard(
    driven: Driven, chance: Random
) -> None:
    before = potential(driven)
    driven.settle(chance)
    assert max(driven.loads().values()) - min(driven.loads().values()) <= 1
    assert 2 * len(driven.done) <= before - potential(driven)


@CASES
@given(clusters(replicas=2, alike=True), st.randoms(use_true_random=False))
def test_on_hosts_of_several_shards_no_swap_is_made_for_the_last_one(
    driven: Driven, chance: Random
) -> None:
    """Where all that one shard could give lies on the other's host already, the definition allows no move."""
    driven.settle(chance)
    assert max(driven.loads().values()) - min(driven.loads().values()) <= 2


@CASES
@given(clusters(), st.randoms(use_true_random=False))
def test_migrations_that_fail_are_undone_and_made_up_for(driven: Driven, chance: Random) -> None:
    driven.settle(chance, failures=3)
    assert max(driven.loads().values()) - min(driven.loads().values()) <= 1
    assert driven.loads() == {
        shard: driven.sketch.load[i] for i, shard in enumerate(driven.sketch.shards)
    }


@CASES
@given(
    clusters(replicas=2, racks=2),
    st.sampled_from([HostState.leaving, HostState.excluded]),
    st.randoms(use_true_random=False),
)
def test_a_host_that_goes_ends_empty_or_it_is_said_why_not(
    driven: Driven, state: HostState, chance: Random
) -> None:
    driven.planned()
    driven.sketch.set_state("n0", state)
    racks = {name: host.rack for name, host in driven.sketch.hosts.items()}
    spread = {t: len({racks[r.host] for r in rs}) for t, rs in driven.replicas.items()}
    last = driven.settle(chance)
    left = {t for t, rs in driven.replicas.items() if any(r.host == "n0" for r in rs)}
    assert left == {b.tablet for b in last.blocked}
    for tablet, replicas in driven.replicas.items():
        assert len({racks[r.host] for r in replicas}) >= spread[tablet]


def test_a_plan_leaves_the_sketch_as_it_is_and_is_made_again_the_same() -> None:
    driven = Driven([Host("a"), Host("b")], [(TabletReplica("a"),)] * 5, Limits(2, 2))
    first = plan(driven.sketch, driven.limits)
    assert first == plan(driven.sketch, driven.limits)
    assert len(first.migrations) == 2
    assert len(plan(driven.sketch, driven.limits, most=1).migrations) == 1


def test_reasons_are_typed_and_read_as_sentences() -> None:
    driven = Driven(
        [Host("a", 2), Host("b")],
        [(TabletReplica("a", 0),)] * 4 + [(TabletReplica("b"),)],
        Limits(),
    )
    made = plan(driven.sketch)
    assert made.migrations[0].kind is Kind.intranode_migration
    assert made.migrations[0].reason == Even(4, 0)
    assert str(made.migrations[0]) == (
        "intranode migration of t:0 from a:0 to a:1: the shard has 4 replicas and the other one 0"
    )
    driven.sketch.set_state("b", HostState.leaving)
    moved = plan(driven.sketch).migrations[0]
    assert moved.reason == Drain("b", HostState.leaving)
    assert str(moved) == "migration of t:4 from b:0 to a:1: b is leaving"


def test_what_cannot_leave_is_named() -> None:
    driven = Driven([Host("a"), Host("b")], [(TabletReplica("a"), TabletReplica("b"))], Limits())
    driven.sketch.set_state("a", HostState.leaving)
    made = plan(driven.sketch)
    assert made.blocked == (NoPlace(TabletName("t", 0), TabletReplica("a")),)
    assert "add a host" in "".join(made.sentences())
    driven.sketch.set_state("a", HostState.excluded)
    driven.sketch.set_state("b", HostState.excluded)
    assert all(isinstance(b, NoSource) for b in plan(driven.sketch).blocked)


def test_a_rack_that_has_a_replica_gets_no_second_one_from_another_rack() -> None:
    hosts = [Host("a", rack="r1"), Host("b", rack="r2"), Host("c", rack="r2")]
    placed = [(TabletReplica("a"), TabletReplica("b"))] * 4
    driven = Driven(hosts, placed, Limits(4, 4))
    assert {(m.leaving.host, m.pending.host) for m in plan(driven.sketch).migrations} == {
        ("b", "c")
    }


def test_saturated_is_not_balanced() -> None:
    driven = Driven([Host("a"), Host("b")], [(TabletReplica("a"),)] * 8, Limits())
    assert driven.planned().verdict is Verdict.work
    made = driven.planned()
    assert made.verdict is Verdict.saturated
    assert "as much as it may" in next(made.sentences())


def test_a_tablet_under_repair_stays_where_it_is() -> None:
    driven = Driven([Host("a"), Host("b")], [(TabletReplica("a"),)] * 2, Limits())
    driven.sketch.occupy(TabletName("t", 0))
    assert [m.tablet.number for m in plan(driven.sketch).migrations] == [1]
    driven.sketch.occupy(TabletName("t", 1))
    assert plan(driven.sketch).verdict is Verdict.balanced
    driven.sketch.release(TabletName("t", 0))
    assert [m.tablet.number for m in plan(driven.sketch).migrations] == [0]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda s: s.add_host(Host("a")), "a is there already"),
        (lambda s: s.add_tablet(TabletName("t", 1), [TabletReplica("c")]), "no host c"),
        (lambda s: s.add_tablet(TabletName("t", 1), [TabletReplica("a", 7)]), "no shard 7"),
        (
            lambda s: s.add_tablet(TabletName("t", 1), [TabletReplica("a"), TabletReplica("a")]),
            "on one host",
        ),
        (
            lambda s: s.start(TabletName("t", 0), TabletReplica("b"), TabletReplica("a")),
            "cannot move",
        ),
        (lambda s: s.end(TabletName("t", 0)), "does not migrate"),
    ],
)
def test_what_cannot_be_is_refused(wrong, says: str) -> None:  # type: ignore[no-untyped-def]
    sketch = LoadSketch([Host("a"), Host("b")])
    sketch.add_tablet(TabletName("t", 0), [TabletReplica("a")])
    with pytest.raises(InputError, match=says):
        wrong(sketch)
