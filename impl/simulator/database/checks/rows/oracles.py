"""The oracles of rows of one run."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.view import View
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.rows.pending_oracle import PendingOracle
from stagewright.impl.simulator.database.checks.rows.quorum_oracle import QuorumOracle
from stagewright.impl.simulator.database.checks.rows.shard_oracle import ShardOracle
from stagewright.impl.simulator.database.checks.rows.stream_oracle import StreamOracle
from stagewright.impl.simulator.database.hosts import Host


class RowOracles:
    """Each is asked when it is its turn."""

    def __init__(self, hosts: Mapping[str, Host], catalog: Catalog, oracle: Oracle) -> None:
        self.quorums = QuorumOracle(hosts, catalog, oracle)
        self.streams = StreamOracle(self.quorums, oracle)
        self.pending = PendingOracle(self.quorums, catalog, oracle)
        self.shards = ShardOracle(oracle)

    def committed(self, before: View, after: View) -> None:
        """Something was committed."""
        self.quorums.committed(before, after)
        self.streams.committed(before, after)
        self.shards.committed(before, after)
