"""Looks at rest where rows and tablets lie: on as many replicas as asked for, on nodes that stay, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.view import View
from stagewright.impl.cdc.rows import SUFFIX
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.hosts import Host, rows_held, rows_of
from stagewright.impl.simulator.database.tables import table_of
from stagewright.machines.scylladb.topology.topology_states import NodeState

BESIDE = (SUFFIX, "_view_hints", "_view_staging", "_late_rows")
"""What the names of families end with that lie beside a table: its log, and what is kept for views."""


def look_at_rows(view: View, hosts: Mapping[str, Host], oracle: Oracle) -> None:
    """Of each key, the newest acknowledged row is on a quorum of its replicas."""
    for key, seen in sorted(oracle.newest.items()):
        stored, table = stored_key(key), table_of(key)
        if table in oracle.dropped or oracle.may_be_gone(table, seen[0]):
            continue
        replicas = view.replicas(table, token_in(stored)).reads
        found = {name: hosts[name].rows.get(table, stored) for name in replicas}
        have = [n for n, row in found.items() if row is not None and row.time >= seen[0]]
        if len(have) < min(len(replicas), view.tables[table] // 2 + 1):
            oracle.broken(f"{key!r} at {seen} is on {have} of {replicas} only")


def look_at_refused(hosts: Mapping[str, Host], oracle: Oracle) -> None:
    """A write that was refused, as too few replicas were alive, lies nowhere."""
    refused = {(table_of(key), stored_key(key), time): key for key, time in oracle.refused}
    for name, host in hosts.items():
        snapshot = host.rows.snapshot()
        for table in sorted({table for table, _, _ in refused}):
            for version in snapshot.versions(table, b"", None):
                if (key := refused.get((table, version.key, version.time))) is not None:
                    oracle.broken(f"{name} has {key!r} at {version.time}, which was refused")
        snapshot.close()


def look_at_truncated(view: View, hosts: Mapping[str, Host], oracle: Oracle) -> None:
    """Of a table that was truncated no node has a row of before, nor does its disk."""
    for table, until in oracle.truncated.items():
        for name, host in hosts.items():
            member = view.nodes.get(name)
            if table in oracle.dropped or member is None or member.state is not NodeState.normal:
                continue
            rows = rows_held(host)
            snapshot = rows.snapshot()
            older = (v for v in snapshot.versions(table, b"", None) if v.time <= until)
            if (found := next(older, None)) is not None:
                oracle.broken(
                    f"{name} has {found.key!r} at {found.time}, and {table} was truncated"
                )
            snapshot.close()


def look_at_features(view: View, oracle: Oracle) -> None:
    """Each node that is in knows of all that the cluster uses."""
    for name, member in view.nodes.items():
        if member.state is NodeState.normal and (unknown := view.features - member.features):
            oracle.broken(f"{name} was let in, and does not know of {', '.join(sorted(unknown))}")


def look_at_tablets(catalog: Catalog, hosts: Mapping[str, Host], oracle: Oracle) -> None:
    """No two replicas on one host; of a logged table, each tablet has one stream."""
    view = catalog.view
    for table, rows in view.tablets.items():
        if table in view.logs:
            _look_at_streams(catalog, table, oracle)
        for row in rows:
            replicas = [r.host for r in row.tablet.replicas]
            if len({*replicas}) != view.tables[table]:
                oracle.broken(f"{row.name} has replicas on {', '.join(replicas)}")
            if gone := [h for h in replicas if view.nodes[h].state is not NodeState.normal]:
                oracle.broken(f"{row.name} has a replica on {gone[0]}, which has left")
            for name, host in hosts.items():
                there = host.node is not None and name not in replicas
                if there and rows_of(host, row, view.families(table)):
                    oracle.broken(f"rows of {row.name} lie on {name}, which is no replica")


def look_at_dropped(view: View, hosts: Mapping[str, Host], oracle: Oracle) -> None:
    """Nothing of a table that was dropped lies anywhere, neither rows nor what was kept beside them."""
    gone = oracle.dropped - view.tables.keys()
    for name, host in hosts.items():
        member = view.nodes.get(name)
        if host.node is None or member is None or member.state is NodeState.left:
            continue
        snapshot = host.rows.snapshot()
        for table in sorted(gone):
            for family in (table, *(f"{table}{kind}" for kind in BESIDE)):
                if next(snapshot.versions(family, b"", None), None) is not None:
                    oracle.broken(f"{name} has rows of {family}, and {table} was dropped")
        snapshot.close()


def look_at_generation(catalog: Catalog, oracle: Oracle) -> None:
    """Each vnode has a stream for each shard of the node that owns its end (scylladb #7961)."""
    members = catalog.view.nodes.values()
    shards = {t: m.shards for m in members if m.state is NodeState.normal for t in m.tokens}
    ends, streams = (
        sorted(shards),
        [s.token for r in catalog.cdc.generations[-1][1].ranges for s in r.streams],
    )
    for low, high in zip([ends[-1], *ends], ends, strict=False):
        inside = [t for t in streams if low < t <= high or (low >= high and (t > low or t <= high))]
        if len(inside) < shards[high]:
            oracle.broken(
                f"the vnode that ends at {high} has {len(inside)} streams: {shards[high]} shards"
            )


def _look_at_streams(catalog: Catalog, table: str, oracle: Oracle) -> None:
    """Each tablet has one stream, which lies in it."""
    _, newest = catalog.streams_of(table).generations[-1]
    for row in catalog.view.tablets[table]:
        low, high = row.range
        if sum(low < s.token <= high for r in newest.ranges for s in r.streams) != 1:
            oracle.broken(f"{row.name} has not one stream: {newest.ends}")
