"""The topology machines say what the tables of the real system say, and `system.topology` holds their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
from tests.thorough import some_of

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_row import (
    IN_REQUESTS,
    IN_TOPOLOGY,
    NODE_COLUMNS_OF_001,
    STATIC_COLUMNS_OF_001,
    Generation,
    hosts,
    state_of,
    tables_of,
)
from stagewright.machines.scylladb.topology.topology_states import (
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec.define import define
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.encoding import decode
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import scope_of

BOOTSTRAP = [
    ("null", "join_group0"),
    ("join_group0", "null"),
    ("join_group0", "commit_cdc_generation"),
    ("join_group0", "left_token_ring"),
    ("null", "commit_cdc_generation"),
    ("commit_cdc_generation", "write_both_read_old"),
    ("commit_cdc_generation", "null"),
    ("commit_cdc_generation", "left_token_ring"),
]
RING = [
    ("write_both_read_old", "write_both_read_new"),
    ("write_both_read_old", "left_token_ring"),
    ("write_both_read_old", "rollback_to_normal"),
    ("write_both_read_new", "null"),
    ("write_both_read_new", "left_token_ring"),
    ("left_token_ring", "null"),
    ("rollback_to_normal", "tablet_migration"),
]
TABLETS = [("null", "tablet_migration"), ("tablet_migration", "null")]
DRAINING = [
    ("null", "tablet_draining"),
    ("join_group0", "tablet_draining"),  # of a replaced node, too
    ("tablet_draining", "write_both_read_old"),
    ("tablet_draining", "rollback_to_normal"),
    ("tablet_draining", "left_token_ring"),  # of a node that replaces another
]
FINALIZATION = [
    (a, b)
    for state in ("tablet_resize_finalization", "truncate_table", "lock")
    for a, b in (("null", state), (state, "null"))
]
SNAPSHOTS = [("null", "snapshot_tables"), ("snapshot_tables", "null")]
SEED_RING = [
    ("null", "commit_cdc_generation"),
    ("commit_cdc_generation", "publish_cdc_generation"),
    ("publish_cdc_generation", "write_both_read_old"),
    ("publish_cdc_generation", "null"),
    ("null", "write_both_read_old"),
    ("write_both_read_old", "write_both_read_new"),
    ("write_both_read_new", "null"),
    ("commit_cdc_generation", "null"),  # a node that joins is left
    ("write_both_read_old", "null"),
]

# The edges of each profile, as facts about the real systems list them.
EDGES = {
    "seed": {*SEED_RING, *TABLETS},
    "scylla-6.0": {*BOOTSTRAP, *RING, *TABLETS, *DRAINING},
    "scylla-2025.4": {*BOOTSTRAP, *RING, *TABLETS, *DRAINING, *FINALIZATION},
    "scylla-2026.2": {
        *BOOTSTRAP,
        *RING,
        *TABLETS,
        *FINALIZATION,
        *SNAPSHOTS,
        ("null", "write_both_read_old"),
        ("join_group0", "write_both_read_old"),
    },
}
NODE_EDGES = {
    ("absent", "none"),
    ("none", "bootstrapping"),
    ("none", "replacing"),
    ("none", "left"),
    ("bootstrapping", "normal"),
    ("replacing", "normal"),
    ("normal", "rebuilding"),
    ("rebuilding", "normal"),
    ("normal", "decommissioning"),
    ("normal", "removing"),
    ("decommissioning", "left"),
    ("removing", "left"),
    ("bootstrapping", "left"),
    ("normal", "left"),  # of the replaced node
}
# A node that is replaced or removed is down already: its rollback takes a second fault.
WAY_BACK = {("decommissioning", "normal")}


@cache
def edges_of(profile: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The edges of the transition state, and of node states, that a request and a fault lead through."""
    definition = define(TopologyControl, profile)
    model = ground(definition, scope_of(definition, {}, {"requests": 1, "faults": 1}))
    (transition,) = (c.index for c in model.cells if c.name == "transition_state")
    nodes = [c.index for c in model.cells if c.variable == "node_state"]
    states, node_states = [t.name for t in TransitionState], [n.name for n in NodeState]
    edges: set[tuple[str, str]] = set()
    node_edges: set[tuple[str, str]] = set()
    seen = set(model.initial)
    todo = list(seen)
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            edges.add((states[state[transition]], states[after[transition]]))
            node_edges |= {(node_states[state[n]], node_states[after[n]]) for n in nodes}
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return {e for e in edges if e[0] != e[1]}, {e for e in node_edges if e[0] != e[1]}


