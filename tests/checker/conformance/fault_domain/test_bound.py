"""No implementation with at most so many states passes unless it is right: W and Wp against random machines."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.thorough import examples

from stagewright.checker.conformance.fault_domain.mealy import UNSAID, Mealy
from stagewright.checker.conformance.fault_domain.words import Method, tests_of as planned

INPUTS, RESETS = 2, 2


@st.composite
def machines(draw: st.DrawFn, most: int, *, whole: bool = True) -> Mealy:
    """A Mealy machine with hidden states; unless `whole`, it says nothing of some inputs."""
    states = draw(st.integers(1, most))
    after = np.array(
        [
            [draw(st.integers(0 if whole else UNSAID, states - 1)) for _ in range(INPUTS)]
            for _ in range(states)
        ]
    )
    refused = np.array(
        [
            [draw(st.booleans()) and draw(st.booleans()) for _ in range(INPUTS)]
            for _ in range(states)
        ]
    )
    refused &= after >= 0
    after = np.where(refused, np.arange(states)[:, None], after)
    seen = np.array([draw(st.integers(0, 1)) for _ in range(states)])
    starts = tuple(draw(st.integers(0, states - 1)) for _ in range(RESETS))
    return Mealy(after, refused, seen, starts)


@st.composite
def mutants(draw: st.DrawFn, machine: Mealy, extra: int) -> Mealy:
    """The machine with copies of some of its states, and then with a few changes: faults that hide well."""
    states = machine.states
    copies = draw(st.lists(st.integers(0, states - 1), max_size=extra))
    rows = [*range(states), *copies]
    after, refused = machine.after[rows].copy(), machine.refused[rows].copy()
    seen, starts = machine.seen[rows].copy(), list(machine.starts)
    for _ in range(draw(st.integers(1, 3))):
        s, i = draw(st.integers(0, len(rows) - 1)), draw(st.integers(0, INPUTS - 1))
        match draw(st.sampled_from(("target", "target", "refusal", "look", "start"))):
            case "target":
                after[s, i], refused[s, i] = draw(st.integers(0, len(rows) - 1)), False
            case "refusal":
                refused[s, i] = not refused[s, i]
            case "look":
                seen[s] = 1 - seen[s]
            case _:
                starts[i] = s
    after = np.where(refused, np.arange(len(rows))[:, None], after)
    return Mealy(after, refused, seen, tuple(starts))


@st.composite
def late_faults(draw: st.DrawFn, machine: Mealy, extra: int) -> Mealy:
    """The machine, but one way of `extra` + 1 inputs leads through copies of its states, and the last copy is wrong."""
    states = machine.states
    after = np.vstack([machine.after, np.zeros((extra, INPUTS), dtype=np.int64)])
    refused = np.vstack([machine.refused, np.zeros((extra, INPUTS), dtype=np.bool_)])
    seen = np.concatenate([machine.seen, np.zeros(extra, dtype=np.int64)])
    place = here = draw(st.integers(0, states - 1))
    for copy in range(states, states + extra):
        i = draw(st.integers(0, INPUTS - 1))
        here = int(machine.after[here, i])
        after[copy], refused[copy], seen[copy] = machine.after[here], False, machine.seen[here]
        refused[copy] = machine.refused[here]
        after[place, i] = copy
        place = copy
    i = draw(st.integers(0, INPUTS - 1))
    if draw(st.booleans()):
        refused[place, i] = not refused[place, i]
    else:
        after[place, i] = draw(st.integers(0, states + extra - 1))
    after = np.where(refused, np.arange(states + extra)[:, None], after)
    return Mealy(after, refused, seen, machine.starts)


@dataclass
class Played:
    """Two machines side by side."""

    spec: Mealy
    made: Mealy

    def agree(self, start: int, word: tuple[int, ...]) -> bool:
        """Whether they answer alike to a word; what the first says nothing of ends it."""
        s, t = self.spec.starts[start], self.made.starts[start]
        if self.spec.seen[s] != self.made.seen[t]:
            return False
        for i in word:
            if self.spec.after[s, i] < 0:
                return True
            if self.spec.refused[s, i] != self.made.refused[t, i]:
                return False
            s, t = int(self.spec.after[s, i]), int(self.made.after[t, i])
            if self.spec.seen[s] != self.made.seen[t]:
                return False
        return True

    def equal(self) -> bool:
        """Whether no word tells them apart, by walking through all pairs of states."""
        pairs = list(zip(self.spec.starts, self.made.starts, strict=True))
        known = set(pairs)
        while pairs:
            s, t = pairs.pop()
            if self.spec.seen[s] != self.made.seen[t]:
                return False
            for i in range(self.spec.inputs):
                if self.spec.after[s, i] < 0:
                    continue
                if self.spec.refused[s, i] != self.made.refused[t, i]:
                    return False
                after = int(self.spec.after[s, i]), int(self.made.after[t, i])
                if after not in known:
                    known.add(after)
                    pairs.append(after)
        return True


@pytest.mark.parametrize("method", Method)
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), extra=st.integers(0, 2), whole=st.booleans())
def test_every_fault_of_so_many_states_is_found(
    method: Method, data: st.DataObject, extra: int, whole: bool
) -> None:
    spec = data.draw(machines(4, whole=whole)).minimized()
    tests = planned(spec, method, extra)
    assume(tests.alike == 0)
    assert tests.states == spec.states + extra
    for _ in range(5):
        said = replace(spec, after=np.maximum(spec.after, 0))
        some = (machines(tests.states), mutants(said, extra), late_faults(said, extra))
        made = data.draw(st.one_of(some))
        side_by_side = Played(spec, made)
        passes = all(side_by_side.agree(test.start, test.word) for test in tests.tests)
        assert passes == side_by_side.equal()


def ring(states: int, marked: int) -> Mealy:
    """A counter that shows only whether it is at `marked`."""
    after = np.array([[(s + 1) % states] for s in range(states)])
    seen = np.array([int(s == marked) for s in range(states)])
    return Mealy(after, np.zeros(after.shape, dtype=np.bool_), seen, (0,))


def test_a_fault_beyond_the_bound_is_missed_and_within_it_found() -> None:
    """A state more, at the end of a cycle that looks right once: three states that repeat, or four."""
    spec = ring(3, 2)
    after = np.array([[1], [2], [3], [4], [5], [6], [0]])
    made = Mealy(
        after, np.zeros(after.shape, dtype=np.bool_), np.array([0, 0, 1, 0, 0, 1, 0]), (0,)
    )
    side_by_side = Played(spec, made)
    assert not side_by_side.equal()
    found = [
        not all(side_by_side.agree(t.start, t.word) for t in planned(spec, Method.W, extra).tests)
        for extra in range(6)
    ]
    assert found[4:] == [True, True]
    assert not found[0]


def test_wp_needs_no_more_tests_than_w() -> None:
    for states in (3, 5, 8):
        sizes = [
            sum(len(t.word) for t in planned(ring(states, states - 1), method, 1).tests)
            for method in (Method.WP, Method.W)
        ]
        assert sizes[0] <= sizes[1]


def test_equal_states_become_one() -> None:
    doubled = Mealy(
        np.array([[1], [2], [3], [0]]),
        np.zeros((4, 1), dtype=np.bool_),
        np.array([0, 1, 0, 1]),
        (0, 2),
    )
    small = doubled.minimized()
    assert small.states == 2
    assert small.starts[0] == small.starts[1]
    for length, start in itertools.product(range(5), range(2)):
        assert Played(small, doubled).agree(start, (0,) * length)
