"""What happened in a process, as it says itself: the oracle, the definitions and the logs all hear the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stagewright.impl.indexes.bulk.columns import changes_of
from stagewright.impl.indexes.bulk.numbers import Entries, keys_of
from stagewright.impl.indexes.schema import EntryChange, Schema
from stagewright.impl.indexes.splits.tablet_map import Split
from stagewright.machines.yugabytedb.indexes.index_states import Status


@dataclass(frozen=True)
class Note:
    """Something that a process did."""


@dataclass(frozen=True)
class RequestNote(Note):
    """Something about a request for a chunk."""

    job: int
    tablet: int
    ask: tuple[int, int]
    start: bytes
    indexes: tuple[int, ...]
    read_time: int


@dataclass(frozen=True)
class StatementNote(Note):
    """Something about a statement at the tablet of its row."""

    tablet: int
    transaction: str
    statement: int


# -- masters --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stepped(Note):
    """The master took a step of a definition: of which kind, on which instance."""

    kind: str
    entity: str
    action: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Learned(Note):
    """The master found out what a definition has as a constant."""

    kind: str
    entity: str
    variable: str
    value: Any


@dataclass(frozen=True)
class StatusReported(Note):
    """A master tells clients of a build that it has succeeded, or failed, for the first time in its life."""

    index: int
    status: Status


@dataclass(frozen=True)
class JobBegun(Note):
    """A master begins a job, or goes on with one."""

    job: int
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class ReadTimeChosen(Note):
    """A job has the time of its scan."""

    job: int
    indexes: tuple[int, ...]
    read_time: int


@dataclass(frozen=True)
class ChunkAsked(RequestNote):
    """The master sends a request for a chunk, maybe not for the first time."""


@dataclass(frozen=True)
class AnswerTaken(Note):
    """The master writes the checkpoint of a tablet; None: the tablet is done."""

    job: int
    tablet: int
    ask: tuple[int, int]
    until: bytes | None


@dataclass(frozen=True)
class ChunkFailed(Note):
    """A tablet has found two rows that share a key."""

    job: int
    tablet: int


@dataclass(frozen=True)
class SplitRegistered(Note):
    """A master has a tablet split."""

    split: Split


# -- tablets of the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SchemaApplied(Note):
    """A tablet of the table has applied another schema."""

    tablet: int
    before: Schema
    after: Schema


@dataclass(frozen=True)
class StatementCame(StatementNote):
    """A statement, or a copy of it, has reached the tablet of its row."""


@dataclass(frozen=True)
class StatementWaits(StatementNote):
    """It waits for the lock of a row."""

    key: bytes


@dataclass(frozen=True)
class StatementHeld(StatementNote):
    """Its intents are written: by which version of the schema, and which permissions, it was planned.

    Of a user-enforced one nothing is: it may be stored `until` a time.
    """

    version: int
    planned: tuple[tuple[int, int], ...]
    key: int
    until: int | None = None


@dataclass(frozen=True)
class LockAwaited(Note):
    """A statement has waited for another transaction's lock, so long."""

    transaction: str
    milliseconds: int


@dataclass(frozen=True)
class SplitAwaited(Note):
    """A statement has waited until it was known which tablets of an index have what one had that has split, so long."""

    transaction: str
    milliseconds: int


@dataclass(frozen=True)
class SafeTimeGiven(Note):
    """A tablet says from when on every commit maintains these indexes."""

    job: int
    tablet: int
    indexes: tuple[int, ...]
    time: int


@dataclass(frozen=True)
class ChunkBegun(RequestNote):
    """A tablet begins a chunk."""


@dataclass(frozen=True)
class RowsScanned(Note):
    """A tablet has read rows for a job; `stored`: their keys, one after the other."""

    job: int
    tablet: int
    stored: bytes
    indexes: tuple[int, ...]
    read_time: int

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """Their keys."""
        return tuple(keys_of(self.stored).tolist())


@dataclass(frozen=True)
class ChunkEnded(Note):
    """A tablet answers how far it came; `broken`: a violation ended it, or another request did."""

    job: int
    tablet: int
    until: bytes | None
    broken: bool = False


@dataclass(frozen=True)
class Opened(Note):
    """A tablet has another leader, which knows what is stored and nothing else: which keys are held, by which transactions."""

    address: str
    held: Mapping[bytes, str]


# -- all tablets ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TabletDivided(Note):
    """A tablet has split: so many versions, intents, and rows or entries that there are, were given to each of the two."""

    split: Split
    versions: tuple[int, int]
    intents: tuple[int, int]
    rows: tuple[int, int]


@dataclass(frozen=True)
class IntentsHeld(Note):
    """A tablet holds what a transaction wrote under these keys."""

    address: str
    transaction: str
    keys: tuple[bytes, ...]


@dataclass(frozen=True)
class IntentsEnded(Note):
    """They are versions of a time now, or, None, dropped."""

    address: str
    transaction: str
    time: int | None


@dataclass(frozen=True)
class Stored(Note):
    """A tablet has turned what it held into versions: keys with their values or None."""

    address: str
    time: int
    versions: Mapping[bytes, bytes | None]


@dataclass(frozen=True)
class Decided(Note):
    """The record of a transaction: when it has committed, or None, that it was aborted."""

    transaction: str
    time: int | None


# -- tablets of indexes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EntriesBackfilled(Note):
    """A tablet of an index is about to store entries of a scan, with a time."""

    address: str
    read_time: int
    time: int
    entries: Entries


@dataclass(frozen=True)
class EntriesStored(Note):
    """It has."""

    address: str
    time: int
    entries: Entries

    def stored(self) -> Stored:
        """The same in other words."""
        versions = {e.entry: str(e.row).encode() for e in changes_of(self.entries)}
        return Stored(self.address, self.time, versions)


@dataclass(frozen=True)
class ViolationFound(Note):
    """The entry of a scan that a tablet of an index refuses."""

    address: str
    read_time: int
    entry: EntryChange


@dataclass(frozen=True)
class BackfillOver(Note):
    """A tablet of an index has heard that the backfill is over."""

    address: str


@dataclass(frozen=True)
class Compacted(Note):
    """A tablet of an index has reclaimed so many versions."""

    address: str
    versions: int


@dataclass(frozen=True)
class IndexRead(Note):
    """A tablet of an index answers a read at a time."""

    address: str
    at: int
