"""A node's copy of the system tables: it learns them from group0's log, and every crash loses it with the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from stagewright.impl.catalog.columns import (
    ALL,
    GENERATIONS,
    MEMBERS,
    REQUESTS,
    STATUS,
    TABLES,
    TABLETS,
    TIMESTAMPS,
    TOPOLOGY,
    VIEW_BUILDING,
    Row,
    Rows,
    described_generation,
    description_of,
    microseconds_in,
    state_of,
)
from stagewright.impl.catalog.features import supported
from stagewright.impl.catalog.memo import Memo
from stagewright.impl.catalog.stream_rows import STREAMS, stream_sets
from stagewright.impl.catalog.view import View, view_of
from stagewright.impl.cdc.metadata import Metadata
from stagewright.impl.group0 import Entry, Mutation, Snapshot
from stagewright.impl.node.messages import HostInfo
from stagewright.impl.ring.initial_tokens import tokens_text
from stagewright.machines.scylladb.cdc.cdc_streams import TopologyDescription

KNOWN = (
    *(TOPOLOGY, REQUESTS, MEMBERS, STATUS, GENERATIONS, TIMESTAMPS, TABLES, TABLETS),
    STREAMS,
    *VIEW_BUILDING,
)
_STATIC: Row = {
    "transition_state": None,
    "version": 0,
    "fence_version": 0,
    "session": None,
    "new_cdc_generation_data_uuid": None,
    "committed_cdc_generations": [],
    "unpublished_cdc_generations": [],
    "global_topology_request": None,
    "tablet_work": None,
    "tablet_balancing_enabled": True,
    "enabled_features": [],
}


class Catalog:
    """What the log comes to. A row that is `left` stays for ever, as every row of the topology does."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {name: {} for name in KNOWN}
        self._descriptions: dict[
            str, TopologyDescription
        ] = {}  # of generations, which never change
        self._logs: dict[str, Metadata] = {}
        self._memo = Memo()
        self.commits = 0  # learned by this life of the node, a snapshot counting as one

    def apply(self, entry: Entry) -> None:
        """Take the next entry."""
        self.mutate(entry.command.mutations)

    def mutate(self, mutations: Iterable[Mutation]) -> None:
        """Let rows change."""
        for mutation in mutations:
            rows = self.tables.setdefault(mutation.table, {})
            if mutation.columns is None:
                rows.pop(mutation.key, None)
            else:
                rows[mutation.key] = {**rows.get(mutation.key, {}), **mutation.columns}
        self._changed()

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        body: dict[str, list[list[Any]]] = json.loads(snapshot.content)
        self.tables = {name: {} for name in KNOWN}
        for name, rows in body.items():
            self.tables[name] = {tuple(key): row for key, row in rows}
        self._changed()

    def content(self) -> str:
        """The inverse: what a snapshot holds."""
        body = {name: [[list(k), row] for k, row in rows.items()] for name, rows in self._sorted()}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False)

    def _sorted(self) -> list[tuple[str, Rows]]:
        return [(name, dict(sorted(rows.items()))) for name, rows in sorted(self.tables.items())]

    def _changed(self) -> None:
        self.commits += 1
        self.__dict__.pop("view", None)
        self.__dict__.pop("cdc", None)
        self.__dict__.pop("_state", None)
        self._logs.clear()

    @property
    def begun(self) -> bool:
        """Whether there is a cluster."""
        return ALL in self.tables[TOPOLOGY]

    @cached_property
    def view(self) -> View:
        """What requests need of it."""
        return view_of(self.tables, self._memo)

    @cached_property
    def cdc(self) -> Metadata:
        """The CDC generations that are committed."""
        committed = self.tables[TOPOLOGY][ALL]["committed_cdc_generations"] if self.begun else []
        return Metadata([(microseconds_in(t), self._description(g)) for t, g in committed])

    def streams_of(self, table: str) -> Metadata:
        """The streams of a table that has a log: of its tablets, or of the generations that are committed."""
        if table not in self.view.tablets:
            return self.cdc
        if table not in self._logs:
            self._logs[table] = Metadata([*stream_sets(table, self.tables[STREAMS])])
        return self._logs[table]

    def readable(self, table: str) -> Iterable[tuple[int, TopologyDescription]]:
        """What clients may read of a table's log: its streams, with the times from which on they operate."""
        if table in self.view.tablets:
            return self.streams_of(table).generations
        return self.published()

    def published(self) -> Iterator[tuple[int, TopologyDescription]]:
        """Those that clients may read, with the times from which on they operate."""
        for (timestamp,), row in self.tables[TIMESTAMPS].items():
            yield microseconds_in(timestamp), self._description(row["generation"])

    def _description(self, generation: str) -> TopologyDescription:
        if generation not in self._descriptions:
            rows = self.tables[GENERATIONS]
            self._descriptions[generation] = description_of(generation, rows)
        return self._descriptions[generation]

    def state(self) -> Mapping[str, Any]:
        """The variables of the topology state machine that the tables hold."""
        return self._state

    @cached_property
    def _state(self) -> Mapping[str, Any]:
        return state_of(self.tables)


def first_rows(host: HostInfo) -> tuple[Mutation, ...]:
    """The row of a node that asks to join, but for what the machine's step says."""
    return (
        Mutation(
            TOPOLOGY,
            (host.name,),
            {
                "node_state": "none",
                "topology_request": None,
                "tokens": None,
                "replaced_id": None,
                "cleanup_status": "clean",
                "request_id": None,
                "datacenter": host.datacenter,
                "rack": host.rack,
                "shard_count": host.shards,
                "num_tokens": len(host.initial_tokens) or host.tokens,
                "tokens_string": tokens_text(host.initial_tokens),
                "address": host.address,
                "supported_features": supported(host),
            },
        ),
        Mutation(STATUS, (host.name,), {"up": True}),
    )


def founding(
    hosts: Iterable[HostInfo], tokens: dict[str, tuple[int, ...]], generation: str, now: str
) -> tuple[Mutation, ...]:
    """The first commit: a cluster of normal nodes, and a CDC generation that operates at once."""
    hosts = tuple(hosts)
    known = [{*supported(host)} for host in hosts]
    static = {
        **_STATIC,
        "committed_cdc_generations": [[now, generation]],
        "enabled_features": sorted(set[str]().union(*known).intersection(*known)),
    }
    found: list[Mutation] = [Mutation(TOPOLOGY, ALL, static)]
    vnodes = {t: host.shards for host in hosts for t in tokens[host.name]}
    found += [Mutation(GENERATIONS, k, c) for k, c in described_generation(generation, vnodes)]
    found.append(Mutation(TIMESTAMPS, (now,), {"generation": generation}))
    for host in hosts:
        row, status = first_rows(host)
        assert row.columns is not None
        owned = [str(t) for t in sorted(tokens[host.name])]
        columns = {**row.columns, "node_state": "normal", "tokens": owned}
        found += [Mutation(TOPOLOGY, row.key, columns), status]
        found.append(Mutation(MEMBERS, (host.name,), {"can_vote": True}))
    return tuple(found)
