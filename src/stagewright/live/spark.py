"""The changes of a running cluster's rows as a table or a stream of Spark.

    spark.dataSource.register(Changes)
    spark.read.format("stagewright-cdc").option("dir", D).load()           # all that is old enough now
    spark.readStream.format("stagewright-cdc").option("dir", D).load()     # and what follows

Options: `dir`, the cluster's directory; `position`, where to begin, as `cluster tail --position` keeps it
(the first change); `table`, which one (`ks.rows`); `tasks`, into how many parts the streams of a generation are cut (8). A row is read only
when no earlier change can follow it any more, so each is there once, also if Spark repeats a task or a query
goes on from its checkpoint. Within a micro-batch rows have no order: sort by `timestamp`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from stagewright.impl.cdc.consumer import (
    ExpiredError,
    Position,
    Source,
    beginning,
    next_part,
    parts_between,
    refuse_gaps,
)
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.supervisor import TABLE
from stagewright.live.changes import session_with, supervisor_of
from stagewright.live.tail import confidence_in
from stagewright.spec.errors import InputError

TASKS = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: dict[str, int] = {}  # the offset where no generation is known yet

Row = tuple[datetime, bytes, bytes, bytes | None, bytes | None]


@dataclass
class Span(InputPartition):
    """Some streams, from a time to another (microseconds); one task of Spark reads it."""

    streams: tuple[bytes, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Wanted:
    """What to read: a cluster's directory, where to begin, in how many tasks a generation, of which table."""

    directory: str
    begin: Position | None
    tasks: int
    table: str

    def session(self) -> Session:
        """A client of the cluster; who asks for it closes it."""
        return session_with(self.directory, self.table)

    def beginning(self, source: Source) -> Position | None:
        """Where to begin: with what is kept, and not about to expire; None if there is no generation."""
        known, kept = source.generations(), source.kept_from()
        return self.begin or beginning(known, kept and kept + self._confidence)

    @cached_property
    def _confidence(self) -> int:
        return confidence_in(supervisor_of(self.directory).layout.settings().timing)

    def latest(self, source: Source, position: Position) -> Position:
        """Behind all that no earlier change can follow any more."""
        until = time.time_ns() // 1000 - self._confidence
        known = source.generations()
        refuse_gaps(known, position, source.kept_from())
        while (part := next_part(known, position, until)) is not None:
            position = part.position
        return position

    def spans(self, source: Source, start: Position, end: Position) -> Iterator[Span]:
        """All between two positions. The same again whenever it is asked again, unless it has expired."""
        known = source.generations()
        refuse_gaps(known, start, source.kept_from())
        for part in parts_between(known, start, end):
            streams = part.generation.streams
            size = -(-len(streams) // self.tasks)
            for at in range(0, len(streams), size):
                yield Span(streams[at : at + size], part.start, part.end)

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """The changes of a span.

        Raises:
            ExpiredError: some of them have expired.
        """
        assert isinstance(partition, Span)
        session = self.session()
        try:
            for change in session.changes(partition.streams, partition.start, partition.end):
                when = _EPOCH + timedelta(microseconds=change.timestamp)
                before = None if change.before is None else change.before.value
                yield when, change.stream, change.key, change.value, before
            session.generations()
            if partition.start < (kept := session.kept_from()):
                raise ExpiredError(partition.start, kept)
        finally:
            session.close()


class Changes(DataSource):
    """The log of changes of a cluster: `timestamp`, `stream`, `key`, `value` (null where it was deleted), `before`.

    `before` is what the row was, of tables whose log has images; null where there was none, or it is not known.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` names."""
        return "stagewright-cdc"

    def schema(self) -> str:
        """Columns and types."""
        return "timestamp timestamp, stream binary, key binary, value binary, before binary"

    def reader(self, schema: Any) -> DataSourceReader:
        """A reader of what is there."""
        return _Table(self._wanted())

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """A reader of what is there, and of what follows."""
        return _Stream(self._wanted())

    def _wanted(self) -> Wanted:
        options = self.options
        directory, tasks = options.get("dir", ""), options.get("tasks", str(TASKS))
        if not directory:
            raise InputError(
                "no cluster is named", help='add .option("dir", …), as in `cluster start --dir`'
            )
        if not tasks.isdecimal() or int(tasks) == 0:
            raise InputError(f"tasks: {tasks!r} is no number", help="write one from 1 on")
        text = options.get("position", "")
        begin = Position.from_json(text) if text else None
        return Wanted(directory, begin, int(tasks), options.get("table", TABLE))


class _Table(DataSourceReader):
    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        session = self._wanted.session()
        try:
            begin = self._wanted.beginning(session)
            if begin is None:
                return []
            return list(self._wanted.spans(session, begin, self._wanted.latest(session, begin)))
        finally:
            session.close()

    def read(self, partition: InputPartition) -> Iterator[Row]:
        return self._wanted.read(partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._session: Session | None = None
        self._last: dict[str, int] | None = None

    def _source(self) -> Session:
        if self._session is None:
            self._session = self._wanted.session()
        return self._session

    def initialOffset(self) -> dict[str, int]:
        begin = self._wanted.beginning(self._source())
        return _NONE if begin is None else _offset(begin)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return self._last if self._last is not None else self._latest(start)

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._latest(self.initialOffset())

    def _latest(self, start: dict[str, int]) -> dict[str, int]:
        begin = _position(start) or self._wanted.beginning(self._source())
        return start if begin is None else _offset(self._wanted.latest(self._source(), begin))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        last = _position(end)
        if last is None:
            return []
        begin = _position(start) or self._wanted.beginning(self._source())
        return [] if begin is None else list(self._wanted.spans(self._source(), begin, last))

    def read(self, partition: InputPartition) -> Iterator[Row]:
        return self._wanted.read(partition)

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()


def _offset(position: Position) -> dict[str, int]:
    return {"generation": position.generation, "read": position.read}


def _position(offset: dict[str, int]) -> Position | None:
    return Position(offset["generation"], offset["read"]) if offset else None
