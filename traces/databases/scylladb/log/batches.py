"""Follows view building batches through the lines of workers, and what coordinators remove as finished.

Batches are followed by the order of one node's lines. Whether a worker has finished a task that was removed is asked of
its whole log, so that no clock matters: if that log begins with a start of the node, and goes on after the removal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import batches, views
from stagewright.traces.databases.scylladb.log.order import Placed

_ON_THEIR_SHARD = (2026, 1)  # before that, the lines of all batches are written by shard 0


class Batches:
    """The entities of shards and of tasks that were removed."""

    def __init__(self, book: Book, releases: Sequence[str]) -> None:
        self._book = book
        known = [v for v in map(versions.version_of, releases) if v is not None]
        self._by_shard = not known or min(known) >= _ON_THEIR_SHARD
        self._life: Counter[str] = Counter()  # starts of a node
        self._whole: set[str] = set()  # nodes whose logs begin with a start
        self._seen: set[str] = set()
        self._last: dict[str, int] = {}  # microseconds of the last line of a worker
        self._worker: dict[str, str] = {}  # by task: the node that has started it
        self._called: dict[str, str] = {}  # by task: the host id that was called for it
        self._finished: dict[str, Source] = {}
        self._removed: dict[str, tuple[Placed, Source]] = {}
        self._known: set[tuple[str, str]] = set()

    def see(self, one: Placed, source: Source) -> None:
        """The next line."""
        record = one.record
        node, ids = record.node, views.ids_in(record.words.get("ids", ""))
        if record.says == versions.STARTS:
            self._life[node] += 1
            if node not in self._seen:
                self._whole.add(node)
        self._seen.add(node)
        match record.says:
            case views.BATCH_STARTS:
                self._of_worker(one, "start", source)
                self._worker |= dict.fromkeys(ids, node)
            case views.BATCH_ENDS:
                self._of_worker(one, "finish", source)
                self._finished |= dict.fromkeys(ids, source)
            case views.CALLS:
                self._called |= dict.fromkeys(ids, record.words["host"])
            case views.GC_WILL if not (one.lost or one.unknown or one.left_open):
                self._removed[record.words["id"]] = one, source
            case _:
                pass

    def _of_worker(self, one: Placed, action: str, source: Source) -> None:
        node = one.record.node
        if one.time is not None:
            self._last[node] = one.time
        if self._by_shard:
            key = f"shard {one.record.shard} of {node}"
            life = self._life[node]
            self._add(batches.SHARD, f"{key}, life {life}" if life else key, action, source)

    def end(self) -> None:
        """All lines are read: what was removed is looked up in the logs of workers."""
        nodes = {self._called[t]: node for t, node in self._worker.items() if t in self._called}
        for task, (one, source) in self._removed.items():
            node = self._worker.get(task) or nodes.get(self._called.get(task, ""))
            if node is None or node not in self._whole or one.time is None:
                continue
            if task in self._finished:
                self._add(batches.TASK, task, "finish", self._finished[task])
            elif self._last.get(node, 0) <= one.time:
                continue  # its log may end too early
            self._add(batches.TASK, task, "remove", source)

    def _add(self, machine: str, key: str, action: str, source: Source) -> None:
        if (machine, key) not in self._known:
            self._known.add((machine, key))
            self._book.add(Effect(machine, key, {}, source))
        self._book.add(Effect(machine, key, {}, source, action))
