"""Which schema each tablet of the table has, and by which permissions its pending transactions were planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from stagewright.impl.indexes.records.notes import (
    IntentsEnded,
    Note,
    Opened,
    SchemaApplied,
    StatementHeld,
)
from stagewright.impl.indexes.schema import Schema, table_tablet
from stagewright.impl.indexes.splits.tablet_map import Split
from stagewright.impl.recording.recording import Recording
from stagewright.machines.yugabytedb.indexes.index_states import Permission

SCHEMAS = "index-schemas"
_ORDER = (
    Permission.absent,
    Permission.delete_only,
    Permission.write_and_delete,
    Permission.do_backfill,
    Permission.read_write_and_delete,
)
_WRITES = frozenset(p.number for p in Permission if p.write)
_Plans = dict[str, set[StatementHeld]]
"""Of each transaction, all: a statement that the next leader plans anew counts twice, as its client may have heard of
the first plan only."""


class Schemas:
    """As tablets apply them."""

    def __init__(self, recording: Recording, tablets: int) -> None:
        self._recording = recording
        self._applied = {t: Schema() for t in range(tablets)}
        self._last: dict[int, Schema] = {}  # of tablets that have split
        self._plans: dict[str, _Plans] = defaultdict(dict)  # of pending transactions, by address
        self._gone: dict[int, set[int]] = defaultdict(set)  # indexes that a tablet knew once

    def divide(self, split: Split, tablet_of: Callable[[int], int]) -> None:
        """A tablet has split: its children have its schema, and `tablet_of` says whose a row is now."""
        schema, gone = self._applied.pop(split.parent), self._gone.pop(split.parent, set())
        self._last[split.parent] = schema
        plans = self._plans.pop(table_tablet(split.parent), {})
        for child in split.children:
            self._applied[child], self._gone[child] = schema, set(gone)
            for transaction, held in plans.items():
                kept = {plan for plan in held if tablet_of(plan.key) == child}
                if kept:
                    self._plans[table_tablet(child)][transaction] = kept

    def of(self, tablet: int) -> Schema:
        """What a tablet has; one that has split keeps what it had."""
        return self._applied[tablet] if tablet in self._applied else self._last[tablet]

    def is_settled(self, tablet: int, indexes: tuple[int, ...], time: int) -> bool:
        """No transaction is pending at a time, or may be, that was planned before WRITE_AND_DELETE of these indexes."""
        least = Permission.write_and_delete.number
        return all(
            dict(plan.planned).get(index, -1) >= least
            or (plan.until is not None and plan.until < time)
            for held in self._plans[table_tablet(tablet)].values()
            for plan in held
            for index in indexes
            if index not in self._gone[tablet]
        )

    def serve(self, index: int) -> bool:
        """Whether every tablet has an index as published, or has had it so."""
        return all(
            schema.permission(index).number >= Permission.read_write_and_delete.number
            or index in self._gone[tablet]
            for tablet, schema in self._applied.items()
        )

    def written_by(self, address: str, transaction: str) -> set[int]:
        """The indexes that all statements of a pending transaction at a tablet of the table write to."""
        held = self._plans[address].get(transaction, set())
        written = [{i for i, p in plan.planned if p in _WRITES} for plan in held]
        return set.intersection(*written) if written else set()

    def hear(self, note: Note) -> None:
        """A tablet has done something."""
        match note:
            case SchemaApplied(tablet, before, after):
                newer, near = after.version > before.version, self._is_near(tablet, after)
                self._applied[tablet] = after
                numbers = {i.number for i in after.indexes}
                self._gone[tablet] |= {i.number for i in before.indexes} - numbers
                place = table_tablet(tablet)
                self._recording.take(SCHEMAS, place, place, "apply", newer=newer, near=near)
            case StatementHeld(tablet, transaction):
                self._plans[table_tablet(tablet)].setdefault(transaction, set()).add(note)
            case Opened(address, held):  # what was planned and is not there was not answered
                plans, there = self._plans[address], {*held.values()}
                for transaction in [t for t in plans if t not in there]:
                    left = {p for p in plans.pop(transaction) if p.until is not None}
                    plans |= {transaction: left} if left else {}
            case IntentsEnded(address, transaction):
                self._plans[address].pop(transaction, None)
            case _:
                pass

    def _is_near(self, tablet: int, after: Schema) -> bool:
        """No index is more than one permission ahead of another tablet's, unless it is being removed."""
        for index in after.indexes:
            if index.permission not in _ORDER:
                continue
            for other, schema in self._applied.items():
                theirs = schema.permission(index.number)
                ahead = _ORDER.index(index.permission) - (
                    _ORDER.index(theirs) if theirs in _ORDER else len(_ORDER)
                )
                if other != tablet and ahead > 1:
                    return False
        return True