@pytest.mark.parametrize("profile", some_of(EDGES, quick=("seed", "scylla-2026.2").__contains__))
def test_the_transition_states_follow_each_other_as_in_the_real_system(profile: str) -> None:
    assert edges_of(profile)[0] == EDGES[profile]


def test_node_states_follow_the_diagram_of_the_document() -> None:
    assert edges_of("seed")[1] == NODE_EDGES


def test_the_releases_add_the_way_back() -> None:
    assert edges_of("scylla-2026.2")[1] == NODE_EDGES | WAY_BACK


def test_requests_are_served_in_the_order_of_the_real_enum() -> None:
    by_priority = sorted(Request, key=lambda request: request.priority)
    assert [r.name for r in by_priority] == ["replace", "join", "remove", "leave", "rebuild"]


@pytest.mark.parametrize(
    ("state", "writes", "reads"),
    [
        ("null", "old", "old"),
        ("commit_cdc_generation", "old", "old"),
        ("write_both_read_old", "both", "old"),
        ("write_both_read_new", "both", "new"),
        ("left_token_ring", "old", "old"),
        ("rollback_to_normal", "old", "old"),
    ],
)
def test_the_rings_of_a_transition_state_are_those_of_the_document(
    state: str, writes: str, reads: str
) -> None:
    row = TransitionState[state]
    assert (row.writes.name, row.reads.name) == (writes, reads)


# -- system.topology ------------------------------------------------------------------------------


@cache
def reachable_states() -> tuple[Mapping[str, Any], ...]:
    """Every state that the control machine reaches with one request and no faults."""
    definition = define(TopologyControl)
    model = ground(definition, scope_of(definition, {}, {"requests": 1, "faults": 0}))
    seen = dict.fromkeys(model.initial)
    todo = list(seen)
    while todo:
        for _, after in successors(model, todo.pop()):
            if after not in seen:
                seen[after] = None
                todo.append(after)
    return tuple(decode(model, state) for state in seen)


def test_every_reachable_state_survives_being_written_to_the_tables_and_read_again() -> None:
    cluster = hosts(2)
    generation = Generation(datetime(2023, 7, 31, tzinfo=UTC), uuid4())
    for state in reachable_states():
        tables = tables_of(state, cluster, generation)
        assert state_of(tables, cluster) == {
            name: state[name] for name in (*IN_TOPOLOGY, *IN_REQUESTS)
        }
        assert tables.static.current_cdc_generation_uuid == generation.id


def test_the_text_values_are_the_documents_own() -> None:
    cluster = hosts(2)
    tables = [tables_of(state, cluster) for state in reachable_states()]
    assert {row.node_state for t in tables for row in t.nodes.values()} == {
        "none",
        "bootstrapping",
        "decommissioning",
        "rebuilding",
        "normal",
        "left",
    }
    assert {t.static.transition_state for t in tables} >= {
        None,
        "commit_cdc_generation",
        "write_both_read_old",
        "write_both_read_new",
    }
    assert {row.topology_request for t in tables for row in t.nodes.values()} == {
        None,
        "join",
        "leave",
        "rebuild",
    }


def test_a_node_without_tokens_has_null_in_that_column_and_a_left_node_keeps_its_row() -> None:
    cluster = hosts(2)
    left = next(s for s in reachable_states() if NodeState.left in s["node_state"].values())
    row = next(r for r in tables_of(left, cluster).nodes.values() if r.node_state == "left")
    assert row.tokens is None
    assert row.num_tokens == 4


def test_the_columns_are_those_of_the_document() -> None:
    assert set(NODE_COLUMNS_OF_001) | set(STATIC_COLUMNS_OF_001) | {"key"} == {
        "key",
        "host_id",
        "datacenter",
        "ignore_msb",
        "node_state",
        "num_tokens",
        "rack",
        "rebuild_option",
        "release_version",
        "replaced_id",
        "shard_count",
        "tokens",
        "topology_request",
        "transition_state",
        "current_cdc_generation_timestamp",
        "current_cdc_generation_uuid",
        "global_topology_request",
        "new_cdc_generation_data_uuid",
    }


def test_a_text_that_is_no_state_is_refused() -> None:
    cluster = hosts(1)
    state = next(s for s in reachable_states() if s["node_state"][Node(0)] is NodeState.normal)
    tables = tables_of(state, cluster)
    row = replace(tables.nodes[cluster[Node(0)].host_id], node_state="joining")
    with pytest.raises(InputError, match="`joining` is no NodeState"):
        state_of(replace(tables, nodes={row.host_id: row}), cluster)
