"""The edges of a state diagram that runs take: found by searching, not read off guards.

Only whole levels of the search are looked at, so that a search that ends early gives the same edges with
any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.engines import EngineKind, search
from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.explicit.packing import Words
from stagewright.checker.initial import find_initial_states
from stagewright.checker.limits import Limits, OnProgress, Stop, interruptible
from stagewright.checker.symmetry.choice import choose
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.spec.definition import Action, Definition
from stagewright.spec.grounding.ground import Cell, GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.nodes import root_variable, variables_in
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EnumSort
from stagewright.spec.text.state_diagram import Edge, drawn_variables

MOST_STATES = 1_000_000  # looked at for a diagram, unless told otherwise


@dataclass(frozen=True)
class Reached:
    """What a search at one scope saw of a variable.

    `states`: how many were looked at, or orbits of them; all that are reachable if `stopped` is empty, else
    all that are at most `depth` steps away. `initial`: the members that initial states have.
    """

    scope: Scope
    edges: tuple[Edge, ...]
    initial: tuple[Enum, ...]
    states: int
    depth: int
    orbits: bool
    stopped: str = ""


def reached_edges(
    definition: Definition,
    variable: str,
    scope: Scope,
    *,
    limits: Limits | None = None,
    progress: OnProgress | None = None,
    engine: EngineKind = EngineKind.AUTO,
    workers: int | None = None,
    symmetry: bool = True,
) -> Reached:
    """The edges of an enum variable that some run takes at a scope, in the order of the actions.

    An edge leads from one member to another, at whatever key. One leads from a member to itself where an
    action assigns what is there already, at keys that do not depend on the state.

    Raises:
        DefinitionError, ScopeError: the definition cannot be grounded at this scope.
    """
    stop = Stop(limits or Limits(states=MOST_STATES))
    with interruptible(stop):
        # Promises would cost time, and fairness would forbid the use of symmetry.
        model = ground(replace(definition, properties=()), scope)
        if why := find_initial_states(model, stop, progress):
            return Reached(scope, (), (), 0, 0, orbits=False, stopped=why)
        chosen = choose(model).symmetry if symmetry else None
        kind = type(drawn_variables(definition)[variable][0])
        if chosen is not None and any(group.kind is kind for group in chosen.groups):
            chosen = None  # one state of each orbit does not have every member
        watch = Watch(deadlock=False, coverage=False)
        found = search(model, watch, stop, progress, kind=engine, workers=workers, symmetry=chosen)
        states, depth = _whole_levels(found, stop.limits)
        looked = _Looked(definition, variable, model, found)
        looked.at(states)
    return Reached(
        scope,
        tuple(looked.edges()),
        tuple(looked.initial()) if states else (),
        found.within if found.exhausted else states,
        depth,
        orbits=chosen is not None,
        stopped=found.stopped,
    )


def _whole_levels(found: Exploration, limits: Limits) -> tuple[int, int]:
    """How many states to look at, and how deep they are: all, or levels that no limit on states cut off."""
    if found.exhausted:
        return found.states, found.depth
    levels, whole = found.levels, 0
    most = found.states + 1 if limits.states is None else limits.states
    # Where a level and all that it leads to are fewer than the limit, every search has expanded it. If the
    # next one was begun, they were fewer.
    while whole + 1 < len(levels) and levels[whole + 1] <= found.expanded:
        begun = found.expanded > levels[whole + 1]
        known = levels[whole + 2] if whole + 2 < len(levels) else found.states
        if not begun and known >= most:
            break
        whole += 1
    return levels[whole], max(0, whole - 1)


def _may_stay(action: Action, variable: str) -> bool:
    """Whether edges from a member to itself are drawn: it is known where the action assigns the variable."""
    places = (a.place for a in action.assignments if root_variable(a.place) == variable)
    return all(variables_in(place) == {variable} for place in places)


class _Looked:
    """Which action was seen to lead from which member to which."""

    def __init__(
        self, definition: Definition, variable: str, model: GroundModel, found: Exploration
    ) -> None:
        self._engine = found.engine
        if isinstance(self._engine, Reduced):
            self._engine = self._engine.unreduced
        self._found = found
        self._members = drawn_variables(definition)[variable]
        self._actions = [a.name for a in definition.actions]
        numbers = {name: i for i, name in enumerate(self._actions)}
        self._action_of = np.array([numbers[s.action.name] for s in model.steps], dtype=np.int64)
        staying = [_may_stay(action, variable) for action in definition.actions]
        self._may_stay = np.array(staying, dtype=np.bool_)
        self._cells = [
            (cell, np.array([cell.index in s.updates for s in model.steps], dtype=np.bool_))
            for cell in model.cells
            if cell.variable == variable and isinstance(cell.sort, EnumSort)
        ]
        size = len(self._members)
        self._seen = np.zeros((len(self._actions), size, size), dtype=np.bool_)

    def at(self, states: int) -> None:
        """Look at all steps from the first so many states."""
        for first in range(0, states, self._engine.batch):
            part = self._found.words[:, first : min(states, first + self._engine.batch)]
            expansion = self._engine.expand(part)
            for cell, updating in self._cells:
                edges = np.flatnonzero(updating[expansion.steps])
                old = self._codes(cell, part)[expansion.sources[edges]]
                new = self._codes(cell, expansion.successors[:, edges])
                actions = self._action_of[expansion.steps[edges]]
                drawn = (old != new) | self._may_stay[actions]
                self._seen[actions[drawn], old[drawn], new[drawn]] = True

    def _codes(self, cell: Cell, states: Words) -> NDArray[np.int64]:
        """The numbers of the members in a cell."""
        place = self._engine.layout.places[cell.index]
        bits = states[place.word] >> np.uint64(place.shift) & np.uint64(place.mask)
        codes: NDArray[np.int64] = bits.astype(np.int64)
        return codes

    def edges(self) -> Iterator[Edge]:
        """Those that were seen."""
        for action, source, target in np.argwhere(self._seen).tolist():
            yield self._members[source], self._members[target], self._actions[action]

    def initial(self) -> Iterator[Enum]:
        """The members that initial states have."""
        starts: Bools = np.zeros(len(self._members), dtype=np.bool_)
        for cell, _ in self._cells:
            starts[self._codes(cell, self._found.words[:, : self._found.initial])] = True
        return (member for member, start in zip(self._members, starts, strict=True) if start)
