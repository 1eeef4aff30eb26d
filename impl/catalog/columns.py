"""Which column of which system table holds each variable of the topology state machine, and how it is written.

The names of tables and columns, and the texts of values, are ScyllaDB's (`system.topology`,
`system.topology_requests`, `system.raft_snapshot_config`, `system.cluster_status`). What a column holds
beside what the definition says of it (the id of a session, of which the definition knows only whether there
is one) comes from `Details`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stagewright.impl.group0 import Mutation
from stagewright.impl.runtime import Place, Taken
from stagewright.machines.scylladb.cdc.cdc_streams import (
    Sharding,
    StreamId,
    TokenRange,
    TopologyDescription,
    generate,
)
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec.values import FrozenMap

TOPOLOGY = "topology"
REQUESTS = "topology_requests"
MEMBERS = "raft_snapshot_config"
STATUS = "cluster_status"
GENERATIONS = "cdc_generations_v3"
TIMESTAMPS = "cdc_generation_timestamps"
TABLES = "tables"
TABLETS = "tablets"
TRUNCATE_AT = "truncate_at"  # of a table: until when it is to be truncated,
TRUNCATED_AT = "truncated_at"  # and until when it is, since nodes began
VIEW_BUILDING = ("view_building_tasks", "view_build_status_v2", "built_views", "scylla_local")

Row = dict[str, Any]
Rows = dict[tuple[str, ...], Row]
ALL: tuple[str, ...] = ()  # the key of the static columns
FAILED = "the request failed"
COMMITS_GENERATION = ("commit_cdc_generation", "commit_generation")


@dataclass
class Details:
    """What steps need beside their arguments. Ids and times are texts, as `SELECT JSON` prints them."""

    new_id: Callable[[], str]  # a time UUID
    now: Callable[[], str]
    tokens: Mapping[Node, tuple[int, ...]] = field(default_factory=dict[Node, tuple[int, ...]])
    vnodes: Mapping[int, int] = field(default_factory=dict[int, int])  # ends, with shards of owners
    from_then_on: str = ""  # when a CDC generation begins to operate
    error: str = FAILED


def text_of(state: TransitionState) -> str | None:
    """A transition state as the column has it."""
    return None if state is TransitionState.null else state.name.replace("_", " ")


def state_of_text(text: str | None) -> TransitionState:
    """The inverse."""
    return TransitionState.null if text is None else TransitionState[text.replace(" ", "_")]


# -- from steps to mutations ------------------------------------------------------------------------------


def mutations_of(
    steps: Iterable[Taken], tables: Mapping[str, Rows], details: Details
) -> tuple[Mutation, ...]:
    """The rows that steps of the topology state machine change, each row once.

    `tables` are those before the steps.
    """
    found: dict[tuple[str, tuple[str, ...]], Row | None] = {}
    writer = _Writer(tables, details, found)
    for taken in steps:
        writer.action = taken.step.action
        for place, value in taken.mutations.items():
            write = _WRITES.get(place.column)
            if write is not None:
                write(writer, place, value)
    return tuple(Mutation(table, key, row) for (table, key), row in found.items())


@dataclass
class _Writer:
    tables: Mapping[str, Rows]
    details: Details
    found: dict[tuple[str, tuple[str, ...]], Row | None]
    action: str = ""  # of the step whose changes are written

    def put(self, table: str, key: tuple[str, ...], **columns: object) -> None:
        row = self.found.get((table, key))
        self.found[table, key] = {**(row or {}), **columns}

    def static(self, **columns: object) -> None:
        self.put(TOPOLOGY, ALL, **columns)

    def node(self, node: Node, **columns: object) -> None:
        self.put(TOPOLOGY, (node.name,), **columns)

    def request(self, node: Node, **columns: object) -> None:
        """Change the newest request of a node."""
        written = self.found.get((TOPOLOGY, (node.name,))) or {}
        number = written.get("request_id") or self.tables[TOPOLOGY][node.name,]["request_id"]
        self.put(REQUESTS, (number,), **columns)

    # One method a variable of the definition.

    def node_state(self, place: Place, value: NodeState) -> None:
        self.node(place.key, node_state=value.name)

    def topology_request(self, place: Place, value: Request | None) -> None:
        self.node(place.key, topology_request=None if value is None else value.name)
        if value is None and self.action.startswith(("accept_", "start_")):
            self.request(place.key, start_time=self.details.now())

    def replaced_id(self, place: Place, value: Node | None) -> None:
        self.node(place.key, replaced_id=None if value is None else value.name)

    def tokens(self, place: Place, value: bool) -> None:
        tokens = sorted(self.details.tokens[place.member]) if value else None
        self.node(place.member, tokens=None if tokens is None else [str(t) for t in tokens])

    def cleanup_needed(self, place: Place, value: bool) -> None:
        self.node(place.member, cleanup_status="needed" if value else "clean")

    def transition_state(self, _: Place, value: TransitionState) -> None:
        self.static(transition_state=text_of(value))

    def version(self, _: Place, value: int) -> None:
        self.static(version=value)

    def fence_version(self, _: Place, value: int) -> None:
        self.static(fence_version=value)

    def session(self, _: Place, value: bool) -> None:
        self.static(session=self.details.new_id() if value else None)

    def new_cdc_generation(self, _: Place, value: bool) -> None:
        """The data of a generation are written; or it is committed; or given up with its operation."""
        if value:
            generation = self.details.new_id()
            self.static(new_cdc_generation_data_uuid=generation)
            self._describe(generation)
            return
        before = self.tables[TOPOLOGY][ALL]
        self.static(new_cdc_generation_data_uuid=None)
        if self.action in COMMITS_GENERATION:
            committed = [self.details.from_then_on, before["new_cdc_generation_data_uuid"]]
            for column in ("committed_cdc_generations", "unpublished_cdc_generations"):
                self.static(**{column: [*before[column], committed]})

    def _describe(self, generation: str) -> None:
        """The streams of each vnode, one for each shard of its owner."""
        for key, columns in described_generation(generation, self.details.vnodes):
            self.put(GENERATIONS, key, **columns)

    def unpublished_cdc_generations(self, _: Place, value: bool) -> None:
        """What is committed is published: users read its streams from these tables."""
        if not value:
            for timestamp, generation in self.tables[TOPOLOGY][ALL]["unpublished_cdc_generations"]:
                self.put(TIMESTAMPS, (timestamp,), generation=generation)
            self.static(unpublished_cdc_generations=[])

    def tablet_work(self, _: Place, value: Work | None) -> None:
        self.static(tablet_work=None if value is None else value.name)

    def global_request(self, _: Place, value: GlobalRequest | None) -> None:
        self.static(global_topology_request=None if value is None else value.name)

    def asked(self, place: Place, value: Request | None) -> None:
        assert value is not None, "the request table forgets nothing"
        number = self.details.new_id()
        self.node(place.key, request_id=number)
        self.put(
            REQUESTS,
            (number,),
            initiating_host=place.key.name,
            request_type=value.name,
            start_time=None,
            done=False,
            error=None,
            end_time=None,
        )

    def done(self, place: Place, value: bool) -> None:
        self.request(place.member, done=value, end_time=self.details.now() if value else None)

    def error(self, place: Place, value: bool) -> None:
        self.request(place.member, error=self.details.error if value else None)

    def members(self, place: Place, value: bool) -> None:
        if value:
            self.put(MEMBERS, (place.member.name,), can_vote=True)
        else:
            self.found[MEMBERS, (place.member.name,)] = None

    def down(self, place: Place, value: bool) -> None:
        self.put(STATUS, (place.member.name,), up=not value)


def described_generation(
    generation: str, vnodes: Mapping[int, int]
) -> Iterator[tuple[tuple[str, str], Row]]:
    """The rows of a new CDC generation: each vnode (its end, with the shards of its owner) and its streams."""
    ring = [(end, Sharding(shards)) for end, shards in sorted(vnodes.items())]
    for one in generate(ring, Random(generation)).ranges:
        streams = [f"0x{stream.to_bytes().hex()}" for stream in one.streams]
        yield (generation, str(one.end)), {"streams": streams, "ignore_msb": one.ignore_msb}


def description_of(generation: str, rows: Rows) -> TopologyDescription:
    """The inverse, from the rows of all generations."""
    ranges = sorted((int(key[1]), row) for key, row in rows.items() if key[0] == generation)
    return TopologyDescription(
        tuple(
            TokenRange(
                end,
                tuple(StreamId.from_bytes(bytes.fromhex(s[2:])) for s in row["streams"]),
                row["ignore_msb"],
            )
            for end, row in ranges
        )
    )


def microseconds_in(text: str) -> int:
    """A time as a column has it, since 1970."""
    seconds, _, rest = text.partition(".")
    return int(seconds) * 1_000_000 + int(f"{rest or '0':0<6}"[:6])


_WRITES: Mapping[str, Callable[[_Writer, Place, Any], None]] = {
    "node_state": _Writer.node_state,
    "topology_request": _Writer.topology_request,
    "replaced_id": _Writer.replaced_id,
    "tokens": _Writer.tokens,
    "cleanup_needed": _Writer.cleanup_needed,
    "transition_state": _Writer.transition_state,
    "version": _Writer.version,
    "fence_version": _Writer.fence_version,
    "session": _Writer.session,
    "new_cdc_generation": _Writer.new_cdc_generation,
    "unpublished_cdc_generations": _Writer.unpublished_cdc_generations,
    "tablet_work": _Writer.tablet_work,
    "global_request": _Writer.global_request,
    "asked": _Writer.asked,
    "done": _Writer.done,
    "error": _Writer.error,
    "members": _Writer.members,
    "down": _Writer.down,
}
KEPT = frozenset(_WRITES)
"""The variables that the tables hold; what tablets there are, `system.tablets` says."""


# -- from rows to a state ----------------------------------------------------------------------------------


def state_of(tables: Mapping[str, Rows]) -> dict[str, Any]:
    """The variables that the tables hold. The keys of nodes are their names."""
    topology, requests = tables[TOPOLOGY], tables[REQUESTS]
    static = topology[ALL]
    rows = {Node(name): row for (name,), row in _nodes(topology)}
    asked = {n: requests[r["request_id"],] for n, r in rows.items() if r["request_id"]}
    wanted = static["global_topology_request"]
    return {
        "node_state": FrozenMap({n: NodeState[r["node_state"]] for n, r in rows.items()}),
        "topology_request": FrozenMap(
            {n: _optional(Request, r["topology_request"]) for n, r in rows.items()}
        ),
        "replaced_id": FrozenMap(
            {n: Node(r["replaced_id"]) if r["replaced_id"] else None for n, r in rows.items()}
        ),
        "tokens": frozenset(n for n, r in rows.items() if r["tokens"]),
        "cleanup_needed": frozenset(n for n, r in rows.items() if r["cleanup_status"] == "needed"),
        "transition_state": state_of_text(static["transition_state"]),
        "version": static["version"],
        "fence_version": static["fence_version"],
        "session": static["session"] is not None,
        "new_cdc_generation": static["new_cdc_generation_data_uuid"] is not None,
        "unpublished_cdc_generations": bool(static["unpublished_cdc_generations"]),
        "global_request": _optional(GlobalRequest, wanted),
        "asked": FrozenMap(
            {n: Request[asked[n]["request_type"]] if n in asked else None for n in rows}
        ),
        "done": frozenset(n for n, r in asked.items() if r["done"]),
        "error": frozenset(n for n, r in asked.items() if r["error"] is not None),
        "members": frozenset(Node(name) for (name,) in tables[MEMBERS]),
        "down": frozenset(Node(name) for (name,), r in tables[STATUS].items() if not r["up"]),
        "tablet_hosts": frozenset(
            Node(host) for row in tables[TABLETS].values() for host, _ in row["replicas"]
        ),
        "tablet_work": _optional(Work, static["tablet_work"]),
    }


def _nodes(topology: Rows) -> Iterator[tuple[tuple[str], Row]]:
    for key, row in topology.items():
        if len(key) == 1:
            yield (key[0],), row


def _optional(kind: Any, text: str | None) -> Any:
    return None if text is None else kind[text]
