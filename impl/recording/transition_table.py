"""The transitions of one small definition that many entities take: each is computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stagewright.impl.runtime import Instance, Program
from stagewright.spec import RefusedError
from stagewright.spec.loading import load
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

Arguments = tuple[tuple[str, Any], ...]


class TransitionTable:
    """The states of a definition that were met, by number, and the steps between them."""

    def __init__(self, rules: Program) -> None:
        self.rules = rules
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._moves: dict[tuple[int, str, Arguments], int | str] = {}
        self._starts: dict[Arguments, int] = {}

    def start(self, known: Arguments) -> int:
        """The state in which an entity begins of which this is known."""
        found = self._starts.get(known)
        if found is None:
            found = self._starts[known] = self._number(Instance(self.rules, dict(known)).state)
        return found

    def step(self, state: int, action: str, arguments: Arguments) -> int | str:
        """The state that a step leads to, or why it is refused."""
        key = state, action, arguments
        found = self._moves.get(key)
        if found is None:
            found = self._moves[key] = self._compute(state, action, dict(arguments))
        return found

    def _compute(self, state: int, action: str, arguments: Mapping[str, Any]) -> int | str:
        instance = Instance(self.rules, self._states[state])
        try:
            instance.fire(Step(action, FrozenMap(arguments)))
        except RefusedError as error:
            return error.problem
        return self._number(instance.state)

    def _number(self, state: State) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            self._states.append(state)
        return found


def tables_of(places: Mapping[str, str]) -> dict[str, TransitionTable]:
    """A table of each definition; `places` says by the kind of trace where its class is."""
    return {kind: TransitionTable(Program(load(place))) for kind, place in places.items()}
