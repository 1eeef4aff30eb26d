"""What masters, tablets, the transactions' records and clients say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.impl.indexes.bulk.numbers import Entries
from stagewright.impl.indexes.schema import EntryChange, Schema, Values
from stagewright.impl.indexes.splits.tablet_map import TABLE, Split, TabletMap
from stagewright.machines.yugabytedb.indexes.index_states import Status


@dataclass(frozen=True)
class Message:
    """Anything that is sent; the network adds the sender and its hybrid time."""


# -- statements and transactions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Write(Message):
    """A statement of a transaction: the row's new columns, or None: it is deleted. Planned under a schema."""

    transaction: str
    statement: int
    key: int
    values: Values | None
    schema: Schema


class Answer(Enum):
    """What became of a statement."""

    done = auto()
    mismatched_schema = auto()  # the tablet has another version: plan it again
    conflict = auto()  # another transaction holds the row or the key
    duplicate = auto()  # another row has the key in a unique index
    timed_out = auto()  # a user-enforced write came back too late with its plan
    changed = auto()  # the row is not what a user-enforced write was planned for
    tablet_has_split = auto()  # others have its rows: ask for the newest map
    # its transaction was aborted before: by a backfill that waited for it, or as too old
    aborted = auto()


@dataclass(frozen=True)
class Plan:
    """What a user-enforced write is to do to indexes, by the permissions of one moment; its client brings it back."""

    began: int  # hybrid time
    found: int  # the time of the row's newest version; 0: there was none
    changes: tuple[EntryChange, ...]


@dataclass(frozen=True)
class Written(Message):
    """The answer to a statement, with the tablets that hold something of the transaction, or with its plan."""

    transaction: str
    statement: int
    answer: Answer
    participants: tuple[str, ...] = ()
    schema: Schema | None = None  # what the tablet has, if it is another
    plan: Plan | None = None


@dataclass(frozen=True)
class Finish(Message):
    """A client ends its user-enforced write: entries, then the row, are to be stored as they were planned."""

    transaction: str
    statement: int
    key: int
    values: Values | None
    plan: Plan


@dataclass(frozen=True)
class StoreEntries(Message):
    """A table's tablet has that of an index store what a user-enforced write does to it, with its time."""

    transaction: str
    time: int
    changes: tuple[EntryChange, ...]


@dataclass(frozen=True)
class EntriesWritten(Message):
    """It has."""

    transaction: str
    time: int


@dataclass(frozen=True)
class Prepare(Message):
    """A table's tablet asks that of an index to hold the changes of a statement."""

    transaction: str
    statement: int
    changes: tuple[EntryChange, ...]


@dataclass(frozen=True)
class Prepared(Message):
    """They are held (`done`), or why not."""

    transaction: str
    statement: int
    answer: Answer


@dataclass(frozen=True)
class End(Message):
    """A client ends its transaction."""

    transaction: str
    commit: bool
    participants: tuple[str, ...]


@dataclass(frozen=True)
class Ended(Message):
    """The transaction has committed at a time, or was aborted."""

    transaction: str
    time: int | None


@dataclass(frozen=True)
class AskFate(Message):
    """What became of a transaction; if it is undecided, it will not commit at or before `at`, or not at all."""

    transaction: str
    at: int
    abort: bool = False


@dataclass(frozen=True)
class Fate(Message):
    """It is undecided, as of `at`; or it has committed at `time`, or was aborted."""

    transaction: str
    at: int
    decided: bool
    time: int | None


@dataclass(frozen=True)
class Apply(Message):
    """A tablet turns what it holds of a transaction into versions of that time, or drops it."""

    transaction: str
    time: int | None


@dataclass(frozen=True)
class Applied(Message):
    """It is done; or others have what was held, as the tablet has split."""

    transaction: str
    instead: tuple[str, ...] = ()


# -- reads --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadIndex(Message):
    """The rows that an index has for a value, at a time."""

    request: str
    value: int
    at: int


@dataclass(frozen=True)
class Found(Message):
    """Their keys."""

    request: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ReadRows(Message):
    """The rows of a tablet of the table as of a time, from a key on, in the order of their keys."""

    request: str
    first: int | None
    limit: int
    at: int


@dataclass(frozen=True)
class RowsFound(Message):
    """Keys and columns."""

    request: str
    rows: tuple[tuple[int, Values], ...]


