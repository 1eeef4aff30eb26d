"""Follows the CDC log of a run as a client does, and compares what it read with what clients wrote.

The oracle reads no definition and no table: each acknowledged change is read exactly once, in the order of its
time, and nothing is read that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stagewright.impl.cdc.consumer import Consumer, ExpiredError, Generation, Position, Source
from stagewright.impl.cdc.reading import Page, changes_of
from stagewright.impl.cdc.rows import Change, log_of
from stagewright.impl.node.messages import (
    ClientScan,
    GenerationsReply,
    GenerationsRequest,
    Message,
    ScanReply,
)
from stagewright.impl.simulator.database.checks.changes.reader_check import ReaderCheck
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.tables import table_of

PAGE = 20
END_MS = 30_000  # to read on after all was healed
AGAIN_MS = 150
SLACK = 8_000_000  # microseconds: what expires next is given up, too, if it can be read by now
CLOCKS_MS = 100  # by which clocks may differ where log rows expire
_MOST = 1_000_000  # microseconds that are read at once: often, to go over many ends
_MOST_OF_MANY = (
    4_000_000  # a consumer that must keep up: reading takes seconds, however short the span
)
_MOST_OF_NOTHING = 32_000_000  # after nothing was found, twice as much is read; after changes, half
Ask = Callable[[Callable[[int], Message]], Message | None]
"""Sends a question with a number of its own to some node; the answer, or None if there is none in time."""
MakesConsumer = Callable[[Source, Callable[[], int], int, Position | None, int], Consumer]
"""Makes a consumer: of a source, with a clock, a confidence, a position, and how much to read at once."""
Span = tuple[tuple[bytes, ...], int, int]


class UnreadableError(Exception):
    """The log cannot be read now."""


class _Reader:
    """The log, read through nodes of the cluster at a quorum."""

    def __init__(self, ask: Ask, table: str, now: Callable[[], int]) -> None:
        self._ask, self._now = ask, now
        self.ttl = 0  # milliseconds; 0: nothing expires
        self._table, self._log = table, log_of(table)
        self.asked: list[Span] = []
        self.kept: list[int] = []  # what was said of that

    def generations(self) -> Sequence[Generation]:
        reply = self._ask(lambda number: GenerationsRequest(number, self._table))
        if not isinstance(reply, GenerationsReply) or not reply.succeeded:
            raise UnreadableError
        self.ttl = reply.ttl
        return [Generation(start, streams) for start, streams in reply.generations]

    def kept_from(self) -> int:
        self.kept.append(self._now() - 1000 * self.ttl + 1000 * CLOCKS_MS if self.ttl else 0)
        return self.kept[-1]

    def changes(self, streams: Sequence[bytes], start: int, end: int) -> Sequence[Change]:
        self.asked.append((tuple(streams), start, end))
        return [c for s in streams for c in changes_of(s, start, end, self._page)]

    def _page(self, start: bytes, end: bytes) -> Page:
        reply = self._ask(lambda number: ClientScan(number, self._log, start, PAGE, end=end))
        if not isinstance(reply, ScanReply) or not reply.succeeded:
            raise UnreadableError
        return [(key, value) for key, _, value in reply.cells if value is not None], reply.following


class Follower:
    """A consumer of the table's log, restarted between any two polls from its position."""

    def __init__(
        self, ask: Ask, table: str, oracle: Oracle, check: ReaderCheck, makes: MakesConsumer
    ) -> None:
        self.changes: list[Change] = []
        self.failed = 0
        self.skipped: list[tuple[int, int]] = []  # spans of time
        self._behind: ExpiredError | None = None
        self._gone = (
            0  # changes of before that had expired, or were about to, as the consumer began
        )
        self._reader = _Reader(ask, table, check.now)
        self._table = table
        self._check, self._makes = check, makes
        self._oracle = oracle
        self._position: Position | None = None
        self._found_nothing = 0  # how often, less how often something

    def poll(self) -> bool:
        """Read on; whether there was anything, or may be more."""
        check = self._check
        if self._behind is not None:
            self._go_on_behind(self._behind)
        most = self._most_at_once()
        consumer = self._makes(self._reader, check.now, check.confidence, self._position, most)
        self._reader.asked.clear()
        self._reader.kept.clear()
        try:
            found = consumer.poll()
        except UnreadableError:
            self.failed += 1
            return False
        except ExpiredError as error:
            return self._skip(error)
        finally:
            before, self._position = self._position, consumer.position
            if before is None and any(self._reader.kept):
                self._gone = self._reader.kept[0] + check.confidence
        if before is None and self._position is not None and not self._reader.asked:
            check.skip(self._table, self._position.read)  # what is before that may have expired
        for span in self._reader.asked:
            if before is None:
                check.skip(self._table, span[1])
            check.read(self._table, *span)
        self.changes += found
        self._found_nothing = max(self._found_nothing - 1, 0) if found else self._found_nothing + 1
        return before != self._position

    def _most_at_once(self) -> int:
        most = _MOST_OF_MANY if self._reader.ttl else _MOST
        return max(most, min(most << self._found_nothing, _MOST_OF_NOTHING))

    def _skip(self, error: ExpiredError) -> bool:
        """Go on behind what has expired, as a user would who has looked at the table meanwhile."""
        self._behind = error
        return True

    def _go_on_behind(self, error: ExpiredError) -> None:
        """Take up a position at a time, in the set of streams that operated then.

        Of a time that is not over long enough it is not known yet which set that is.
        """
        try:
            known = [g.start for g in self._reader.generations()]
        except UnreadableError:
            return
        certain = self._check.now() - self._check.confidence
        start = max(error.kept_from, min(error.kept_from + SLACK, certain))
        before = [g for g in known if g <= start]
        self._position = Position(max(before, default=min(known)), max(start, min(known)))
        self._check.skip(self._table, self._position.read)
        self.skipped.append((error.read, self._position.read))
        self._behind = None

    def _is_skipped(self, timestamp: int) -> bool:
        return timestamp < self._gone or any(
            start <= timestamp < end for start, end in self.skipped
        )

    def has_read(self, timestamp: int) -> bool:
        """Whether all changes up to a time are read."""
        return self._position is not None and self._position.read > timestamp

    def read_to_the_end(self, wait: Callable[[Callable[[], bool], int], bool]) -> None:
        """Read all that was written, as it gets old enough for that, and check it; `wait` lets time pass.

        Of a table that was dropped nothing more can be read.
        """
        if self._table in self._oracle.dropped:
            self.check()
            return
        newest = max((t for _, t in self._oracle.written), default=0)
        now = self._check.now
        late = now() + 1000 * END_MS
        while not self.has_read(newest) and now() < late:
            if self.poll():
                late = now() + 1000 * END_MS  # a long run takes long to read
            else:
                wait(lambda: False, AGAIN_MS)
        if not self.has_read(newest):
            self._oracle.broken("the CDC log cannot be read after all was healed")
        self.check()

    def check(self) -> None:
        """Compare, after everything that was written can be read."""
        oracle, seen = self._oracle, dict[tuple[bytes, int], Change]()
        last = dict[bytes, int]()
        for change in self.changes:
            where = change.key, change.timestamp
            if where in seen:
                oracle.broken(f"the CDC consumer read the change of {where} twice")
            seen[where] = change
            if oracle.written.get(where, b"?never") != change.value:
                oracle.broken(f"the CDC consumer read {where} as {change.value!r}; nobody wrote it")
            image = change.before if where in oracle.written else None
            if image is not None and image.known and not oracle.may_precede(*where, image.value):
                oracle.broken(f"the image before {where} is {image.value!r}, and was not then")
            if change.timestamp < last.get(change.key, 0):
                oracle.broken(f"the CDC consumer read {where} after a later change of the key")
            last[change.key] = change.timestamp
        unread = oracle.acknowledged - set(seen) if self._table not in oracle.dropped else ()
        for where in sorted(unread):
            if table_of(where[0]) == self._table and not self._is_skipped(where[1]):
                oracle.broken(f"the CDC consumer never read {where}, which was acknowledged")


class Followers:
    """A consumer of each log."""

    def __init__(self, ask: Ask, oracle: Oracle, check: ReaderCheck, makes: MakesConsumer) -> None:
        self._of: dict[str, Follower] = {}
        self._ask, self._oracle = ask, oracle
        self._check, self._makes = check, makes

    def poll(self, tables: Iterable[str]) -> None:
        """Let each read on; from now on also those of tables that have a log by now."""
        for table in tables:
            if table not in self._of:
                self._of[table] = Follower(self._ask, table, self._oracle, self._check, self._makes)
            self._of[table].poll()

    def read_to_the_end(self, wait: Callable[[Callable[[], bool], int], bool]) -> int:
        """Let each read all that was written, and check it; how many changes they have read."""
        for follower in self._of.values():
            follower.read_to_the_end(wait)
        return sum(len(f.changes) for f in self._of.values())
