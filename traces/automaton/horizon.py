"""How far numbers that only a check bounds are followed where no event says what they are."""

from __future__ import annotations

from collections.abc import Sequence

from stagewright.traces.automaton.nfa import Automaton
from stagewright.traces.automaton.step_code import State


class Horizon:
    """How far steps that nothing records are followed from some states (none: from the beginning).

    Numbers stay within what is declared; where one is beyond that, it may go as far again. `far`: the largest number
    beyond that the next event observes: so far all may go.
    """

    def __init__(self, source: Automaton, states: Sequence[State] = (), far: int = 0) -> None:
        most: dict[str, int] = {}
        for one in source.beyond:
            seen = max((state[one.cell] for state in states), default=one.low)
            further = seen + one.declared - one.low if seen > one.declared else one.declared
            most[one.among] = max(most.get(one.among, far), further)
        self._most = [(one.cell, most[one.among]) for one in source.beyond]

    def __call__(self, state: State) -> bool:
        """Whether a state is within it."""
        return all(state[cell] <= most for cell, most in self._most)
