"""What requests, barriers and streams need of the system tables, computed once a commit that changes it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

from stagewright.impl.catalog.columns import (
    ALL,
    MEMBERS,
    REQUESTS,
    STATUS,
    TABLES,
    TABLETS,
    TOPOLOGY,
    TRUNCATE_AT,
    TRUNCATED_AT,
    Row,
    Rows,
    state_of_text,
)
from stagewright.impl.catalog.memo import Memo
from stagewright.impl.catalog.names import dropped_in, name_of
from stagewright.impl.catalog.tablet_rows import TabletRow, tablets_of
from stagewright.impl.cdc.rows import log_of
from stagewright.impl.ring.initial_tokens import parse_tokens
from stagewright.impl.ring.vnodes import Chosen, RingNode, Rings
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState

NOBODY = Chosen((), (), ())


@dataclass(frozen=True)
class Member:
    """A node, as the tables have it."""

    name: str
    state: NodeState
    tokens: frozenset[int]
    datacenter: str
    rack: str
    replaced: str | None
    up: bool
    in_group0: bool
    address: str
    num_tokens: int
    shards: int
    request: Row | None  # the newest in the request table
    cleanup_needed: bool
    asked: str = ""  # for what, as long as nothing of it has begun
    initial_tokens: tuple[int, ...] = ()  # that it asks for
    features: frozenset[str] = frozenset()  # of which it knows


@dataclass(frozen=True)
class View:
    """The topology at a position of the log."""

    transition_state: TransitionState
    version: int
    fence_version: int
    session: str
    nodes: Mapping[str, Member]
    tables: Mapping[str, int]  # with their replication factors; logs are tables, too
    tablets: Mapping[str, tuple[TabletRow, ...]] = field(default_factory=dict)  # of tablet tables
    # of each table whose changes are captured
    logs: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict[str, int])  # milliseconds of log rows
    images: frozenset[str] = frozenset()  # tables whose logs have each row before its change, too
    views: Mapping[str, ViewDefinition] = field(default_factory=dict[str, ViewDefinition])
    resizes: Mapping[str, str] = field(default_factory=dict[str, str])  # decided of tablet tables
    balances: bool = True  # the balancer evens loads out
    # that are enabled: each node that is let in knows of them
    features: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()  # tables that there are no more, by id
    # Until when tables are to be truncated, and are: microseconds.
    truncations: Mapping[str, int] = field(default_factory=dict[str, int])
    truncated: Mapping[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def rings(self) -> Rings:
        """The rings before and after the change that goes on."""
        return Rings.of(
            RingNode(m.name, m.state, m.tokens, m.datacenter, m.rack, m.replaced)
            for m in self.nodes.values()
        )

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The nodes that are being removed or replaced: nobody asks them."""
        removing = {m.name for m in self.nodes.values() if m.state is NodeState.removing}
        replaced = {m.replaced for m in self.nodes.values() if m.state is NodeState.replacing}
        return frozenset(removing | {r for r in replaced if r is not None})

    @cached_property
    def participants(self) -> tuple[str, ...]:
        """Those whom barriers ask: the normal nodes and the one in transition."""
        return tuple(
            m.name
            for m in self.nodes.values()
            if (m.state is NodeState.normal or m.state.in_transition) and m.name not in self.ignored
        )

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """Where the replicas of a token may change."""
        return self.rings.ends

    @cached_property
    def _chosen(self) -> dict[tuple[int, int], Chosen]:
        return {}

    def chosen(self, token: int, replicas: int) -> Chosen:
        """Whom requests for a token ask."""
        if not self._ends:
            return NOBODY
        place = bisect_left(self._ends, token) % len(self._ends)
        found = self._chosen.get((place, replicas))
        if found is None:
            factors = dict.fromkeys(self.datacenters, replicas)
            found = self.rings.chosen(self._ends[place], factors, self.transition_state)
            self._chosen[place, replicas] = found
        return found

    # -- tables of both kinds --------------------------------------------------------------------------

    @cached_property
    def vnode_tables(self) -> dict[str, int]:
        """The tables whose rows follow the token ring."""
        return {t: n for t, n in self.tables.items() if self.laid_as(t) not in self.tablets}

    def laid_as(self, table: str) -> str:
        """The table whose map says where the rows lie: that of tablets, for their log."""
        base = self._bases.get(table, "")
        return base if base in self.tablets else table

    @cached_property
    def _bases(self) -> dict[str, str]:
        return {log: base for base, log in self.logs.items()}

    def families(self, table: str) -> tuple[str, ...]:
        """A table, and its log if it has one: what lies together of a tablet."""
        return (table, self.logs[table]) if table in self.logs else (table,)

    def replicas(self, table: str, token: int) -> Chosen:
        """Whom requests for a token of a table ask."""
        tablets = self.tablets.get(self.laid_as(table))
        if tablets is None:
            return self.chosen(token, self.tables[table])
        return tablets[_index(token, len(tablets))].chosen

    def factor(self, table: str, chosen: Chosen, *, writes: bool) -> int:
        """Of how many replicas a quorum is one: of a tablet, of those that it has when the table's number changes."""
        if self.laid_as(table) not in self.tablets:
            return self.tables[table]
        return len(chosen.writes) - len(chosen.pending) if writes else len(chosen.reads)

    def tablet(self, table: str, number: int) -> TabletRow | None:
        """A tablet, if there is such."""
        tablets = self.tablets.get(table, ())
        return tablets[number] if 0 <= number < len(tablets) else None

    def tablet_with(self, table: str, token: int) -> TabletRow | None:
        """The tablet of a token, if the table is there and has tablets, or is the log of one that has."""
        tablets = self.tablets.get(self.laid_as(table))
        return None if tablets is None else tablets[_index(token, len(tablets))]

    def named(self, name: str) -> str:
        """The id of the table or view of a name; the name itself if there is none."""
        return self._by_name.get(name, name)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {name_of(table): table for table in self.tables}

    def is_dropped(self, table: str) -> bool:
        """Whether a table, or the table of a log, is there no more: of one that is not known it is not said."""
        return table in self._dropped

    @cached_property
    def _dropped(self) -> frozenset[str]:
        gone = self.dropped - self.tables.keys()
        return gone | {log_of(table) for table in gone}

    def views_of(self, table: str) -> tuple[ViewDefinition, ...]:
        """The materialized views of a table."""
        return self._views_by_base.get(table, ())

    @cached_property
    def _views_by_base(self) -> dict[str, tuple[ViewDefinition, ...]]:
        found: dict[str, tuple[ViewDefinition, ...]] = {}
        for view in self.views.values():
            found[view.base] = (*found.get(view.base, ()), view)
        return found

    def ranges_of(self, table: str) -> Iterator[tuple[int, int]]:
        """Token ranges (low, high] of a table within which all tokens have the same replicas."""
        tablets = self.tablets.get(self.laid_as(table))
        if tablets is None:
            yield from self.ranges()
        else:
            yield from (row.range for row in tablets)

    @cached_property
    def moving(self) -> tuple[TabletRow, ...]:
        """The tablets in transition."""
        return tuple(row for rows in self.tablets.values() for row in rows if row.tablet.moves)

    @cached_property
    def sessions(self) -> frozenset[str]:
        """The open sessions: of the topology, and of tablets."""
        own = {self.session} if self.session else set[str]()
        return frozenset(own | {row.session for row in self.moving if row.session})

    @cached_property
    def given_up(self) -> frozenset[str]:
        """The nodes that tablets are not to wait for: they are gone, or are to be removed or replaced."""
        gone = {
            m.name for m in self.nodes.values() if m.state is NodeState.left or m.asked == "remove"
        }
        replaced = {m.replaced for m in self.nodes.values() if m.asked == "replace" and m.replaced}
        return self.ignored | gone | replaced

    def replicas_after(self, token: int, replicas: int) -> tuple[str, ...]:
        """The replicas of a token in the ring after the change that goes on."""
        return self.rings.new.replicas(token, dict.fromkeys(self.datacenters, replicas))

    def fetchers(self, token: int, replicas: int) -> tuple[str, ...]:
        """Who needs the rows of a token before the ring changes.

        Those that gain it; and where fewer replicas are left than there were, all that stay: a row that is
        on two of three replicas would be on one of two.
        """
        chosen = self.chosen(token, replicas)
        old = [n for n in chosen.writes if n not in chosen.pending]
        new = self.replicas_after(token, replicas)
        stay = tuple(n for n in new if n in old) if len(new) < len(old) else ()
        return (*chosen.pending, *stay)

    @cached_property
    def datacenters(self) -> tuple[str, ...]:
        """Where nodes with tokens are, in their order."""
        return tuple(sorted({m.datacenter for m in self.nodes.values() if m.tokens}))

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Token ranges (low, high] within which all tokens have the same replicas; none wraps."""
        ends = self._ends
        if not ends:
            return
        first, last = -(1 << 63), (1 << 63) - 1
        for low, high in zip((first, *ends), (*ends, last), strict=True):
            if low < high:
                yield low, high


def view_of(tables: Mapping[str, Rows], memo: Memo) -> View:
    """The view of tables; `memo` keeps what was derived from rows that have not changed since."""
    topology, status, requests = tables[TOPOLOGY], tables[STATUS], tables[REQUESTS]
    static = topology.get(ALL)
    if static is None:
        return View(TransitionState.null, 0, 0, "", {}, {}, {})
    nodes: dict[str, Member] = {}
    for key, row in topology.items():
        if len(key) == 1:
            request = requests[row["request_id"],] if row["request_id"] else None
            of = row, status[key], request, key in tables[MEMBERS]
            nodes[key[0]] = memo.of(key, of, partial(_member, key[0], *of))
    return View(
        transition_state=state_of_text(static["transition_state"]),
        version=static["version"],
        fence_version=static["fence_version"],
        session=static["session"] or "",
        features=frozenset(static.get("enabled_features", ())),
        nodes=nodes,
        tables={key[0]: row["replicas"] for key, row in tables[TABLES].items()},
        tablets=tablets_of(tables[TABLES], tables[TABLETS], memo),
        logs={row["log_of"]: key[0] for key, row in tables[TABLES].items() if row.get("log_of")},
        kept={row["log_of"]: row["ttl"] for row in tables[TABLES].values() if row.get("ttl")},
        images=frozenset(r["log_of"] for r in tables[TABLES].values() if r.get("preimage")),
        views={
            key[0]: ViewDefinition.of(key[0], row)
            for key, row in tables[TABLES].items()
            if row.get("view_of")
        },
        resizes={
            key[0]: row["resize_type"]
            for key, row in tables[TABLES].items()
            if row.get("resize_type")
        },
        balances=static.get("tablet_balancing_enabled", True),
        dropped=frozenset(dropped_in(tables)),
        truncations=_times(tables[TABLES], TRUNCATE_AT),
        truncated=_times(tables[TABLES], TRUNCATED_AT),
    )


def _times(tables: Rows, column: str) -> dict[str, int]:
    return {key[0]: row[column] for key, row in tables.items() if row.get(column)}


def _member(name: str, row: Row, status: Row, request: Row | None, in_group0: bool) -> Member:
    return Member(
        name=name,
        state=NodeState[row["node_state"]],
        tokens=frozenset(map(int, row["tokens"] or ())),
        datacenter=row["datacenter"],
        rack=row["rack"],
        replaced=row["replaced_id"],
        up=status["up"],
        in_group0=in_group0,
        address=row["address"],
        num_tokens=row["num_tokens"],
        shards=row["shard_count"],
        request=request,
        cleanup_needed=row["cleanup_status"] == "needed",
        asked=row["topology_request"] or "",
        initial_tokens=parse_tokens(row["tokens_string"]) if row.get("tokens_string") else (),
        features=frozenset(row["supported_features"]),
    )


def _index(token: int, count: int) -> int:
    """The number of the tablet, of a power of two of them, that has a token."""
    return (token + (1 << 63)) >> (64 - (count.bit_length() - 1))
