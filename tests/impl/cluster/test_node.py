"""The logic of a node, message by message: what it refuses, what it waits for, what it must not forget."""

from __future__ import annotations

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.messages import (
    CLIENT,
    GROUP0,
    BarrierAck,
    BarrierRequest,
    ClientReply,
    ClientRequest,
    DropRows,
    Effect,
    Entries,
    Fetch,
    Learn,
    Message,
    OperationReply,
    Outcome,
    Phase,
    PullRows,
    PutRows,
    ReplicaReply,
    ReplicaRequest,
    Row,
    RowChunk,
    RunOperation,
    Send,
    Wake,
)
from stagewright.impl.cluster.node import Node
from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.cluster.view import View
from stagewright.impl.store import Entry
from stagewright.machines.scylladb.tablets.tablet_stages import Run, Stage

TABLET, KEY = "tablet0", "k0"
OLD, STAYING, NEW = "node0", "node1", "node2"
BOSS = "coordinator/1"


class Disk:
    """The rows of a node, in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}

    def row(self, tablet: str, key: str) -> Row | None:
        return self.rows.get((tablet, key))

    def rows_after(self, tablet: str, after: str, limit: int) -> tuple[Row, ...]:
        keys = sorted(k for t, k in self.rows if t == tablet and k > after)
        return tuple(self.rows[tablet, k] for k in keys[:limit])


def committed(position: int, stage: Stage, session: int | None = None) -> Entry:
    """A migration from node0 and node1 to node1 and node2, at a stage; version and position are equal."""
    at_rest = stage is Stage.none
    attached = {
        "replicas": [OLD, STAYING],
        "next": [OLD, STAYING] if at_rest else [STAYING, NEW],
        "session": session,
        "version": position,
        "entered": position,
    }
    observed = {"stage": stage.name, "kind": None if at_rest else "migration"}
    return Entry(position, TABLET, position - 1, None, observed, attached)


def fence(position: int, version: int) -> Entry:
    return Entry(position, "", position - 1, None, {}, {"fence": version})


def node_at(name: str, *entries: Entry, defects: frozenset[Defect] = frozenset()) -> Node:
    settings = Settings((TABLET,), Consistency.all, defects)
    return Node(name, View().after_all(list(entries)), Disk(), settings)


def sent(effects: list[Effect]) -> list[tuple[str, Message]]:
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def write(version: int) -> ReplicaRequest:
    return ReplicaRequest(STAYING, 7, True, TABLET, Row(KEY, "v", 1), version)


def outcome(effects: list[Effect]) -> Outcome:
    replies = [m for _, m in sent(effects) if isinstance(m, ReplicaReply)]
    assert len(replies) == 1
    return replies[0].outcome


AT_REST = committed(1, Stage.none)
ALLOWED = committed(2, Stage.allow_write_both_read_old)
BOTH = committed(3, Stage.write_both_read_old, session=3)
STREAMING = committed(4, Stage.streaming, session=3)
READ_NEW = committed(5, Stage.write_both_read_new)


def test_write_goes_to_the_replicas_of_the_stage_and_waits_for_all() -> None:
    node = node_at(STAYING, AT_REST, ALLOWED, BOTH)
    effects = node.handle(ClientRequest(1, True, Row(KEY, "v", 1)))
    assert [to for to, _ in sent(effects)] == [OLD, STAYING, NEW]
    assert Wake(120, ("request", 1)) in effects
    for replica in (OLD, STAYING):
        assert node.handle(ReplicaReply(1, replica, Outcome.done)) == []
    assert sent(node.handle(ReplicaReply(1, NEW, Outcome.done))) == [(CLIENT, ClientReply(1, True))]


def test_request_that_takes_too_long_fails() -> None:
    node = node_at(STAYING, AT_REST)
    node.handle(ClientRequest(1, False, Row(KEY, "", 0)))
    failed = ClientReply(1, False, reason="timed out")
    assert sent(node.wake(("request", 1))) == [(CLIENT, failed)]
    assert node.handle(ReplicaReply(1, OLD, Outcome.done)) == []


def test_replica_refuses_versions_older_than_the_fence() -> None:
    node = node_at(OLD, AT_REST, ALLOWED, fence(3, 2))
    refused = node.handle(write(version=1))
    assert outcome(refused) is Outcome.fenced
    assert not any(isinstance(e, PutRows) for e in refused)
    accepted = node.handle(write(version=2))
    assert outcome(accepted) is Outcome.done
    assert isinstance(accepted[0], PutRows), "stored before it is acknowledged"


def test_node_without_storage_refuses() -> None:
    assert outcome(node_at(NEW, AT_REST).handle(write(version=1))) is Outcome.no_storage
    assert outcome(node_at(NEW, AT_REST, ALLOWED).handle(write(version=2))) is Outcome.done


def test_learning_allocates_storage_and_is_written_down_at_once() -> None:
    node = node_at(NEW, AT_REST)
    assert node.handle(Entries((ALLOWED,))) == [Learn((ALLOWED,), (TABLET,), ())]
    assert node.handle(Entries((ALLOWED,))) == [], "known already"


def test_gap_in_what_is_learned_is_filled_first() -> None:
    node = node_at(OLD, AT_REST)
    assert sent(node.handle(Entries((BOTH,)))) == [(GROUP0, Fetch(OLD, 1, 0))]
    assert node.view.position == 1


def test_barrier_learns_first_and_then_waits_for_older_requests() -> None:
    node = node_at(STAYING, AT_REST)
    node.handle(ClientRequest(1, True, Row(KEY, "v", 1)))
    asked = BarrierRequest(BOSS, 1, Phase.drain, 2)
    assert sent(node.handle(asked)) == [(GROUP0, Fetch(STAYING, 1, 1))]
    learned = node.handle(Entries((ALLOWED,), answers=1))
    assert sent(learned) == [], "a request of version 1 is going on"
    node.handle(ReplicaReply(1, OLD, Outcome.done))
    ended = sent(node.handle(ReplicaReply(1, STAYING, Outcome.done)))
    assert ended == [
        (CLIENT, ClientReply(1, True)),
        (BOSS, BarrierAck(1, Phase.drain, STAYING)),
    ]


def test_requests_of_the_present_version_hold_up_no_barrier() -> None:
    node = node_at(STAYING, AT_REST, ALLOWED)
    node.handle(ClientRequest(1, True, Row(KEY, "v", 1)))
    node.handle(BarrierRequest(BOSS, 1, Phase.drain, 2))
    assert sent(node.handle(Entries((), answers=1))) == [
        (BOSS, BarrierAck(1, Phase.drain, STAYING))
    ]


def test_careless_barrier_lets_an_older_request_end_after_it() -> None:
    """The write is acknowledged by the old replicas, and streaming may have begun without it."""
    careless = node_at(STAYING, AT_REST, defects=frozenset({Defect.barrier_does_not_drain}))
    careless.handle(ClientRequest(1, True, Row(KEY, "v", 1)))
    careless.handle(BarrierRequest(BOSS, 1, Phase.drain, 2))
    acked = sent(careless.handle(Entries((ALLOWED,), answers=1)))
    assert acked == [(BOSS, BarrierAck(1, Phase.drain, STAYING))]
    careless.handle(ReplicaReply(1, OLD, Outcome.done))
    ended = sent(careless.handle(ReplicaReply(1, STAYING, Outcome.done)))
    assert ended == [(CLIENT, ClientReply(1, True))]


def test_fence_that_is_not_awaited_leaves_a_replica_that_serves_an_excluded_node() -> None:
    """An excluded node that is alive reads the old replica, while others write to the new ones alone.

    After the draining phase of the barrier of `write_both_read_new` the fence is committed, but this
    replica does not know it. Only the second phase of the barrier makes it refuse.
    """
    replica = node_at(OLD, AT_REST, ALLOWED, BOTH, STREAMING, READ_NEW)
    stale = ReplicaRequest(NEW, 9, False, TABLET, Row(KEY, "", 0), STREAMING.position)
    assert outcome(replica.handle(stale)) is Outcome.done
    replica.handle(BarrierRequest(BOSS, 1, Phase.fence, READ_NEW.position))
    acked = sent(replica.handle(Entries((fence(6, READ_NEW.position),), answers=1)))
    assert acked == [(BOSS, BarrierAck(1, Phase.fence, OLD))]
    assert outcome(replica.handle(stale)) is Outcome.fenced


def test_streaming_pulls_chunk_by_chunk_and_ends_with_its_session() -> None:
    node = node_at(NEW, AT_REST, ALLOWED, BOTH, STREAMING)
    order = RunOperation(BOSS, 1, TABLET, Run.streaming, 3)
    assert sent(node.handle(order)) == [(GROUP0, Fetch(NEW, 4, 1))]
    assert sent(node.handle(Entries((), answers=1))) == [(OLD, PullRows(NEW, TABLET, 3, ""))]
    rows = (Row("k0", "a", 1), Row("k1", "b", 2))
    effects = node.handle(RowChunk(OLD, TABLET, 3, "", rows, last=False))
    assert effects[0] == PutRows(TABLET, rows, session=3)
    assert sent(effects) == [(OLD, PullRows(NEW, TABLET, 3, "k1"))]
    assert node.handle(RowChunk(OLD, TABLET, 3, "", rows, last=False)) == [], "that chunk is known"
    gave_up = committed(5, Stage.cleanup_target)
    node.handle(Entries((gave_up,)))
    assert node.handle(RowChunk(OLD, TABLET, 3, "k1", (Row("k2", "c", 3),), last=True)) == []


def test_stale_orders_are_refused() -> None:
    node = node_at(NEW, AT_REST, ALLOWED, BOTH, STREAMING)
    for number, order in enumerate(
        (
            RunOperation(BOSS, 1, TABLET, Run.streaming, 2),  # of an older session
            RunOperation(BOSS, 2, TABLET, Run.cleanup, 3),  # of another stage
        ),
        start=1,
    ):
        node.handle(order)
        ((_, reply),) = sent(node.handle(Entries((), answers=number)))
        assert isinstance(reply, OperationReply)
        assert not reply.succeeded


def test_only_the_replica_that_is_left_is_cleaned_up() -> None:
    history = (AT_REST, ALLOWED, BOTH, STREAMING, READ_NEW, committed(6, Stage.use_new))
    order = RunOperation(BOSS, 1, TABLET, Run.cleanup, None)
    for name, dropped in ((OLD, [DropRows(TABLET)]), (STAYING, []), (NEW, [])):
        node = node_at(name, *history, committed(7, Stage.cleanup))
        node.handle(order)
        effects = node.handle(Entries((), answers=1))
        assert [e for e in effects if isinstance(e, DropRows)] == dropped
