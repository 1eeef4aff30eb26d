"""Laws of rings and tablet maps: each token has one owner, replicas follow the selectors of the machines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.impl.ring.partitioner import FIRST_TOKEN, LAST_TOKEN
from stagewright.impl.ring.tablets import Tablet, TabletMap, TabletReplica
from stagewright.impl.ring.vnodes import RingNode, Rings
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas, Stage
from stagewright.machines.scylladb.topology.topology_states import NodeState, Ring, TransitionState
from stagewright.spec.errors import InputError

tokens = st.integers(FIRST_TOKEN, LAST_TOKEN)
RING = [s for s in NodeState if s.owns or s.will_own]


@st.composite
def clusters(draw: st.DrawFn) -> list[RingNode]:
    """Up to seven nodes in up to three racks, with tokens of their own, one of which may be changing."""
    count = draw(st.integers(1, 7))
    each = draw(st.integers(1, 4))
    drawn = draw(st.lists(tokens, min_size=count * each, max_size=count * each, unique=True))
    nodes = [
        RingNode(
            f"n{i}",
            NodeState.normal,
            frozenset(drawn[i * each : (i + 1) * each]),
            rack=f"rack{draw(st.integers(1, 3))}",
        )
        for i in range(count)
    ]
    if count > 1 and draw(st.booleans()):
        state = draw(st.sampled_from([s for s in RING if s is not NodeState.normal]))
        last = nodes.pop()
        of = nodes[0] if state is NodeState.replacing else None
        mine = last.tokens if of is None else of.tokens
        replaced = None if of is None else of.host
        nodes.append(RingNode(last.host, state, mine, rack=last.rack, replaced=replaced))
    return nodes


@given(clusters(), tokens)
def test_every_token_lies_in_one_range_and_has_one_owner(nodes: list[RingNode], token: int) -> None:
    ring = Rings.of(nodes).old
    holding = [
        end
        for start, end in ring.ranges()
        if (start < token <= end if start < end else token > start or token <= end)
    ]
    assert holding == [ring.vnode_of(token)]
    assert token not in ring.owners or ring.owners[token] == ring.owner_of(token)


@given(clusters(), tokens, st.integers(1, 4))
def test_replicas_are_different_nodes_with_racks_apart(
    nodes: list[RingNode], token: int, factor: int
) -> None:
    ring = Rings.of(nodes).old
    owners = {n.host: n for n in ring.owners.values()}
    replicas = ring.replicas(token, {"dc1": factor})
    assert len(replicas) == len(set(replicas)) == min(factor, len(owners))
    assert replicas[0] == ring.owner_of(token).host
    racks = {n.rack for n in owners.values()}
    assert len({owners[h].rack for h in replicas}) == min(len(replicas), len(racks))
    assert ring.replicas(token, {"dc2": factor}) == ()


@given(clusters(), tokens, st.integers(1, 3), st.sampled_from(list(TransitionState)))
@settings(max_examples=examples(200))
def test_requests_use_the_rings_of_the_transition_state(
    nodes: list[RingNode], token: int, factor: int, state: TransitionState
) -> None:
    rings, factors = Rings.of(nodes), {"dc1": factor}
    old, new = rings.old.replicas(token, factors), rings.new.replicas(token, factors)
    chosen = rings.chosen(token, factors, state)
    assert chosen.reads == (new if state.reads is Ring.new else old)
    wanted = {Ring.old: set(old), Ring.both: {*old, *new}, Ring.new: set(new)}
    assert set(chosen.writes) == wanted[state.writes]
    assert set(chosen.reads) <= set(chosen.writes)  # a read sees what was written meanwhile
    assert set(chosen.pending) == (set(new) - set(old) if state.writes is Ring.both else set())


def test_a_node_that_is_replaced_is_in_the_old_ring_only() -> None:
    nodes = [
        RingNode("n1", NodeState.normal, frozenset({0})),
        RingNode("n2", NodeState.normal, frozenset({9})),
        RingNode("n3", NodeState.replacing, frozenset({9}), replaced="n2"),
    ]
    rings = Rings.of(nodes)
    assert (rings.old.owner_of(5).host, rings.new.owner_of(5).host) == ("n2", "n3")


def test_two_nodes_cannot_own_one_token() -> None:
    nodes = [RingNode(h, NodeState.normal, frozenset({5})) for h in ("n1", "n2")]
    with pytest.raises(InputError, match="n1 and n2 both own token 5"):
        Rings.of(nodes)


maps = st.integers(0, 10).map(
    lambda bits: TabletMap(tuple(Tablet((TabletReplica(f"n{i}"),)) for i in range(1 << bits)))
)


@given(maps, tokens)
def test_every_token_lies_in_one_tablet(tablets: TabletMap, token: int) -> None:
    number = tablets.tablet_of(token)
    assert token <= tablets.last_token(number)
    assert number == 0 or token > tablets.last_token(number - 1)
    assert tablets.tablet_that_ends(tablets.last_token(number)) == number
    assert tablets.tablet_of(FIRST_TOKEN) == 0
    assert tablets.last_token(len(tablets.tablets) - 1) == LAST_TOKEN


@given(maps, tokens)
def test_a_split_keeps_each_token_at_its_replicas_and_a_merge_undoes_it(
    tablets: TabletMap, token: int
) -> None:
    split = tablets.split()
    assert split.tablet_of(token) // 2 == tablets.tablet_of(token)
    assert split.tablets[split.tablet_of(token)] == tablets.tablets[tablets.tablet_of(token)]
    assert split.merged() == tablets


def test_a_resize_is_refused_by_name() -> None:
    moving = Tablet((TabletReplica("n1"),), Stage.streaming, (TabletReplica("n2"),))
    still = Tablet((TabletReplica("n1"),))
    with pytest.raises(InputError, match=r"tablet 1 is in transition \(streaming\)"):
        TabletMap((still, moving)).split()
    with pytest.raises(InputError, match="tablets 0 and 1 lie on different replicas"):
        TabletMap((still, Tablet((TabletReplica("n2"),)))).merged()
    with pytest.raises(InputError, match="one tablet cannot be merged"):
        TabletMap((still,)).merged()
    with pytest.raises(InputError, match="3 tablets are no power of two"):
        TabletMap((still,) * 3)
    with pytest.raises(InputError, match="no tablet of 1 ends with token 7"):
        TabletMap((still,)).tablet_that_ends(7)


@pytest.mark.parametrize("stage", list(Stage))
def test_requests_use_the_replicas_of_the_stage(stage: Stage) -> None:
    tablet = Tablet(
        (TabletReplica("n1"), TabletReplica("n2")),
        stage,
        (TabletReplica("n2"), TabletReplica("n3")),
    )
    sets = {
        Replicas.previous: ("n1", "n2"),
        Replicas.both: ("n1", "n2", "n3"),
        Replicas.next: ("n2", "n3"),
    }
    chosen = tablet.chosen()
    assert chosen.reads == sets[stage.reads]
    assert chosen.writes == sets[stage.writes]
    assert chosen.pending == (("n3",) if stage.writes is Replicas.both else ())
    within = Tablet((TabletReplica("n1", 0),), stage, (TabletReplica("n1", 1),))
    assert (within.chosen().writes, within.chosen().pending) == (("n1",), ())
