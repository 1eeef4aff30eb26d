"""What processes say to each other, and what clients ask of servers. Every question has a number, as has its answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stagewright.impl.indexes import messages
from stagewright.impl.indexes.messages import Build, Message
from stagewright.impl.indexes.splits.tablet_map import TabletMap
from stagewright.impl.processes.codec import Codec

Changes = tuple[tuple[int, dict[str, int] | None], ...]
"""Rows by their keys: columns, or None: the row is deleted."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message for a tablet, a master or a session, with the hybrid time of its sender."""

    sender: str
    to: str
    time: int
    message: bytes


# -- questions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transact:
    """Write rows in one transaction."""

    number: int
    changes: Changes


@dataclass(frozen=True, slots=True)
class MakeIndex:
    """CREATE INDEX."""

    number: int
    name: str
    column: str
    unique: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class RemoveIndex:
    """DROP INDEX."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class BuildDeferred:
    """BACKFILL."""

    number: int


@dataclass(frozen=True, slots=True)
class AskHowFar:
    """How far all builds are."""

    number: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """The rows that an index has for a value, now or as of a hybrid time."""

    number: int
    index: str
    value: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of one tablet from a key on, now or as of a hybrid time."""

    number: int
    tablet: int
    first: int | None
    limit: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class HalveTablet:
    """A tablet of the table is to split, or of an index, if one is named."""

    number: int
    tablet: int
    index: str = ""


@dataclass(frozen=True, slots=True)
class WhichTablets:
    """Which tablets the table has, or an index, if one is named."""

    number: int
    index: str = ""


@dataclass(frozen=True, slots=True)
class AskServer:
    """What a process does."""

    number: int


# -- answers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transacted:
    """The time of the commit; 0: it was aborted, with the reason."""

    number: int
    time: int
    refused: str = ""


@dataclass(frozen=True, slots=True)
class HowFar:
    """Builds, of which something may have been asked for."""

    number: int
    builds: tuple[Build, ...]


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Keys of rows, as of a time."""

    number: int
    rows: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class RowsAt:
    """Rows, as of a time."""

    number: int
    rows: tuple[tuple[int, dict[str, int]], ...]
    at: int


@dataclass(frozen=True, slots=True)
class Halved:
    """A tablet is splitting, or has split, into these."""

    number: int
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TabletsNow:
    """The tablets that were asked for; to a scan: the one that was asked has split."""

    number: int
    tablets: TabletMap


@dataclass(frozen=True, slots=True)
class Leads:
    """The tablets that a server leads; of a master, whether it does."""

    number: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """It cannot be done, or (`again`) not now, or (`never`) at no time: it names what is not there, say."""

    number: int
    reason: str
    again: bool = False
    help: str = "see `build status`"
    never: bool = False


Question = (
    Transact
    | MakeIndex
    | RemoveIndex
    | BuildDeferred
    | AskHowFar
    | LookUp
    | Scan
    | HalveTablet
    | WhichTablets
    | AskServer
)
Reply = Transacted | HowFar | RowKeys | RowsAt | Halved | TabletsNow | Leads | Failed
QUESTIONS = (
    *(Transact, MakeIndex, RemoveIndex, BuildDeferred),
    *(AskHowFar, LookUp, Scan, HalveTablet, WhichTablets, AskServer),
)


@lru_cache(maxsize=1)
def outer_codec() -> Codec:
    """Of what goes over a connection."""
    replies = (Transacted, HowFar, RowKeys, RowsAt, Halved, TabletsNow, Leads, Failed)
    return Codec((Delivery, *QUESTIONS, *replies))


@lru_cache(maxsize=1)
def inner_codec() -> Codec:
    """Of the messages of masters, tablets and sessions."""
    found = (v for v in vars(messages).values() if isinstance(v, type))
    return Codec(tuple(k for k in found if issubclass(k, Message) and k is not Message))
