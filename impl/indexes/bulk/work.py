"""What a tablet has done in bulk by a process that is there for it: works, and the answers to them.

A work may be done twice: it changes nothing but the file that it writes, and the sieve that it names.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.impl.indexes.bulk.numbers import Entries


@dataclass(frozen=True, slots=True)
class GetReady:
    """Works are about to come: load what they need."""


@dataclass(frozen=True, slots=True)
class ScanRows:
    """Read rows of a store as of a time, and gather what indexes have for them.

    `beside`: what the paths of files begin with that get it; empty: the answer has it.
    """

    files: tuple[str, ...]
    family: str
    low: bytes
    at: int
    most: int
    tablets: int
    indexes: tuple[tuple[int, bool, str], ...]  # number, whether it is unique, column
    beside: str = ""


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """How many rows, the key of the row after them, and entries by tablet, in the order of their keys."""

    rows: int
    following: bytes | None
    entries: tuple[tuple[int, Entries], ...]


@dataclass(frozen=True, slots=True)
class RemoveFiles:
    """What was scanned into them is not needed any more."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiftValues:
    """Find the entries whose values may be in a sieve, and put all of these into it, after those that are `known`."""

    sieve: str
    is_new: bool
    known: bytes
    entries: Entries


@dataclass(frozen=True, slots=True)
class SiftedValues:
    """The places of those that may be in it."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DropSieve:
    """It is not needed any more."""

    sieve: str


@dataclass(frozen=True, slots=True)
class WriteEntries:
    """Write entries, which are in the order of their keys, into a file that a store can take in."""

    path: str
    family: str
    time: int
    entries: Entries


@dataclass(frozen=True, slots=True)
class DoneWork:
    """It is done."""


@dataclass(frozen=True, slots=True)
class RefusedWork:
    """It cannot be done so; `again`: but with what is there now."""

    reason: str
    again: bool = False


Work = GetReady | ScanRows | RemoveFiles | SiftValues | DropSieve | WriteEntries
Answer = ScannedRows | SiftedValues | DoneWork | RefusedWork
