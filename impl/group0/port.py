"""What every group0 does, wherever its log lies: simulated, in SQLite, in etcd.

A commit is a compare-and-set on the state id. Who commits chooses the new id, so an unknown outcome is
resolved by committing again: the same request is applied at most once and sooner or later gets a definite
answer. The fence is the term, not the lease: a leader commits on until another one has taken a new term.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from stagewright.impl.group0.commands import Command
from stagewright.impl.group0.state_ids import StateId
from stagewright.spec.errors import StagewrightError

TAIL = (
    1_000  # entries that a compaction keeps, so that late repeats of a commit get a definite answer
)


class Group0Error(StagewrightError):
    """Group0 cannot be used: its store is damaged or full, belongs to something else, or does not answer."""

    code = "SW411"


class UnavailableError(Group0Error):
    """Group0 does not answer now; the request changed nothing and can be repeated."""

    code = "SW412"


@dataclass(frozen=True, slots=True)
class Commit:
    """A request to commit a command as the successor of a state.

    With a `term` it counts only while that term lasts (a coordinator's); without, in any (an API call's).
    """

    expected: StateId
    id: UUID
    command: Command
    term: int | None = None

    @property
    def new(self) -> StateId:
        """The state that it leads to."""
        return StateId(self.expected.position + 1, self.id)


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is committed, and the term in which it was."""

    id: StateId
    term: int
    command: Command


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the log up to a state comes to, as JSON: it stands for entries that are no longer there."""

    id: StateId
    term: int
    content: str


Learned = Snapshot | Entry


@dataclass(frozen=True, slots=True)
class Committed:
    """It is in the log."""

    id: StateId


@dataclass(frozen=True, slots=True)
class Conflict:
    """It never was and never will be in the log: the state is another one than expected, or its time is over."""

    head: StateId


@dataclass(frozen=True, slots=True)
class Deposed:
    """It never was and never will be in the log: another term has begun."""

    term: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is in the log or not, now or soon: ask again with the same request."""

    why: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """It was asked so late that the log no longer shows which command stands at its place."""

    head: StateId


Outcome = Committed | Conflict | Deposed | Unknown | Forgotten


@dataclass(frozen=True, slots=True)
class Reading:
    """The log after a position. With a snapshot, the entries follow it and not the position."""

    snapshot: Snapshot | None
    entries: tuple[Entry, ...]
    head: StateId


@dataclass(frozen=True, slots=True)
class Leadership:
    """Who leads, in which term; `lease` is known to who got it."""

    node: str
    term: int
    lease: int = 0


class Group0(Protocol):
    """One node's access to the log."""

    async def commit(self, request: Commit) -> Outcome:
        """Commit a command if the state is the expected one and the term still lasts."""
        ...

    async def head(self) -> StateId:
        """A state that is no older than any commit that was answered before this was asked.

        Raises:
            UnavailableError: (as of all that follow) there is no answer now.
        """
        ...

    async def read(self, after: int = 0) -> Reading:
        """The log after a position, as of some moment since this was asked."""
        ...

    def watch(self, after: int = 0) -> AsyncIterator[Learned]:
        """Everything after a position, each entry once and in order, across failures and compactions."""
        ...

    async def compact(self, snapshot: Snapshot, tail: int = TAIL) -> None:
        """Keep a snapshot, and of the entries before it only the last ones; an older one changes nothing."""
        ...

    async def campaign(self, node: str, seconds: float) -> Leadership | None:
        """Lead in a new term, if nobody leads now; to be kept before so many seconds are over."""
        ...

    async def keep(self, leadership: Leadership) -> bool:
        """Lead for as long again from now; False if the lease has run out or another one leads."""
        ...

    async def resign(self, leadership: Leadership) -> None:
        """Lead no longer, so that another one can at once."""
        ...

    async def leader(self) -> Leadership | None:
        """Who leads now, if anybody does."""
        ...

    async def close(self) -> None:
        """Free what it holds; the log stays."""
        ...


def refusal_of(
    request: Commit, head: StateId, term: int, there: UUID | None, first: int, now: int
) -> Outcome | None:
    """The answer to a request that cannot be appended now; None if it can.

    `there` is the id of the entry at its place, if the log has one; `first` the log's first position; `now` the time
    of the log (microseconds since 1970).
    """
    if there is not None:
        return Committed(request.new) if there == request.id else Conflict(head)
    if request.new.position < first:
        return Forgotten(head)
    if head != request.expected:
        return Conflict(head)
    if request.term is not None and request.term != term:
        return Deposed(term)
    if request.command.until is not None and now > request.command.until:
        return Conflict(head)
    return None
