"""What one node does: answers questions, follows the active copies, and looks after its two indexes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stagewright.impl.view_engine.cluster.indexes import Indexes
from stagewright.impl.view_engine.cluster.messages import (
    NodeUnavailableError,
    OutdatedError,
    ViewRequest,
)
from stagewright.impl.view_engine.cluster.streams import Streams
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.group.current import GroupClosedError
from stagewright.impl.view_engine.group.triggers import Triggers, look_after
from stagewright.impl.view_engine.log.log import ServerLog
from stagewright.impl.view_engine.nodes.documents import NodeDocuments, Sent
from stagewright.impl.view_engine.nodes.messages import (
    Arrange,
    AskState,
    CloseStream,
    Copied,
    Copy,
    Done,
    Failed,
    NextBatch,
    OpenStream,
    Question,
    Reply,
    Rows,
    State,
    StreamOpened,
    Write,
    Written,
)
from stagewright.impl.view_engine.nodes.remote import RemoteNode, numbered, query_of
from stagewright.impl.view_engine.trace.trace import NO_TRACE, Trace

EVERY = 0.05  # seconds between two looks at what the other copies have
SOON = Triggers(changes=1, file_size=1 << 16)


class ViewNode:
    """The documents, indexes and streams of a node. Any thread may ask."""

    def __init__(
        self,
        name: str,
        folder: Path,
        design: DesignDocument,
        partitions: int,
        remote: Callable[[str], RemoteNode],
        trace: Trace = NO_TRACE,
    ) -> None:
        """Open what is in the folder, and go on with it."""
        self.name = name
        self._partitions = partitions
        self._remote = remote
        folder.mkdir(parents=True, exist_ok=True)
        for left in (*folder.glob("*.sort"), *folder.glob("*.compact")):
            left.unlink()  # of a process that was killed
        self._documents = NodeDocuments(folder / "documents.sqlite")
        self._log_file = (folder / "couchdb.log").open("a", buffering=1)
        log = ServerLog(self._log_file.write, f"{name}@127.0.0.1", trace=trace)
        self._indexes = Indexes(
            folder, design, self._documents, partitions,
            log=log, takes_writes=self._documents.takes_writes,
        )  # fmt: skip
        self._streams = Streams(self._indexes.reading, time.monotonic, trace=trace)
        self._arranging = threading.Lock()
        self._obeyed = 0
        self._sources: dict[int, str] = {}
        self._ending = threading.Event()
        work = (self._follow, self._look_after)
        self._threads = [threading.Thread(target=self._regularly, args=(w,)) for w in work]
        for thread in self._threads:
            thread.start()

    def answer(self, question: Question) -> Reply:
        """The reply to a question; what goes wrong is a reply, too."""
        try:
            return self._answer(question)
        except OutdatedError as error:
            return Failed(question.number, type(error).__name__, str(error), error.missing)
        except KeyError as error:
            return Failed(question.number, KeyError.__name__, str(error.args[0]))
        except Exception as error:  # noqa: BLE001 - it is the asker's to decide what to do about it
            return Failed(question.number, type(error).__name__, str(error))

    def _answer(self, question: Question) -> Reply:
        match question:
            case Write():
                at = self._documents.write(question.partition, question.doc_id, question.body)
                if at is None:
                    raise OutdatedError([question.partition])
                return Written(question.number, at.seq, at.uuid)
            case Copy():
                sent = self._documents.send(question.partition, question.since, question.log)
                if sent is None:
                    raise OutdatedError([question.partition])
                return Copied(question.number, sent.back_to, [*sent.changes], sent.log)
            case OpenStream():
                query = query_of(question.query)
                request = ViewRequest(question.design, question.view, query)
                opened = self._streams.open(question.stream, request)
                indexed = {
                    p: (at.seq, at.history, at.indexable) for p, at in opened.indexed.items()
                }
                return StreamOpened(question.number, indexed, opened.total_rows)
            case NextBatch():
                batch = self._streams.batch(question.stream, question.batch)
                rows = json.dumps([[range_, *row] for range_, row in batch.rows]).encode()
                return Rows(question.number, rows, batch.last)
            case CloseStream():
                self._streams.close(question.stream)
                return Done(question.number)
            case Arrange():
                return self._arrange(question)
            case AskState():
                return self._state(question.number)

    def _state(self, number: int) -> State:
        header = self._indexes.main.header
        indexed: dict[int, int] = {}
        for partition, position in self._documents.positions().items():
            log = header.partition_versions.get(partition, ())
            same = not log or log[0][0] == position.uuid
            indexed[partition] = header.seqs.get(partition, -1) if same else -1
        on_transfer = self._indexes.on_transfer
        return State(number, dict(self._documents.states()), indexed, on_transfer)

    def _arrange(self, wanted: Arrange) -> Reply:
        """Make it so; what is so already stays."""
        with self._arranging:
            if wanted.command <= self._obeyed:
                return Failed(wanted.number, "StaleCommand", f"command {self._obeyed} came before")
            self._obeyed = wanted.command
            self._sources = wanted.sources
            copies = (*wanted.active, *wanted.passive, *wanted.replicas)
            self._documents.hold(copies, wanted.active, wanted.anew)
            everything, indexes = range(self._partitions), self._indexes
            indexes.mark_indexable([p for p in everything if p not in wanted.paused])
            there = {*wanted.active, *wanted.passive}
            indexes.set_partition_states(
                [p for p in wanted.active if p not in wanted.paused],
                wanted.passive,
                [p for p in everything if p not in there],
            )
            indexes.remove_replicas([p for p in everything if p not in wanted.replicas])
            indexes.add_replicas(wanted.replicas)
            indexes.mark_unindexable(wanted.paused)
            return self._state(wanted.number)

    # -- what it does by itself ----------------------------------------------------------------------------

    def _regularly(self, work: Callable[[], None]) -> None:
        while not self._ending.wait(EVERY):
            with suppress(GroupClosedError):
                work()

    def _follow(self) -> None:
        """Get what the copies lack from where their partitions take writes."""
        for partition, (since, log) in self._documents.states().items():
            source = self._sources.get(partition)
            if source in (None, self.name) or self._documents.takes_writes(partition):
                continue
            with suppress(NodeUnavailableError, OutdatedError):
                question = Copy(numbered(), partition, since, log)
                copied = self._remote(str(source)).ask(question, Copied, seconds=2)
                if copied.changes or copied.back_to != since or copied.log != log:
                    sent = Sent(copied.back_to, copied.changes, copied.log)
                    self._documents.receive(partition, since, log, sent)

    def _look_after(self) -> None:
        self._indexes.follow()
        for group in (self._indexes.main, self._indexes.replica):
            look_after(group, SOON)
        self._streams.close_silent()

    def close(self) -> None:
        """Stop all work; what was committed stays."""
        self._ending.set()
        for thread in self._threads:
            thread.join()
        self._streams.close_all()
        self._indexes.close()
        self._documents.close()
        self._log_file.close()
