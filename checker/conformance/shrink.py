"""Make a failing walk as short as it can be: Hypothesis does this itself, tours need it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from stagewright.checker.conformance.divergence import Divergence, Move, Walk
from stagewright.checker.conformance.oracle import Oracle, without_budgets
from stagewright.spec.values import State

WayTo = Callable[[State], Walk | None]
"""The shortest way to a state; None if it is not known."""

FailureOf = Callable[[Walk], Divergence | None]

_SMALL = 4  # pieces of so many moves are left out at every place
_MOST_RUNS = 200  # of the implementation, for one thing to leave out
_MOST_PASSES = 40  # each leaves something out


def shortest(
    oracle: Oracle, failure_of: FailureOf, failure: Divergence, way_to: WayTo | None = None
) -> Divergence:
    """A failure by a walk that is no longer: by the shortest way to the same state, if it fails there.

    If it does not, the implementation remembers how it got there, and pieces of the walk are left out
    as long as it still fails.
    """
    if not failure.moves:
        return failure
    way = None if way_to is None else way_to(failure.states[len(failure.moves) - 1])
    if way is not None:
        found = failure_of(Walk(way.start, (*way.moves, failure.moves[-1])))
        if found is not None:
            return found
    for _ in range(_MOST_PASSES):
        possible = (c for c in _shorter(failure) if _possible(oracle, failure.states[0], c))
        walks = (Walk(failure.states[0], moves) for moves in islice(possible, _MOST_RUNS))
        found = next((f for f in map(failure_of, walks) if f is not None), None)
        if found is None:
            return failure
        failure = found
    return failure


def _shorter(failure: Divergence) -> Iterator[tuple[Move, ...]]:
    """The walk without what it refused, without each loop, and without each piece, longest first."""
    moves, states = failure.moves, [without_budgets(state) for state in failure.states]
    last = len(moves) - 1
    straight = tuple(m for i, m in enumerate(moves) if i == last or not m.refused)
    if len(straight) < len(moves):
        yield straight
    loops = [(i, j) for i in range(last) for j in range(last, i, -1) if states[i] == states[j]]
    for i, j in sorted(loops, key=lambda loop: loop[0] - loop[1]):
        yield moves[:i] + moves[j:]
    size = last // 2
    while size:
        for i in range(0, last - size + 1, 1 if size <= _SMALL else size):
            yield moves[:i] + moves[i + size :]
        size //= 2


def _possible(oracle: Oracle, state: State, moves: tuple[Move, ...]) -> bool:
    """Whether every move can still be made, or must still be refused."""
    for move in moves:
        allowed = oracle.allowed(state)
        if move.refused:
            if move.step not in allowed.refused:
                return False
        elif move.step in allowed.enabled:
            state = oracle.after(move.step, state)
        else:
            return False
    return True
