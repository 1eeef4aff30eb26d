"""Streaming of token ranges: what a table that is dropped meanwhile had to give is not waited for, nor taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import Order, OrderDone, PullRows, RowChunk, Work
from stagewright.impl.node.port import Effect, Send
from stagewright.impl.node.replica import Replica
from stagewright.impl.node.streams import Streams
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.machines.scylladb.topology.topology_states import NodeState

ORDER = Order(1, 7, Work.stream, "session")
KEY = (1).to_bytes(8, "big") + b"a"


@pytest.fixture
def dropped() -> set[str]:
    """The tables that are dropped, as the node has learned."""
    return set()


@pytest.fixture
def streams(dropped: set[str]) -> Streams:
    """Of node n3, which gains all ranges of two tables from n1 and n2."""
    numbers = iter(range(1, 1000))
    chosen = SimpleNamespace(writes=("n1", "n2", "n3"), reads=("n1", "n2"), pending=("n3",))
    view = SimpleNamespace(
        session="session",
        nodes={"n3": SimpleNamespace(state=NodeState.bootstrapping)},
        vnode_tables={"ks.a": 3, "ks.b": 3},
        logs={},
        kept={},
        ignored=frozenset[str](),
        ranges=lambda: [(0, 5)],
        chosen=lambda *_: chosen,
        fetchers=lambda *_: ("n3",),
        is_dropped=dropped.__contains__,
    )
    node = SimpleNamespace(
        name="n3",
        rows=MemoryRows(ModelledDisk()),
        view=view,
        number=lambda: next(numbers),
        has=lambda _: False,
        report=lambda _: None,
        member=SimpleNamespace(head=SimpleNamespace(position=9)),
        timing=SimpleNamespace(resend=60),
    )
    replica = SimpleNamespace(
        store=lambda batch, *then: [*batch, *then], say_once_synced=lambda end: [end]
    )
    return Streams(cast("Context", node), cast("Replica", replica))


def pulls(effects: list[Effect]) -> dict[tuple[str, str], int]:
    """What is asked for of whom, with the numbers of the transfers."""
    sent = [e for e in effects if isinstance(e, Send) and isinstance(e.message, PullRows)]
    found = ((e.to, cast("PullRows", e.message)) for e in sent)
    return {(to, pull.table): pull.transfer for to, pull in found}


def chunk(number: int) -> RowChunk:
    return RowChunk(number, b"", ((KEY, 5, b"1"),), None)


def test_streaming_ends_without_the_sources_of_a_table_that_is_dropped(
    streams: Streams, dropped: set[str]
) -> None:
    asked = pulls(streams.begin("n1", ORDER))
    for source in ("n1", "n2"):
        streams.received(chunk(asked[source, "ks.a"]))
    assert streams.learned() == []
    dropped.add("ks.b")
    assert streams.learned() == [Send("n1", OrderDone(1, 7, True))]
    assert streams.learned() == []


def test_rows_of_a_dropped_table_are_not_stored(streams: Streams, dropped: set[str]) -> None:
    asked = pulls(streams.begin("n1", ORDER))
    assert len(streams.received(chunk(asked["n1", "ks.b"]))) == 1
    dropped.add("ks.b")
    assert streams.received(chunk(asked["n2", "ks.b"])) == []
