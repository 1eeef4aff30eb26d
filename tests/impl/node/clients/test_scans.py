"""The ranges that scans read: every token once, with the replicas of its own, and no more of them than needed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from stagewright.impl.catalog.view import Member, View
from stagewright.impl.node.clients.scans import ReadRange, read_ranges, within
from stagewright.impl.node.keys import start_of
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState

TABLE = "ks.t"
TOKENS = st.integers(-(1 << 63) + 1, (1 << 63) - 2)


def _member(name: str, tokens: frozenset[int]) -> Member:
    return Member(
        name,
        NodeState.normal,
        tokens,
        "dc",
        name,
        None,
        True,
        True,
        "",
        len(tokens),
        1,
        None,
        False,
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    """Nodes with tokens of their own, and a table by the token ring."""
    names = [f"n{i}" for i in range(1, draw(st.integers(1, 5)) + 1)]
    tokens = draw(st.lists(TOKENS, min_size=len(names), max_size=20, unique=True))
    nodes = {n: _member(n, frozenset(tokens[i :: len(names)])) for i, n in enumerate(names)}
    return View(TransitionState.null, 3, 3, "", nodes, {TABLE: draw(st.integers(1, 3))})


@given(views(), st.lists(TOKENS, max_size=20))
def test_each_token_is_in_one_range_with_the_replicas_that_reads_of_it_ask(
    view: View, tokens: list[int]
) -> None:
    ranges = [*read_ranges(view, TABLE)]
    assert (ranges[0].first, ranges[-1].end) == (start_of(-(1 << 63) + 1), None)
    assert all(left.end == right.first for left, right in pairwise(ranges))
    for token in (*tokens, *(t for n in view.nodes.values() for t in n.tokens)):
        (one,) = (r for r in ranges if _holds(r, token))
        assert set(one.replicas) == set(view.replicas(TABLE, token).reads)


@given(views())
def test_neighbouring_ranges_are_read_by_different_replicas(view: View) -> None:
    ranges = [*read_ranges(view, TABLE)]
    assert all(left.replicas != right.replicas for left, right in pairwise(ranges))
    if len(view.nodes) <= view.tables[TABLE]:
        assert len(ranges) == 1


@given(
    views(), st.lists(TOKENS, min_size=2, max_size=2, unique=True), st.lists(TOKENS, max_size=20)
)
def test_a_scan_that_ends_somewhere_reads_no_range_beyond(
    view: View, ends: list[int], tokens: list[int]
) -> None:
    start, end = sorted(map(start_of, ends))
    whole = [*read_ranges(view, TABLE)]
    ranges = within(whole, start, end)
    assert all(one.end is not None and one.first < end and start < one.end for one in ranges)
    for token in (*tokens, *ends, *(t for n in view.nodes.values() for t in n.tokens)):
        found = [r.replicas for r in ranges if _holds(r, token)]
        (there,) = (r.replicas for r in whole if _holds(r, token))
        if start_of(token) >= end:
            assert not found
        elif start <= start_of(token):
            assert found == [there]
    assert within(whole, start, None) == [r for r in whole if r.end is None or start < r.end]


def _holds(one: ReadRange, token: int) -> bool:
    key = start_of(token)
    return one.first <= key and (one.end is None or key < one.end)
