"""What a node records of the tablets that it holds: requests, streamed rows, cleanup, and sessions."""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Bool,
    FlagVar,
    Machine,
    OneVar,
    action,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    final,
    flag,
    invariant,
    one_of,
    require,
    sometimes,
    step_property,
)


class RecordedReplica(Machine):
    """One tablet at one node. `older`: a request began under a version that is below the node's fence."""

    storage: FlagVar = flag()
    rows: FlagVar = flag()
    clean: FlagVar = flag()  # it said that it has no rows, and has stored none since

    @action
    def allocate(self) -> None:
        """The node learns a stage in which it has storage for the tablet."""
        self.storage = True

    @action
    def deallocate(self) -> None:
        """The node learns a stage in which it has none."""
        require(~self.rows, "there are no rows")
        self.storage = False

    @action
    def write(self, older: Bool) -> None:
        """The replica stores a row that a client writes."""
        self._may_serve(older)
        self.rows = True
        self.clean = False

    @action
    def read(self, older: Bool) -> None:
        """The replica reads a row for a client."""
        self._may_serve(older)

    @action
    def refuse(self, older: Bool) -> None:
        """The replica refuses a request."""
        require(
            older | ~self.storage, "the request is older than the fence, or there is no storage"
        )

    @action
    def store_streamed(self) -> None:
        """Rows of a stream or of a repair are stored."""
        require(self.storage, "there is storage")
        self.rows = True
        self.clean = False

    @action
    def delete_rows(self) -> None:
        """The rows are removed."""
        self.rows = False

    @action
    def answer_cleanup(self) -> None:
        """The node answers that the replica is cleaned up."""
        require(~self.rows, "there are no rows")
        self.clean = True

    @invariant
    def cleaned_up_replicas_are_empty(self) -> Bool:
        """What a node says of its rows is so."""
        return self.clean.implies(~self.rows)

    @invariant
    def rows_lie_where_there_is_storage(self) -> Bool:
        """Nothing is left at a node that is no replica any more."""
        return self.rows.implies(self.storage)

    @step_property
    def rows_go_before_their_storage(self, after: Self) -> Bool:
        """001, cleanup: it has an action of its own: what a replica has is not lost with its storage."""
        return (self.storage & ~after.storage).implies(~self.rows)

    @sometimes
    def rows_are_removed(self, after: Self) -> Bool:
        """What a replica has is removed when it leaves."""
        return self.rows & ~after.rows

    @sometimes
    def it_leaves(self, after: Self) -> Bool:
        """The storage of a replica that is cleaned up goes."""
        return self.storage & self.clean & ~after.storage

    def _may_serve(self, older: Bool) -> None:
        require(~older, "the request is not older than the fence")
        require(self.storage, "there is storage")

    harmless = equivalents(
        equivalent_disabled(
            because="what is recorded here `tablet` does, whose steps would be none without it"
        ),
        equivalent_disabled(
            read,
            refuse,
            because="it changes nothing: what is recorded of it is checked with the event",
        ),
        equivalent_drop(
            _may_serve,
            "the request is not older than the fence",
            because="how old a request is, no state has: a trace shows it with the event",
        ),
        equivalent_drop(
            read, "there is storage", because="a read changes nothing: a trace shows where it was"
        ),
        equivalent_drop(
            refuse,
            "the request is older than the fence, or there is no storage",
            because="a refusal changes nothing",
        ),
        equivalent_loss(
            write, rows, because="rows come in two ways, and no promise is of one alone"
        ),
        equivalent_replacement(
            write,
            "rows becomes",
            because="that a write brings rows `tablet` shows, whose writes would be none of these without it",
        ),
        equivalent_replacement(
            store_streamed,
            "rows becomes",
            because="that a stream brings rows `tablet` shows, whose chunks would be none of these without it",
        ),
        equivalent_loss(
            store_streamed,
            rows,
            because="rows come in two ways, and no promise is of one alone",
        ),
    )


class Known(Enum):
    """What a node knows of a session."""

    nothing = auto()
    open = auto()
    closed = auto()


class RecordedSession(Machine):
    """One session at one node: rows that are streamed in it are stored while the node takes it for open."""

    session: OneVar[Known] = one_of(Known, init=Known.nothing)
    sent: FlagVar = flag()  # rows, to a node that asked for them
    stored: FlagVar = flag()  # something that was streamed in it

    @action
    def open(self) -> None:
        """The node learns that the session was opened."""
        require(self.session == Known.nothing, "the session is new")
        self.session = Known.open

    @action
    def close(self) -> None:
        """The node learns that it was closed."""
        require(self.session == Known.open, "the session is open")
        self.session = Known.closed

    @action
    def store(self) -> None:
        """The node stores rows that were streamed in the session."""
        require(self.session == Known.open, "the session is open")
        self.stored = True

    @action
    def send(self, whole: Bool) -> None:
        """The node sends a chunk of rows; `whole`: these are all that it has of a range of keys."""
        require(whole, "every row of the range is sent")
        self.sent = True

    @sometimes
    def rows_come_before_it_ends(self) -> Bool:
        """What is streamed in a session is stored before it is closed."""
        return self.stored & (self.session == Known.closed)

    @sometimes
    def rows_are_sent(self) -> Bool:
        """A node sends what it was asked for."""
        return self.sent

    @step_property
    def sessions_are_opened_and_closed_once(self, after: Self) -> Bool:
        """A node takes a session for open after nothing was known of it, and for closed after it was open."""
        opened = (after.session == Known.open).implies(self.session != Known.closed)
        closed = (after.session == Known.closed).implies(self.session != Known.nothing)
        return opened & closed

    @step_property
    def nothing_is_stored_late(self, after: Self) -> Bool:
        """What streams ends with its session."""
        return (~self.stored & after.stored).implies(self.session == Known.open)

    @final
    def closed_for_ever(self) -> Bool:
        """A session is opened once."""
        return self.session == Known.closed

    harmless = equivalents(
        equivalent_drop(
            send,
            "every row of the range is sent",
            because="what a node has, no state has: a trace shows it with the event",
        ),
    )
