"""A unique index is published without duplicates, and fails only because of one."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.machines.yugabytedb.indexes.unique_index import Key, Row, UniqueIndex
from stagewright.spec import Bool, Maybe, Term, some
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


def checked(machine: type[Machine], sizes: dict[str, int] | None = None, writes: int = 3) -> Report:
    definition = define(machine)
    report = check(definition, scope_of(definition, sizes, {"writes": writes}))
    assert report.exhausted
    return report


def test_every_promise_holds_at_the_default_scope_and_every_action_happens() -> None:
    report = checked(UniqueIndex)
    assert (report.outcome, report.states) == (Outcome.HOLDS, 22_682)
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize(
    ("sizes", "writes"), [({"row": 3, "key": 1}, 3), ({"row": 2, "key": 1}, 4)], ids=str
)
def test_they_hold_at_other_scopes_too(sizes: dict[str, int], writes: int) -> None:
    assert broken(checked(UniqueIndex, sizes, writes)) == set()


class NoForwardScan(UniqueIndex):
    """002: "Condition 2) is required to detect cases where a concurrent insert/update … was accepted"."""

    def _next(self, k: Term[Key]) -> Maybe[Row]:
        return self._nothing(k)


class NoBackwardScan(UniqueIndex):
    """002, condition 1, "similar to what a unique index would do anyways"."""

    def _previous(self, k: Term[Key]) -> Maybe[Row]:
        return self._nothing(k)


class BatchesAreNotSplit(UniqueIndex):
    """Two operations of a batch are on one key, and neither sees the other."""

    def _one_operation_a_key(self, r: Term[Row], q: Term[Row]) -> None:
        """Nobody looks."""


class SafeTimesAreNotAwaited(UniqueIndex):
    """Rows are backfilled while something may still commit at or before `t_read`."""

    def _t_read_is_past(self) -> None:
        """Nobody waits."""


class DeletesAreInTheWay(UniqueIndex):
    """Forwards in time, what was deleted before another row took the key counts as taken."""

    def is_duplicate(self, r: Term[Row]) -> Bool:
        newest = some(
            (self.key_at_t_read[r] == k) & self._conflicts(self.holder(k), r) for k in Key
        )
        return newest | super().is_duplicate(r)


@pytest.mark.parametrize(
    ("mutant", "promise"),
    [
        (NoForwardScan, "published_keys_are_unique"),
        (NoBackwardScan, "published_keys_are_unique"),
        (BatchesAreNotSplit, "published_keys_are_unique"),
        (SafeTimesAreNotAwaited, "the_index_names_the_row_that_has_the_key"),
        (DeletesAreInTheWay, "no_false_duplicate"),
    ],
)
def test_each_part_of_the_check_is_needed(mutant: type[Machine], promise: str) -> None:
    assert promise in broken(checked(mutant, {"row": 2, "key": 1}, 2))
