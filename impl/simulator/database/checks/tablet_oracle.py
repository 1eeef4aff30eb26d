"""Looks at rest where tablets lie: as many replicas as asked for, on nodes that stay, and no rows elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.hosts import Host, rows_of
from stagewright.machines.scylladb.topology.topology_states import NodeState


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


def _look_at_streams(catalog: Catalog, table: str, oracle: Oracle) -> None:
    """Each tablet has one stream, which lies in it."""
    _, newest = catalog.streams_of(table).generations[-1]
    for row in catalog.view.tablets[table]:
        low, high = row.range
        if sum(low < s.token <= high for r in newest.ranges for s in r.streams) != 1:
            oracle.broken(f"{row.name} has not one stream: {newest.ends}")
