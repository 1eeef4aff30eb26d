"""All checks of the logs of changes of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.node.port import Timing
from stagewright.impl.simulator.database.checks.changes.follower import (
    Ask,
    Followers,
    MakesConsumer,
)
from stagewright.impl.simulator.database.checks.changes.pair_oracle import PairOracle
from stagewright.impl.simulator.database.checks.changes.reader_check import ReaderCheck
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.places_oracle import look_at_generation
from stagewright.impl.simulator.database.checks.watcher import Watcher
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.simulator.database.script import Operation


class ChangeChecks:
    """Consumers of all logs, what they ask for, what nodes do about log rows, and what lies on disks.

    `late` is by how many milliseconds clocks are off, `reads` the share of reads of what clients do.
    """

    def __init__(
        self,
        watcher: Watcher,
        catalog: Catalog,
        hosts: Mapping[str, Host],
        oracle: Oracle,
        ask: Ask,
        now: Callable[[], int],
        *,
        late: int,
        timing: Timing,
        script: tuple[Operation, ...],
        reads: float,
        consumer: MakesConsumer,
    ) -> None:
        self._check = check = ReaderCheck(watcher.recording, catalog, now, late, timing)
        self._catalog, self._hosts, self._oracle = catalog, hosts, oracle
        self._followers = Followers(ask, oracle, check, consumer)
        self._pairs = PairOracle(oracle, script, reads)
        watcher.follow_changes(catalog, oracle.may_precede, timing.leeway)
        watcher.crashed = lambda host: self._pairs.crashed(host, self._catalog.view.tables)

    def poll(self) -> None:
        """Let each consumer read on."""
        self._followers.poll(self._catalog.view.logs)

    def look_before_reads(self) -> None:
        """Rows and log rows, before reads repair what replicas lack."""
        if self._pairs.applies:
            for name, host in self._hosts.items():
                self._pairs.look(name, host.rows, self._catalog.view.tables)

    def look(self) -> None:
        """Where changes lie at rest."""
        disks = {name: host.rows for name, host in self._hosts.items()}
        view, now = self._catalog.view, self._check.now()
        self._pairs.quorums(disks, view, now)
        look_at_generation(self._catalog, self._oracle)
        for name, host in self._hosts.items():
            if host.node is not None:
                self._pairs.expired(name, host.rows, view, now)

    def read_to_the_end(self, wait: Callable[[Callable[[], bool], int], bool]) -> int:
        """Let each consumer read all that was written, and check it; how many changes they have read."""
        self.poll()
        return self._followers.read_to_the_end(wait)
