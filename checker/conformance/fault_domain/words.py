"""The W and Wp suites: every fault of an implementation with at most so many states is found.

Chow, "Testing Software Design Modeled by Finite-State Machines" (1978); Fujiwara and others, "Test Selection Based on
Finite State Models" (1991); with words that two states share, as in HSI, where not everything is said of every state.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from stagewright.checker.conformance.adapter import AdapterFactory, Closable, usable
from stagewright.checker.conformance.divergence import Move, Walk
from stagewright.checker.conformance.fault_domain.mealy import Mealy, Projection, projection
from stagewright.checker.conformance.fault_domain.separating import Word, separation
from stagewright.checker.conformance.oracle import without_budgets
from stagewright.checker.conformance.space import Space
from stagewright.checker.conformance.suites import MOST_MOVES, Suite
from stagewright.spec.errors import InputError
from stagewright.spec.values import State

MOST_STATES = 2_000  # of the smallest machine: every two of them are compared
MOST_WORDS = 1_000_000


def always_observed(initial: Sequence[State], factory: AdapterFactory) -> frozenset[str]:
    """The leaves that an adapter shows after each reset, by which states can be told apart."""
    shown: list[frozenset[str]] = []
    for state in initial:
        adapter = usable(factory())
        adapter.reset(state)
        shown.append(frozenset(adapter.observe()))
        if isinstance(adapter, Closable):
            adapter.close()
    return frozenset.intersection(*shown) if shown else frozenset()


class Method(Enum):
    """W tries all separating words everywhere; Wp those of the state alone, once all states are confirmed."""

    W = "w"
    WP = "wp"


@dataclass(frozen=True)
class Test:
    """A reset, by its number, and the inputs after it."""

    start: int
    word: Word


@dataclass(frozen=True)
class Tests:
    """All tests; `alike`: pairs of states that none tells apart. With none, the bound is `states`."""

    tests: tuple[Test, ...]
    states: int
    alike: int


def bounded_suite(
    space: Space,
    method: Method = Method.WP,
    *,
    extra: int = 0,
    observed: Collection[str] | None = None,
    moves: int = MOST_MOVES,
) -> Suite:
    """Walks that only a right implementation passes, among those with up to `extra` states more than are needed.

    An implementation is meant that is deterministic, that resets, and that always shows the leaves `observed`
    (None: all). Right: it does what the definition says, wherever the definition says something at this scope.

    Raises:
        InputError: there are too many states or tests.
    """
    seen = projection(space, observed)
    machine = seen.mealy.minimized()
    found = tests_of(machine, method, extra)
    walks: list[Walk] = []
    planned = 0
    for test in found.tests:
        if planned + len(test.word) > moves:
            break
        walks.append(_walk(seen, machine, test))
        planned += len(test.word)
    notes = [space.note]
    if len(walks) < len(found.tests):
        notes.append(f"stopped after {planned:,} moves")
    if found.alike:
        notes.append(f"{found.alike:,} pairs of states look alike at this scope")
    note = "; ".join(filter(None, notes))
    bound = "" if note else f", for implementations with up to {found.states:,} states"
    return Suite(
        method.value,
        tuple(walks),
        len(walks),
        len(found.tests),
        f"tests{bound}",
        note,
        unbudgeted=True,  # states that differ only in what is left of budgets are one
    )


def tests_of(machine: Mealy, method: Method, extra: int) -> Tests:
    """The tests of a machine that is as small as can be.

    Raises:
        InputError: there are too many states or tests.
    """
    if machine.states > MOST_STATES:
        raise InputError(
            f"{machine.states:,} states that can be told apart are too many for a suite with a bound",
            help=f"up to {MOST_STATES:,} can be compared: choose a smaller scope",
        )
    separated = separation(machine)
    reached = _reached(machine)
    everywhere = separated.all_words | {()}
    tests: set[Test] = set()
    for tried in _tried(machine, reached, extra):
        whole = method is Method.W or tried.confirms
        for tail in everywhere if whole else separated.words[tried.state] | {()}:
            word = tried.test.word + _said(machine, tried.state, tail)
            tests.add(Test(tried.test.start, word))
        if len(tests) > MOST_WORDS:
            raise InputError(
                f"the suite has more than {MOST_WORDS:,} tests",
                help="choose a smaller scope, or fewer states more with --extra-states",
            )
    return Tests(_longest(tests), machine.states + extra, separated.alike)


def _reached(machine: Mealy) -> dict[Test, int]:
    """A shortest test that leads to each state."""
    found: dict[int, Test] = {}
    queue: deque[int] = deque()
    for start, state in enumerate(machine.starts):
        if state not in found:
            found[state] = Test(start, ())
            queue.append(state)
    while queue:
        state = queue.popleft()
        for i in range(machine.inputs):
            after = int(machine.after[state, i])
            if after >= 0 and after not in found:
                found[after] = Test(found[state].start, (*found[state].word, i))
                queue.append(after)
    return {test: state for state, test in found.items()}


@dataclass(frozen=True)
class _Tried:
    """A test and the state it leads to; `confirms`: it shows which states an implementation has."""

    test: Test
    state: int
    confirms: bool


def _tried(machine: Mealy, reached: dict[Test, int], extra: int) -> Iterator[_Tried]:
    """After each state every word of up to `extra` + 1 inputs, after each other reset one of up to `extra`."""
    for test, state in reached.items():
        for word, after in _words(machine, state, extra + 1):
            yield _Tried(Test(test.start, test.word + word), after, len(word) <= extra)
    for start, state in enumerate(machine.starts):
        if Test(start, ()) not in reached:
            for word, after in _words(machine, state, extra):
                yield _Tried(Test(start, word), after, confirms=False)


def _words(machine: Mealy, state: int, longest: int) -> Iterator[tuple[Word, int]]:
    """Every word from a state that the machine says something of, and the state it leads to."""
    yield (), state
    if longest:
        for i in range(machine.inputs):
            after = int(machine.after[state, i])
            if after >= 0:
                for word, end in _words(machine, after, longest - 1):
                    yield (i, *word), end


def _said(machine: Mealy, state: int, word: Word) -> Word:
    """As much of a word as the machine says something of."""
    for n, i in enumerate(word):
        state = int(machine.after[state, i])
        if state < 0:
            return word[:n]
    return word


def _longest(tests: set[Test]) -> tuple[Test, ...]:
    """Without those that another one begins with."""
    ordered = sorted(tests, key=lambda t: (t.start, t.word))
    kept = [
        test
        for test, following in itertools.pairwise([*ordered, Test(-1, ())])
        if test.start != following.start or following.word[: len(test.word)] != test.word
    ]
    return tuple(kept)


def _walk(seen: Projection, machine: Mealy, test: Test) -> Walk:
    state = machine.starts[test.start]
    moves: list[Move] = []
    for i in test.word:
        moves.append(Move(seen.steps[i], bool(machine.refused[state, i])))
        state = int(machine.after[state, i])
    return Walk(without_budgets(seen.starts[test.start]), tuple(moves))
