"""What a worker observes while it expands states: one block of 64-bit numbers that generated code fills.

Of every condition that is to be noted once it is false (a promise, or what is to be found) the block keeps the least violating state (or the least state and step), words
compared in order: with it, the counterexample depends neither on the number of workers nor on their pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.exploration import Noted
from stagewright.checker.explicit.native.code.llvm_text import Function, Value

MASK_BITS = 64
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Observed:
    """Where everything lies in the block, in numbers from its beginning."""

    words: int
    noted_states: int  # the first so many state conditions
    state_conditions: int
    noted_steps: int
    step_conditions: int
    steps: int
    requirements: int  # distinct conditions

    @property
    def _note(self) -> int:
        return 2 + self.words  # noted?, step, words

    @property
    def live_states(self) -> int:
        """Bits: which state conditions are still to be noted."""
        return 0

    @property
    def seen_states(self) -> int:
        """Bits: which further state conditions were false somewhere."""
        return self.live_states + masks(self.noted_states)

    @property
    def live_steps(self) -> int:
        """Bits: which step conditions are still to be noted."""
        return self.seen_states + masks(self.state_conditions - self.noted_states)

    @property
    def seen_steps(self) -> int:
        """Bits: which further step conditions were false somewhere."""
        return self.live_steps + masks(self.noted_steps)

    @property
    def state_notes(self) -> int:
        return self.seen_steps + masks(self.step_conditions - self.noted_steps)

    @property
    def step_notes(self) -> int:
        return self.state_notes + self.noted_states * self._note

    @property
    def deadlock(self) -> int:
        return self.step_notes + self.noted_steps * self._note

    @property
    def overflow(self) -> int:
        return self.deadlock + self._note

    @property
    def fired(self) -> int:
        """How often each step happened."""
        return self.overflow + self._note

    @property
    def false(self) -> int:
        """In how many states each requirement's condition was false."""
        return self.fired + self.steps

    @property
    def beyond(self) -> int:
        """How many states were beyond the constraint."""
        return self.false + self.requirements

    @property
    def size(self) -> int:
        return self.beyond + 1

    def block(self) -> Numbers:
        """A fresh block: nothing noted, everything to be noted."""
        numbers = np.zeros(self.size, dtype=np.int64)
        numbers[self.live_states : self.seen_states] = -1
        numbers[self.live_steps : self.seen_steps] = -1
        return numbers

    def noted(self, block: Numbers, place: int) -> Noted | None:
        """What was noted at a place."""
        flag, step, *words = block[place : place + self._note].tolist()
        return Noted(tuple(w & (1 << 64) - 1 for w in words), step) if flag else None

    def state_note(self, promise: int) -> int:
        return self.state_notes + promise * self._note

    def step_note(self, promise: int) -> int:
        return self.step_notes + promise * self._note


def masks(conditions: int) -> int:
    """How many 64-bit masks hold a bit for each condition."""
    return -(-conditions // MASK_BITS)


def is_set(block: Numbers, place: int, index: int) -> bool:
    """Whether a bit of the masks at `place` is set."""
    return bool(int(block[place + index // MASK_BITS]) >> index % MASK_BITS & 1)


def clear(block: Numbers, place: int, index: int) -> None:
    """Clear a bit of the masks at `place`."""
    mask = block[place : place + 1 + index // MASK_BITS].view(np.uint64)
    mask[-1] &= ~(np.uint64(1) << np.uint64(index % MASK_BITS))


def note_functions(words: int) -> str:
    """`note(place, step, words...)` keeps the least; `note_all(first note, bits, step, words...)`."""
    state = [(f"w{i}", "i64") for i in range(words)]
    f = Function("note", [("place", "ptr"), ("step", "i64"), *state])
    with f.when(f.compare("ne", f.load(f["place"], 0), 0)):
        _return_unless_less(f, [f[name] for name, _ in state])
    f.store(f["place"], 0, 1)
    f.store(f["place"], 1, f["step"])
    for i, (name, _) in enumerate(state):
        f.store(f["place"], 2 + i, f[name])
    f.return_(0)
    g = Function("note_all", [("first", "ptr"), ("bits", "i64"), ("step", "i64"), *state])
    left = g.variable(g["bits"])
    with g.loop(lambda: g.compare("ne", g.get(left), 0)):
        bits = g.get(left)
        index = g.call("@llvm.cttz.i64", [bits, Value("true", "i1")])
        place = g.at(g["first"], g.mul(index, 2 + words))
        g.call("@note", [place, g["step"], *(g[name] for name, _ in state)])
        g.set(left, g.and_(bits, g.sub(bits, 1)))
    g.return_(0)
    declared = "declare i64 @llvm.cttz.i64(i64, i1)\n"
    return declared + f.source("noinline cold") + g.source("noinline cold")


def _return_unless_less(f: Function, words: Sequence[Value], index: int = 0) -> None:
    """Leave the function unless the state, or the same state's step, is less than what is noted."""
    noted = f.load(f["place"], 2 + index)
    with f.when(f.compare("ugt", words[index], noted)):
        f.return_(0)
    with f.when(f.compare("eq", words[index], noted)):
        if index + 1 < len(words):
            _return_unless_less(f, words, index + 1)
        else:
            with f.when(f.compare("uge", f["step"], f.load(f["place"], 1))):
                f.return_(0)