# -- tablets that split -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitTablet(Message):
    """A tablet of the table, or of an index, is to split."""

    place: str


@dataclass(frozen=True)
class SplitBegun(Message):
    """It is splitting, or has split, into these; or it does not, and why."""

    place: str
    children: tuple[str, ...]
    refused: str = ""


@dataclass(frozen=True)
class Divide(Message):
    """The master has its leader split a tablet; the map says where keys are."""

    split: Split
    tablets: TabletMap


@dataclass(frozen=True)
class Divided(Message):
    """The stores of its children have what they are to have, and it takes no more."""

    place: str


@dataclass(frozen=True)
class TabletHasSplit(Message):
    """A request reaches a tablet that has split; what is not a read has no name."""

    request: str = ""


@dataclass(frozen=True)
class AskTablets(Message):
    """Which tablets the table has now, or that of an index."""

    table: str = TABLE


@dataclass(frozen=True)
class Tablets(Message):
    """These."""

    tablets: TabletMap


# -- schemas ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AlterTable(Message):
    """The master's schema of the table."""

    schema: Schema


@dataclass(frozen=True)
class Altered(Message):
    """A tablet has applied a version."""

    tablet: int
    version: int


# -- the backfill ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GetSafeTime(Message):
    """From when on every commit maintains these indexes. Old transactions are waited for."""

    job: int
    indexes: tuple[int, ...]


@dataclass(frozen=True)
class SafeTime(Message):
    """From that time on, on this tablet, which has so many rows."""

    job: int
    tablet: int
    time: int
    rows: int = 0


@dataclass(frozen=True)
class BackfillChunk(Message):
    """Read rows from a key on at the time of the scan, and write their entries; answer how far it came."""

    job: int
    ask: tuple[int, int]  # the master's term, and a number
    start: bytes
    indexes: tuple[int, ...]
    read_time: int


@dataclass(frozen=True)
class Violation:
    """Two rows have one key in a unique index."""

    index: int
    value: int
    rows: tuple[int, int]


@dataclass(frozen=True)
class ChunkDone(Message):
    """The key of the next row, or None: the tablet is done; or which index cannot be built. So many rows were read."""

    job: int
    ask: tuple[int, int]
    tablet: int
    until: bytes | None
    violation: Violation | None = None
    rows: int = 0


@dataclass(frozen=True)
class BackfillBatch(Message):
    """Entries of rows as of the time of the scan."""

    job: int
    number: int
    time: int
    read_time: int
    entries: Entries


@dataclass(frozen=True)
class BatchDone(Message):
    """They are written, or one violates the constraint."""

    job: int
    number: int
    violation: Violation | None = None


@dataclass(frozen=True)
class AllowGc(Message):
    """The backfill is over: delete markers need not be kept, and no entry is written in the past."""

    index: int


@dataclass(frozen=True)
class GcAllowed(Message):
    """A tablet of an index has heard of it."""

    address: str


# -- statements about indexes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateIndex(Message):
    """CREATE INDEX: answered at once, with the status of the build."""

    name: str
    column: str
    unique: bool = False
    deferred: bool = False


@dataclass(frozen=True)
class DropIndex(Message):
    """DROP INDEX, at any time."""

    name: str


@dataclass(frozen=True)
class BackfillTable(Message):
    """BACKFILL: deferred indexes are built now."""


@dataclass(frozen=True)
class AskSchema(Message):
    """Which version of the schema a tablet of the table has."""

    request: str


@dataclass(frozen=True)
class SchemaKnown(Message):
    """That one."""

    request: str
    schema: Schema


@dataclass(frozen=True)
class AskBuild(Message):
    """How far an index is."""

    name: str


@dataclass(frozen=True)
class AskBuilds(Message):
    """How far all indexes are."""


@dataclass(frozen=True)
class Build(Message):
    """The status of an index's build, what went wrong, and how many tablets are done."""

    name: str
    status: Status | None  # None: there never was such an index
    error: str = ""
    tablets_done: int = 0
    gone: bool = False
    column: str = ""
    unique: bool = False
    waits: bool = False  # for BACKFILL
    rows: int = 0  # read by its job
    expected: int = 0  # rows that the tablets had when the time of the scan was chosen
    elapsed: int = 0  # milliseconds since then
    dropped: bool = False


@dataclass(frozen=True)
class Builds(Message):
    """Of all indexes that there ever were, the newest of each name."""

    builds: tuple[Build, ...]
