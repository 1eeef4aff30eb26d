"""The shortest legal run to what was observed: what would have had to happen between two events.

Breadth-first from the states that the entity may have been in, over every step of the definition, also
those that would have left an event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stagewright.spec.values import State
from stagewright.traces.automaton.event_constraints import Constraint
from stagewright.traces.automaton.subset_automaton import LIVE, START, Determinised, SpentError
from stagewright.traces.events.format_event import call, changes, summary
from stagewright.traces.explain.explanation import LegalStep, Nearest

LOOKED_AT_MAX = 5_000  # states of one search

_Path = list[tuple[int, int]]  # step, and the state that it leads to


def nearest(
    running: Determinised,
    number: int,
    constraint: Constraint,
    decode: Callable[[tuple[int, ...]], State],
    most: int = LOOKED_AT_MAX,
) -> Nearest:
    """The shortest run from the set `number` whose last state agrees with what the constraint observes.

    One whose last step is what the event says is better than a shorter one that ends otherwise.
    """
    search = _Search(running, constraint, most)
    try:
        starts = running.sets[number] if number >= LIVE else _initial(running, constraint)
        exact = search.run(starts, first=number == START)
    except SpentError:
        exact, search.exhausted = None, False
    path = exact if exact is not None else search.agreeing
    by_action = exact is not None and constraint.steps is not None
    steps = () if path is None else _legal_steps(running, path, decode)
    return Nearest(steps, by_action, len(search.came), search.exhausted)


def _initial(running: Determinised, constraint: Constraint) -> Sequence[int]:
    return sorted(running.before_observation(START, constraint))


@dataclass
class _Search:
    """A breadth-first search; `came` says by which step, from which state, each was first reached."""

    running: Determinised
    constraint: Constraint
    most: int
    came: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    agreeing: _Path | None = None  # to the first state that agrees, by whatever step
    exhausted: bool = True

    def run(self, starts: Sequence[int], *, first: bool) -> _Path | None:
        """The path to the first agreeing state by the step that the event says; None if there is none.

        `first`: the event is the first one, so that any step may be the last.
        """
        self.came = dict.fromkeys(starts, (-1, -1))
        self.exhausted = not self.running.source.program.steps.wide
        wanted = (
            None if first or self.constraint.steps is None else frozenset(self.constraint.steps)
        )
        level = list(starts)
        while level:
            following: list[int] = []
            for state in level:
                for step, after in self.running.tried_from(state):
                    last, known = wanted is None or step in wanted, after in self.came
                    fits = (last or not known) and self._fits(after)
                    if fits and last:
                        return [*self._path(state), (step, after)]
                    if known:
                        continue
                    if len(self.came) >= self.most:
                        self.exhausted = False
                        return None
                    self.came[after] = step, state
                    following.append(after)
                    if fits and self.constraint.cells and self.agreeing is None:
                        self.agreeing = self._path(after)
            level = following
        return None

    def _fits(self, state: int) -> bool:
        codes = self.running.states[state]
        return all(codes[cell] == code for cell, code in self.constraint.cells)

    def _path(self, state: int) -> _Path:
        path: _Path = []
        while (came := self.came[state])[0] >= 0:
            path.append((came[0], state))
            state = came[1]
        return [(-1, state), *path[::-1]]


def _legal_steps(
    running: Determinised, path: _Path, decode: Callable[[tuple[int, ...]], State]
) -> tuple[LegalStep, ...]:
    steps = running.source.program.steps
    parts: list[LegalStep] = []
    old, before = path[0][1], summary([decode(running.states[path[0][1]])])
    for step, state in path[1:]:
        after = summary([decode(running.states[state])])
        values = (value for _, value in steps[step].arguments)
        hidden = running.is_hidden(step, old, state)
        parts.append(LegalStep(call(steps[step].action, values), changes(before, after), hidden))
        old, before = state, after
    return tuple(parts)
