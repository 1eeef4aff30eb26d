"""What logs show of the view building coordinator, as views of the machine that says why and when."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_bases import Base, ViewBases
from stagewright.machines.scylladb.views.view_turn import Turn, ViewTurn
from stagewright.spec import Term, choose, projection


@projection()
def the_turn_of_a_base_table(bases: ViewBases, seen: ViewTurn, b: Term[Base]) -> None:
    """Of each base table the coordinator's log shows when it is selected and when it is finished."""
    other = choose(
        bases.processed.is_none(),
        Turn.nobody,
        choose(bases.processed == b, Turn.this, Term.of(Turn.other)),
    )
    seen.turn = other
