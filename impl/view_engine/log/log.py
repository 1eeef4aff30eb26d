"""Writes `couchdb.log`: one log a node, and in it the records of each index's group process.

`stagewright validate` reads it as it reads Couchbase's, and the shipped machines say whether it can be so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from stagewright.impl.view_engine.file.header import IndexHeader, Pending
from stagewright.impl.view_engine.file.masks import partitions_of
from stagewright.impl.view_engine.log import texts
from stagewright.impl.view_engine.trace.index_trace import IndexTrace
from stagewright.impl.view_engine.trace.trace import NO_TRACE, Trace

Write = Callable[[str], object]


class ServerLog:
    """Of one node. Any thread may write to it; a record is written whole."""

    def __init__(
        self,
        write: Write | None,
        node: str = "ns_1@127.0.0.1",
        *,
        bucket: str = "default",
        clock: Callable[[], float] = time.time,
        trace: Trace = NO_TRACE,
    ) -> None:
        """`write` gets whole records, None where no log is kept; `clock` gives seconds since 1970.

        What the log has no words for goes to the trace.
        """
        self._write = write
        self._node = node
        self.bucket = bucket
        self.clock = clock
        self.trace = trace
        self._lock = threading.Lock()
        self._processes = count(100)

    @property
    def is_kept(self) -> bool:
        """Whether what is said is written anywhere."""
        return self._write is not None

    def process(self) -> str:
        """The name of a new process."""
        return f"<0.{next(self._processes)}.0>"

    def say(self, process: str, message: str) -> None:
        """One record, which may have many lines."""
        if self._write is None:
            return
        when = datetime.fromtimestamp(self.clock(), UTC)
        time_text = f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03}Z"
        with self._lock:
            head = f"couchdb:info,{time_text},{self._node}:{process}:couch_log:info:41"
            self._write(f"[{head}]{message}\n")


NO_LOG = ServerLog(None)


def no_replicas() -> Iterable[int]:
    """An index that no replica index belongs to."""
    return ()


class GroupLog:
    """Of one process of an index. Called with the group's lock held, after what it logs was committed."""

    def __init__(self, log: ServerLog, kind: str, document: str, signature: bytes) -> None:
        self._log = log
        self._process = log.process() if log.is_kept else ""
        self._kind = kind
        self._document = document
        self._signature = signature.hex()
        self.trace = IndexTrace(log.trace, f"{kind} {document}")
        self._group = f"`{log.bucket}`, {kind} (prod) group `_design/{document}`"
        self.replicas: Callable[[], Iterable[int]] = no_replicas
        self._cleanup = 0  # the partitions in cleanup as the last record has them
        self._cleaning_since = 0.0
        self._compacting_since = 0.0

    # -- the process ---------------------------------------------------------------------------------------

    def began(self, header: IndexHeader, views: int, *, new: bool) -> None:
        """The process starts, with an index that is new or with what is in its file."""
        self._cleanup = header.cleanup
        self.trace.did("open")
        if new:
            self._say(texts.configured(self._signature, header))
            return
        self._log.say(
            self._process,
            f"Started {self._kind} (prod) set view group `{self._log.bucket}`, group "
            f"`_design/{self._document}`, signature `{self._signature}', view count {views}\n"
            + texts.states_found(header),
        )

    def ended(self) -> None:
        """The index is served no more."""
        self._say(f"signature `{self._signature}', terminating with reason: shutdown")

    # -- requests ------------------------------------------------------------------------------------------

    def requested(self, before: IndexHeader, after: IndexHeader) -> None:
        """What a request of the cluster manager did, and the pending transitions that it made possible."""
        if not self._log.is_kept or before == after:
            return
        gone = {*before.replicas_on_transfer} - {*after.replicas_on_transfer}
        if transferred := [p for p in gone if (after.active & ~before.active) >> p & 1]:
            left = texts.condensed(after.replicas_on_transfer)
            self._say(
                f"completed transferral of replica partitions {texts.condensed(transferred)}\n"
                f"New group of replica partitions to transfer is {left}\n"
            )
        elif _states(before) == _states(after):
            more = len(after.unindexable_seqs) + len(after.pending.unindexable)
            fewer = len(before.unindexable_seqs) + len(before.pending.unindexable)
            self._say(texts.marked(before, after, "added" if more > fewer else "removed"))
        else:
            self._updated(before, after)

    def replica_added(self, partition: int) -> None:
        """A partition is a replica from now on."""
        there = texts.condensed(self.replicas())
        self._say(
            f"defined new replica partitions: [{partition}]\n"
            f"New full set of replica partitions is: {there}\n"
        )

    def replica_removed(self, partition: int) -> None:
        """A partition is a replica no more."""
        self._say(f"marked the following replica partitions for removal: [{partition}]")

    # -- workers -------------------------------------------------------------------------------------------

    def worked(self, before: IndexHeader, after: IndexHeader) -> None:
        """A worker's header was committed: partitions may be clean, and what was pending for them happened."""
        waiting, left = before.pending, after.pending
        if not self._log.is_kept or waiting == left:
            return
        done = Pending(
            tuple({*waiting.active} - {*left.active}),
            tuple({*waiting.passive} - {*left.passive}),
            tuple({*waiting.unindexable} - {*left.unindexable}),
        )
        self._say(texts.applying(done))
        self._updated(replace(before, cleanup=after.cleanup), after)

    def updater_started(self, header: IndexHeader) -> None:
        """An updater begins with this header."""
        self.trace.update_started()
        if self._log.is_kept:
            lists = (header.active, header.passive, header.cleanup)
            names = ("Active partitions: ", "Passive partitions:", "Cleanup partitions:")
            lines = [
                f"{name}   {texts.condensed(partitions_of(mask))}"
                for name, mask in zip(names, lists, strict=True)
            ]
            self._log.say(
                self._process,
                "\n".join([f"Updater for set view {self._group} started", *lines, ""]),
            )

    def updater_finished(self, before: IndexHeader, after: IndexHeader, inserted_ids: int) -> None:
        """An updater has ended."""
        self.trace.update_ended()
        done = sum(max(seq - before.seqs.get(p, 0), 0) for p, seq in after.seqs.items())
        self._say(f"updater finished\nInserted IDs:  {inserted_ids}\n# seqs done:   {done}\n")

    def rolled_back(self, partition: int, seq: int, old: IndexHeader, new: IndexHeader) -> None:
        """A partition of the documents went back to a sequence number, and the index to these headers."""
        self.trace.went_back(partition, seq, old, new)
        if self._log.is_kept:
            self._log.say(
                self._process,
                f"Rollback of set view {self._group} to [{{{partition},{seq}}}]\n"
                + texts.rolled_back(old, new),
            )
        self._cleanup = new.cleanup

    def cleaner_started(self) -> None:
        """The cleaner begins."""
        self.trace.did("start_cleanup")
        self._cleaning_since = self._log.clock()
        if self._log.is_kept:
            process = self._log.process()
            self._log.say(
                self._process, f"Started cleanup process {process} for set view {self._group}"
            )

    def cleaned(self, before: IndexHeader, after: IndexHeader, removed: int) -> None:
        """A header of the cleaner was committed; it is done when no partition is in cleanup any more."""
        if not self._log.is_kept or after.cleanup or not before.cleanup:
            return
        there = replace(before, cleanup=0)  # what was pending is logged next
        seconds = self._log.clock() - self._cleaning_since
        self._log.say(
            self._process,
            f"Cleanup finished for set view {self._group}\n"
            + texts.cleaned(before, there, removed, seconds),
        )
        self._cleanup = 0

    def cleaner_stopped(self, header: IndexHeader, removed: int) -> None:
        """The cleaner had to stop before it was done."""
        if not self._log.is_kept:
            return
        now, old = (texts.condensed(partitions_of(m)) for m in (header.cleanup, self._cleanup))
        seconds = self._log.clock() - self._cleaning_since
        self._log.say(
            self._process,
            f"Stopped cleanup process for set view {self._group}.\n"
            f"Removed {removed} values from the index in {seconds:.3f} seconds\n"
            f"New set of partitions to cleanup: {now}\nOld set of partitions to cleanup: {old}\n",
        )
        self._cleanup = header.cleanup

    def compaction_starting(self) -> None:
        """The compactor begins."""
        self._compacting_since = self._log.clock()
        self._say("compaction starting")

    def compaction_complete(self, filtered: int) -> None:
        """The index is in a new file, without this many key-value pairs of partitions in cleanup."""
        seconds = self._log.clock() - self._compacting_since
        self._say(
            f"compaction complete in {seconds:.3f} seconds, filtered {filtered} key-value pairs"
        )

    # -- texts ---------------------------------------------------------------------------------------------

    def _updated(self, before: IndexHeader, after: IndexHeader) -> None:
        self._say(texts.updated(before, after, self.replicas()))
        self._cleanup = after.cleanup

    def _say(self, message: str) -> None:
        if self._log.is_kept:
            self._log.say(self._process, f"Set view {self._group}, {message}")


def _states(header: IndexHeader) -> tuple[object, ...]:
    """What a header says of partitions, but for where each is indexed and whether it is."""
    pending = header.pending
    masks = (header.active, header.passive, header.cleanup)
    return (*masks, pending.active, pending.passive, header.replicas_on_transfer)
