"""A node of the campaign's cluster: documents, two indexes, streams, and what it does by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from stagewright.impl.recording.recording import Recording
from stagewright.impl.view_engine.campaign.copies import Copies, Copy, Sent
from stagewright.impl.view_engine.campaign.network import Network
from stagewright.impl.view_engine.campaign.tasks import Tasks
from stagewright.impl.view_engine.cluster.indexes import Indexes
from stagewright.impl.view_engine.cluster.messages import (
    Batch,
    NodeUnavailableError,
    Opened,
    ViewRequest,
)
from stagewright.impl.view_engine.cluster.streams import Streams
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.group.current import GroupClosedError
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.index.compactor import CompactionStoppedError
from stagewright.impl.view_engine.index.updater import UpdaterLimits
from stagewright.impl.view_engine.log.log import ServerLog
from stagewright.impl.view_engine.trace.trace import Trace

SMALL = UpdaterLimits(map_queue=1500, write_queue=1500, batch=300, documents_a_call=3)
EPOCH = 1_500_000_000.0  # seconds since 1970, when runs begin
_Result = TypeVar("_Result")


class StaleCommandError(Exception):
    """The command is older than one that was obeyed already: it came late."""


class CampaignNode:
    """Started and crashed by the driver; asked by others through the network only."""

    def __init__(
        self,
        name: str,
        folder: Path,
        copies: Copies,
        design: DesignDocument,
        partitions: int,
        tasks: Tasks,
        network: Network,
        active_at: Callable[[int], str | None],
        nodes: Callable[[str], CampaignNode],
        chosen: random.Random,
        log: list[str],
        recording: Recording,
    ) -> None:
        self.name = name
        self.copies = copies
        self.folder = folder
        self._design = design
        self._partitions = partitions
        self._tasks = tasks
        self._network = network
        self._active_at = active_at
        self._nodes = nodes
        self._chosen = chosen
        self._obeyed = 0
        self._is_up = False
        self._indexes: Indexes | None = None
        self._trace = Trace(recording.take, name)
        self._log = ServerLog(
            log.append,
            f"{name}@127.0.0.1",
            clock=lambda: EPOCH + tasks.now,
            trace=self._trace,
        )
        self._streams: Streams | None = None
        self.compactions = self.transfers = 0

    @property
    def indexes(self) -> Indexes:
        if self._indexes is None:
            raise NodeUnavailableError(f"{self.name} is starting")
        return self._indexes

    @property
    def streams(self) -> Streams:
        if self._streams is None:
            raise NodeUnavailableError(f"{self.name} is starting")
        return self._streams

    @property
    def groups(self) -> tuple[Group, Group]:
        return self.indexes.main, self.indexes.replica

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """After a crash; a node that was started since then goes on as it is."""
        if self._is_up:
            return
        self._is_up = True
        self._network.up[self.name] = self._network.up.get(self.name, 0) + 1
        for copy in self.copies.held.values():
            copy.active = self._active_at(copy.partition) == self.name
        self._tasks.start(self._live, "life", owner=self.name)

    def crash(self) -> None:
        self._is_up = False
        self._network.up[self.name] += 1  # what is under way to it gets lost
        self._tasks.kill(self.name)
        if self._streams is not None:
            self._streams.close_all()
        if self._indexes is not None:
            for group in self.groups:
                if group.workers.compactor is not None:
                    group.workers.compactor.file.close()
                group.index.file.disk.close()
        self._indexes = self._streams = None

    def _live(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for left in (*self.folder.glob("*.sort"), *self.folder.glob("*.compact")):
            left.unlink()
        indexes = Indexes(
            self.folder, self._design, self.copies, self._partitions,
            limits=SMALL, scheduler=self._tasks, log=self._log, takes_writes=self.copies.is_active,
        )  # fmt: skip
        self._streams = Streams(
            indexes.reading, lambda: self._tasks.now, rows_a_batch=3, trace=self._trace
        )
        self._indexes = indexes
        self._tasks.start(self._maintain, "maintenance")
        while True:
            self._tasks.sleep(0.5 + self._chosen.random())
            for partition in [*self.copies.held]:
                self._replicate(partition)
            before = indexes.on_transfer
            indexes.follow()
            self.transfers += len({*before} - {*indexes.on_transfer})
            for group in self.groups:
                if self._chosen.random() < 0.6:
                    group.trigger()
            self._streams.close_silent()

    def _maintain(self) -> None:
        seen: dict[str, IndexHeader] = {}  # what the last compaction left
        while True:
            self._tasks.sleep(0.5 + 4 * self._chosen.random())
            group = self._chosen.choice(self.groups)
            with suppress(CompactionStoppedError, GroupClosedError):
                if group.header.cleanup and self._chosen.random() < 0.5:
                    group.clean_up()
                elif group.header != seen.get(group.kind) or self._chosen.random() < 0.1:
                    group.compact()
                    seen[group.kind] = group.header
                    self.compactions += 1

    # -- documents -------------------------------------------------------------------------------------------

    def _replicate(self, partition: int) -> None:
        """Get what a copy lacks from where the partition is active."""
        copy = self.copies.held.get(partition)
        source = self._active_at(partition)
        if copy is None or copy.active or source in (None, self.name):
            return
        self.catch_up(copy, str(source))

    def catch_up(self, copy: Copy, source: str) -> None:
        since, log = copy.position.seq, copy.log
        other = self._nodes(source)

        def ask() -> Sent | None:
            return other.copies.send(copy.partition, since, log)

        if other.copies.has_nothing_new(copy):
            return  # a request that changes nothing need not be carried
        with suppress(NodeUnavailableError):
            if (sent := self._network.call(source, ask, timeout=2)) is not None:
                self.copies.receive(copy.partition, since, log, sent)

    # -- the manager's commands ------------------------------------------------------------------------------

    def obey(self, number: int, work: Callable[[], _Result]) -> _Result:
        """Carry a command out unless a newer one came before it."""
        if number <= self._obeyed:
            raise StaleCommandError(f"command {number} comes after {self._obeyed}")
        self._obeyed = max(number, self._obeyed)
        return work()

    def indexed(self, partition: int) -> int:
        """Up to where the main index has a partition, in the newest history that the documents have."""
        header = self.indexes.main.header
        log = header.partition_versions.get(partition, ())
        now = self.copies.failover_log(partition)
        if log and log[0][0] != now[0][0]:
            return -1
        return header.seqs.get(partition, -1)

    def update_index(self) -> None:
        self.indexes.main.trigger()


class Remote:
    """A node as a coordinator reaches it."""

    def __init__(self, node: CampaignNode, network: Network) -> None:
        self._node = node
        self._network = network

    def open(self, stream: str, request: ViewRequest) -> Opened:
        def ask() -> Opened:
            return self._node.streams.open(stream, request)

        return self._network.call(self._node.name, ask, timeout=60)

    def batch(self, stream: str, number: int) -> Batch:
        return self._network.call(
            self._node.name, lambda: self._node.streams.batch(stream, number), timeout=10
        )

    def close(self, stream: str) -> None:
        self._network.call(self._node.name, lambda: self._node.streams.close(stream), timeout=2)
