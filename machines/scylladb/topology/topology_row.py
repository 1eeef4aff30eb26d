"""The persistent form of the topology: `system.topology` and `system.topology_requests`, to and from a state.

The columns of 001, "Topology state persistence table", with its own names and text values, and those that the
releases added. What else a state holds is kept elsewhere (tablets, raft's configuration) or nowhere, for
only the present coordinator knows it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec.errors import InputError
from stagewright.spec.values import FrozenMap

E = TypeVar("E", bound=Enum)

IN_TOPOLOGY = (
    "node_state",
    "topology_request",
    "tokens",
    "replaced_id",
    "cleanup_needed",
    "transition_state",
    "version",
    "fence_version",
    "session",
    "new_cdc_generation",
    "unpublished_cdc_generations",
    "global_request",
)
"""The variables of `TopologyControl` that `system.topology` holds."""

IN_REQUESTS = ("asked", "done", "error")
"""Those that `system.topology_requests` holds."""


@dataclass(frozen=True)
class Host:
    """What a node is, whatever its state: the columns that never change."""

    host_id: uuid.UUID
    datacenter: str
    rack: str
    ignore_msb: int
    shard_count: int
    release_version: str
    tokens: frozenset[str]  # that it owns while it owns any


@dataclass(frozen=True)
class Generation:
    """The CDC generation that was introduced last; states do not tell one from another."""

    timestamp: datetime
    id: uuid.UUID


@dataclass(frozen=True)
class NodeRow:
    """A clustering row of `system.topology`; `cleanup_status` is not in 001."""

    host_id: uuid.UUID
    datacenter: str
    ignore_msb: int
    node_state: str
    num_tokens: int
    rack: str
    rebuild_option: str | None
    release_version: str
    replaced_id: uuid.UUID | None
    shard_count: int
    tokens: frozenset[str] | None
    topology_request: str | None
    cleanup_status: str


@dataclass(frozen=True)
class StaticColumns:
    """The static columns; the last four are not in 001."""

    transition_state: str | None
    current_cdc_generation_timestamp: datetime | None
    current_cdc_generation_uuid: uuid.UUID | None
    global_topology_request: str | None
    new_cdc_generation_data_uuid: uuid.UUID | None
    version: int
    fence_version: int
    session: uuid.UUID | None
    unpublished_cdc_generations: frozenset[uuid.UUID]


@dataclass(frozen=True)
class RequestRow:
    """The newest row of a node in `system.topology_requests`."""

    id: uuid.UUID
    initiating_host: uuid.UUID
    request_type: str
    done: bool
    error: str | None


@dataclass(frozen=True)
class Tables:
    """Both tables."""

    static: StaticColumns
    nodes: Mapping[uuid.UUID, NodeRow]
    requests: Mapping[uuid.UUID, RequestRow]


NODE_COLUMNS_OF_001 = tuple(f.name for f in fields(NodeRow) if f.name != "cleanup_status")
STATIC_COLUMNS_OF_001 = (
    "transition_state",
    "current_cdc_generation_timestamp",
    "current_cdc_generation_uuid",
    "global_topology_request",
    "new_cdc_generation_data_uuid",
)


def hosts(count: int) -> dict[Node, Host]:
    """A cluster of that many nodes, each in a rack of its own."""
    return {
        Node(i): Host(
            host_id=_id("host", i),
            datacenter="dc1",
            rack=f"rack{i + 1}",
            ignore_msb=12,
            shard_count=2,
            release_version="3.0.8",
            tokens=frozenset(str(t * 1000 + i) for t in range(-2, 2)),
        )
        for i in range(count)
    }


def tables_of(
    state: Mapping[str, Any], cluster: Mapping[Node, Host], current: Generation | None = None
) -> Tables:
    """The rows that hold a state of `TopologyControl`."""
    present = [n for n in cluster if state["node_state"][n] is not NodeState.absent]
    return Tables(
        static=_static_of(state, current),
        nodes={cluster[n].host_id: _row_of(n, state, cluster) for n in present},
        requests={
            cluster[n].host_id: _request_of(n, state, cluster)
            for n in present
            if state["asked"][n] is not None
        },
    )


def state_of(tables: Tables, cluster: Mapping[Node, Host]) -> dict[str, Any]:
    """The variables that the rows hold.

    Raises:
        InputError: a row is of a host outside of the cluster, or a text is no value of its column.
    """
    nodes = {m.host_id: n for n, m in cluster.items()}
    for host in (*tables.nodes, *tables.requests):
        if host not in nodes:
            raise InputError(f"host {host} is not in the cluster", help="name its machine")
    rows = {n: tables.nodes.get(m.host_id) for n, m in cluster.items()}
    asked = {n: tables.requests.get(m.host_id) for n, m in cluster.items()}
    static = tables.static
    return {
        "node_state": FrozenMap(
            {
                n: _member(NodeState, r.node_state) if r else NodeState.absent
                for n, r in rows.items()
            }
        ),
        "topology_request": FrozenMap(
            {n: _optional(Request, r.topology_request if r else None) for n, r in rows.items()}
        ),
        "tokens": frozenset(n for n, r in rows.items() if r and r.tokens),
        "replaced_id": FrozenMap(
            {n: nodes[r.replaced_id] if r and r.replaced_id else None for n, r in rows.items()}
        ),
        "cleanup_needed": frozenset(
            n for n, r in rows.items() if r and r.cleanup_status == "needed"
        ),
        "transition_state": _optional(TransitionState, static.transition_state)
        or TransitionState.null,
        "version": static.version,
        "fence_version": static.fence_version,
        "session": static.session is not None,
        "new_cdc_generation": static.new_cdc_generation_data_uuid is not None,
        "unpublished_cdc_generations": bool(static.unpublished_cdc_generations),
        "global_request": _optional(GlobalRequest, static.global_topology_request),
        "asked": FrozenMap(
            {n: _optional(Request, r.request_type if r else None) for n, r in asked.items()}
        ),
        "done": frozenset(n for n, r in asked.items() if r and r.done),
        "error": frozenset(n for n, r in asked.items() if r and r.error is not None),
    }


def _static_of(state: Mapping[str, Any], current: Generation | None) -> StaticColumns:
    transition, request = state["transition_state"], state["global_request"]
    version = state["version"]
    generation = _id("generation", version)
    return StaticColumns(
        transition_state=None if transition is TransitionState.null else transition.name,
        current_cdc_generation_timestamp=None if current is None else current.timestamp,
        current_cdc_generation_uuid=None if current is None else current.id,
        global_topology_request=None if request is None else request.name,
        new_cdc_generation_data_uuid=generation if state["new_cdc_generation"] else None,
        version=version,
        fence_version=state["fence_version"],
        session=_id("session", version) if state["session"] else None,
        unpublished_cdc_generations=frozenset(
            {generation} if state["unpublished_cdc_generations"] else ()
        ),
    )


def _row_of(n: Node, state: Mapping[str, Any], cluster: Mapping[Node, Host]) -> NodeRow:
    machine = cluster[n]
    replaced, request = state["replaced_id"][n], state["topology_request"][n]
    return NodeRow(
        host_id=machine.host_id,
        datacenter=machine.datacenter,
        ignore_msb=machine.ignore_msb,
        node_state=state["node_state"][n].name,
        num_tokens=len(machine.tokens),
        rack=machine.rack,
        rebuild_option=None,
        release_version=machine.release_version,
        replaced_id=None if replaced is None else cluster[replaced].host_id,
        shard_count=machine.shard_count,
        tokens=machine.tokens if n in state["tokens"] else None,
        topology_request=None if request is None else request.name,
        cleanup_status="needed" if n in state["cleanup_needed"] else "clean",
    )


def _request_of(n: Node, state: Mapping[str, Any], cluster: Mapping[Node, Host]) -> RequestRow:
    request = state["asked"][n]
    return RequestRow(
        id=_id(f"request {request.name}", n.index),
        initiating_host=cluster[n].host_id,
        request_type=request.name,
        done=n in state["done"],
        error="the request failed" if n in state["error"] else None,
    )


def _id(of: str, number: int) -> uuid.UUID:
    """An id that is the same each time: states have no ids, only whether there is one."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{of} {number}")


def _member(kind: type[E], text: str) -> E:
    try:
        return kind[text]
    except KeyError:
        raise InputError(
            f"`{text}` is no {kind.__name__}", help=f"it is one of: {', '.join(kind.__members__)}"
        ) from None


def _optional(kind: type[E], text: str | None) -> E | None:
    return None if text is None else _member(kind, text)
