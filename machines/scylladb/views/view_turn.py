"""A base table's turn: the view building coordinator works on one base table at a time, and says which.

Source: design document 000 (view-building-coordinator, 2025-12). This is what the coordinator's log shows at INFO
of one base table; `view_bases.py` says which one is chosen, and when it is done.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR
from stagewright.spec import (
    Bool,
    Machine,
    OneVar,
    one_of,
    step_property,
)


class Turn(Enum):
    """Whose turn it is: what `view_building_processing_base` holds."""

    nobody = auto()
    this = auto()
    other = auto()  # another base table's


T = Turn


class ViewTurn(Machine):
    """One base table among those that are processed in turn."""

    turn: OneVar[Turn] = one_of(Turn, init=T.nobody)

    @turn.step(T.nobody, T.this, by=COORDINATOR)
    def select(self) -> None:
        """The log says "Selected new base table to process"."""

    @turn.step(T.this, T.nobody, by=COORDINATOR)
    def finish(self) -> None:
        """The log says "Finished processing base table": it has no task any more."""

    @turn.step(T.nobody, T.other, by=COORDINATOR)
    def select_other(self) -> None:
        """Another base table is selected."""

    @turn.step(T.other, T.nobody, by=COORDINATOR)
    def finish_other(self) -> None:
        """Another base table is finished."""

    @step_property
    def one_base_table_at_a_time(self, after: Self) -> Bool:
        """000: "the coordinator processes at most only one base table at the time": it finishes one first."""
        changed = self.turn != after.turn
        return changed & ((self.turn == T.nobody) | (after.turn == T.nobody))
