"""A query over several nodes equals one over all documents, whatever is lost on the way."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.view_engine.query.test_queries import (
    AGES,
    CITY_KEYS,
    DESIGN,
    FUNCTIONS,
    PARTITIONS,
    World,
    queries,
)

from stagewright.impl.view_engine.campaign.map_reduce import rows_of
from stagewright.impl.view_engine.cluster.coordinator import ClusterQueryError, Coordinator
from stagewright.impl.view_engine.cluster.messages import (
    Batch,
    NodeUnavailableError,
    Opened,
    ViewRequest,
)
from stagewright.impl.view_engine.cluster.streams import LONGEST_SILENCE, Part, Streams
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.query.local import QueryError, answer
from stagewright.impl.view_engine.query.params import Query

NODES = {"a": (0, 1, 6), "b": (2, 3, 4, 5), "c": (7,)}
PLACEMENT = {partition: node for node, all_ in NODES.items() for partition in all_}


class Remote:
    """A node over a network that loses requests and answers, never one of them thrice in a row."""

    def __init__(self, group: Group, lossy: bool) -> None:
        self.group = group
        self.now = 0.0
        self.streams = Streams(self._reading, lambda: self.now, rows_a_batch=7)
        self.batches = 0
        self.ends_after = 1 << 30
        self._chosen = random.Random(group.header.active) if lossy else None
        self._lost = 0

    @contextmanager
    def _reading(self, request: ViewRequest) -> Iterator[Sequence[Part]]:
        with self.group.reading(current=request.query.stale == "false") as snapshot:
            active = snapshot.header.active
            wanted = request.query.partitions or ()
            yield [Part(snapshot, [p for p in wanted if active >> p & 1])]

    def open(self, stream: str, request: ViewRequest) -> Opened:
        self._lose()
        found = self.streams.open(stream, request)
        self._lose()
        self._lost = 0
        return found

    def batch(self, stream: str, number: int) -> Batch:
        self.batches += 1
        if number > self.ends_after:
            raise NodeUnavailableError("gone")
        self._lose()
        found = self.streams.batch(stream, number)
        self._lose()
        self._lost = 0
        return found

    def close(self, stream: str) -> None:
        self.streams.close(stream)

    def _lose(self) -> None:
        if self._chosen is not None and self._lost < 2 and self._chosen.random() < 0.3:
            self._lost += 1
            raise NodeUnavailableError("lost")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("one"), 900)
    yield made
    made.group.close()


@pytest.fixture(scope="module")
def groups(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Group]]:
    made = {
        name: Group(
            tmp_path_factory.mktemp(name),
            DesignDocument("d", DESIGN),
            world.source,
            PARTITIONS,
            active=active,
        )
        for name, active in NODES.items()
    }
    yield made
    for group in made.values():
        group.close()


def coordinator_of(
    groups: Mapping[str, Group], placement: Mapping[int, str] = PLACEMENT, *, lossy: bool = False
) -> tuple[Coordinator, dict[str, Remote]]:
    nodes = {name: Remote(group, lossy) for name, group in groups.items()}
    return Coordinator("q", nodes.__getitem__, lambda: placement), nodes


@settings(max_examples=60)
@given(
    st.one_of(
        st.tuples(st.just("by_city") | st.just("counted"), queries(CITY_KEYS)),
        st.tuples(st.just("ages"), queries(AGES)),
    ),
    st.booleans(),
)
def test_answer_of_several_nodes_is_that_of_one(
    world: World, groups: dict[str, Group], asked: tuple[str, Query], lossy: bool
) -> None:
    view, query = asked
    coordinator, nodes = coordinator_of(groups, lossy=lossy)
    with world.group.reading() as snapshot:
        try:
            expected = answer(snapshot, view, query)
        except QueryError as error:
            with pytest.raises(QueryError, match=re.escape(str(error))):
                coordinator.query(world.group.design, view, query)
            return
    found = coordinator.query(world.group.design, view, query)
    assert [(r.key, r.value, r.id) for r in found.rows] == [
        (r.key, r.value, r.id) for r in expected
    ]
    assert {p: at.seq for p, at in found.indexed.items()} == expected.seqs
    if query.partitions is None:
        assert found.total_rows == expected.total_rows
    assert found.errors == {}
    assert not any(node.streams._streams for node in nodes.values())


def test_slow_reader_makes_no_node_run_ahead(groups: dict[str, Group], world: World) -> None:
    coordinator, nodes = coordinator_of(groups)
    with coordinator.streaming(world.group.design, "ages", Query(reduce=False)) as found:
        for _, _ in zip(range(20), found.rows, strict=False):
            pass
        assert sum(node.batches for node in nodes.values()) <= 3 + 20 // 7 + 2 * len(nodes)


def test_node_that_fails_is_an_error_or_ends_the_query(
    groups: dict[str, Group], world: World
) -> None:
    design = world.group.design
    coordinator, nodes = coordinator_of(groups)
    nodes["b"].ends_after = 2
    found = coordinator.query(design, "ages", Query(reduce=False))
    assert list(found.errors) == ["b"]
    rows = rows_of(
        world.source.documents({p: at.seq for p, at in found.indexed.items()}), FUNCTIONS["ages"]
    )
    of_others = [row for row in rows if PLACEMENT[world.partition[row[2]]] != "b"]
    kept = [(r.key, r.value, r.id) for r in found.rows]
    assert [r for r in kept if PLACEMENT[world.partition[str(r[2])]] != "b"] == of_others
    with pytest.raises(ClusterQueryError, match="b: gone"):
        coordinator.query(design, "ages", Query(reduce=False), "stop")


def test_outdated_map_is_looked_up_again(groups: dict[str, Group], world: World) -> None:
    design = world.group.design
    wrong = {**PLACEMENT, 7: "a"}
    maps = iter([wrong, wrong, PLACEMENT])
    nodes = {name: Remote(group, False) for name, group in groups.items()}
    coordinator = Coordinator("q", nodes.__getitem__, lambda: next(maps))
    assert len(coordinator.query(design, "by_city", Query()).rows) == 1
    never = Coordinator("q", nodes.__getitem__, lambda: wrong)
    with pytest.raises(ClusterQueryError, match="ask again"):
        never.query(design, "by_city", Query())
    with pytest.raises(ClusterQueryError, match=r"no node serves the partitions \[7\]"):
        Coordinator("q", nodes.__getitem__, lambda: {0: "a"}).query(
            design, "by_city", Query(partitions=[0, 7])
        )


def test_stream_of_a_coordinator_that_is_gone_ends_by_itself(
    groups: dict[str, Group], world: World
) -> None:
    remote = Remote(groups["b"], False)
    request = ViewRequest("d", "ages", Query(partitions=NODES["b"], reduce=False))
    remote.open("dead", request)
    remote.batch("dead", 0)
    assert remote.streams.close_silent() == 0
    remote.now = LONGEST_SILENCE + 1
    assert remote.streams.close_silent() == 1
    with pytest.raises(KeyError):
        remote.batch("dead", 1)
