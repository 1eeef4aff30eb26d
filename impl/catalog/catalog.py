"""A node's copy of the system tables: it learns them from group0's log, and every crash loses it with the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
    Row,
    Rows,
    state_of,
)
from stagewright.impl.catalog.view import View, view_of
from stagewright.impl.group0 import Entry, Mutation, Snapshot
from stagewright.impl.node.messages import HostInfo

KNOWN = (TOPOLOGY, REQUESTS, MEMBERS, STATUS, GENERATIONS, TIMESTAMPS, TABLES, TABLETS)
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
}


class Catalog:
    """What the log comes to. A row that is `left` stays for ever, as every row of the topology does."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {name: {} for name in KNOWN}
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

    @property
    def begun(self) -> bool:
        """Whether there is a cluster."""
        return ALL in self.tables[TOPOLOGY]

    @cached_property
    def view(self) -> View:
        """What requests need of it."""
        return view_of(self.tables)

    def state(self) -> dict[str, Any]:
        """The variables of the topology state machine that the tables hold."""
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
                "num_tokens": host.tokens,
                "address": host.address,
            },
        ),
        Mutation(STATUS, (host.name,), {"up": True}),
    )


def founding(hosts: Iterable[HostInfo], tokens: dict[str, tuple[int, ...]]) -> tuple[Mutation, ...]:
    """The first commit: a cluster of normal nodes."""
    found: list[Mutation] = [Mutation(TOPOLOGY, ALL, dict(_STATIC))]
    for host in hosts:
        row, status = first_rows(host)
        assert row.columns is not None
        owned = [str(t) for t in sorted(tokens[host.name])]
        columns = {**row.columns, "node_state": "normal", "tokens": owned}
        found += [Mutation(TOPOLOGY, row.key, columns), status]
        found.append(Mutation(MEMBERS, (host.name,), {"can_vote": True}))
    return tuple(found)
