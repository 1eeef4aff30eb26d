"""Generates `expand`: every enabled step of each state of a block, and what is to be watched on the way.

A state's code is straight: all guards, then step by step the successor. A cheap successor is written
whether its step is enabled or not, and kept only if it is: no branch, nothing for the processor to guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stagewright.checker.explicit.native.code.expressions import Scope, Tables
from stagewright.checker.explicit.native.code.factoring import any_broken
from stagewright.checker.explicit.native.code.llvm_text import (
    I32,
    I64,
    MODULE_END,
    POINTER,
    Function,
    Value,
)
from stagewright.checker.explicit.native.code.observed import MASK_BITS, Observed, note_functions
from stagewright.checker.explicit.native.code.substitution import Substitution
from stagewright.checker.explicit.packing import Layout
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp, GroundStep

_CHEAP = 12  # operations that cost less than a wrongly guessed branch


@dataclass(frozen=True)
class Plan:
    """What the generated code is to do besides finding successors."""

    model: GroundModel
    layout: Layout
    observed: Observed
    states: Sequence[GroundNode] = ()
    steps: Sequence[GroundNode] = ()
    deadlock: bool = False
    coverage: bool = False
    edges: bool = False  # report of each successor its step, of each state where its successors end

    def most_successors(self, states: int) -> int:
        """How many successors so many states have at most."""
        return states * len(self.model.steps)


def requirement_conditions(model: GroundModel) -> dict[int, int]:
    """The distinct conditions of all requirements: node id -> number; constant ones have none."""
    numbers: dict[int, int] = {}
    for step in model.steps:
        for requirement in step.requirements:
            if requirement.condition.op is not GroundOp.CONST:
                numbers.setdefault(requirement.condition.id, len(numbers))
    return numbers


def expansion_source(plan: Plan) -> str:
    """LLVM text of `expand(states, count, out, observed, steps, ends, overflows) -> successors`.

    `out` has room for one successor more than there can be. Only with `plan.edges` the last three are
    written: 32-bit step numbers, for each state where its successors end, and (state, step) pairs
    after their number in `overflows[0]`.
    """
    return _Expansion(plan).source()


class _Expansion:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tables = Tables()
        self.substitution = Substitution(plan.model.builder)
        names = ("states", "count", "out", "observed", "steps", "ends", "overflows")
        types = {name: I64 if name == "count" else POINTER for name in names}
        self.f = Function("expand", list(types.items()), local=False)

    def source(self) -> str:
        """The module."""
        f, words = self.f, self.plan.layout.words
        index, successors, spending = f.variable(0), f.variable(0), f.variable(0)
        with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
            base = f.mul(f.get(index), words)
            state = [f.load(f["states"], f.add(base, w)) for w in range(words)]
            self._state(_State(state, f.get(index), successors, spending))
            if self.plan.edges:
                f.store(f["ends"], f.get(index), f.get(successors))
            f.set(index, f.add(f.get(index), 1))
        f.return_(f.get(successors))
        text = note_functions(words) + f.source()
        return self.tables.source() + text + MODULE_END

    def _state(self, state: _State) -> None:
        f, plan = self.f, self.plan
        scope = Scope(f, plan.layout, self.tables, state.words)
        if plan.coverage:
            self._count_requirements(scope)
        if plan.model.constraint is not None:
            beyond = f.zext(f.not_(scope.value(plan.model.constraint)))
            f.increase(f["observed"], plan.observed.beyond, beyond)
        before = f.get(state.successors)
        f.set(state.spending, Value("0", I64))
        overflowing: list[Value] = []
        for step in plan.model.steps:
            bad = self._step(scope, state, step)
            if bad is not None and not step.action.spends:
                overflowing.append(bad)
        self._conditions(scope, state)
        if plan.deadlock:
            self._deadlock(scope, state, before, overflowing)

    def _count_requirements(self, scope: Scope) -> None:
        f, observed = self.f, self.plan.observed
        nodes = self.plan.model.builder.nodes
        for node, number in requirement_conditions(self.plan.model).items():
            false = f.zext(f.not_(scope.value(nodes[node])))
            f.increase(f["observed"], observed.false + number, false)

    # Steps

    def _step(self, scope: Scope, state: _State, step: GroundStep) -> Value | None:
        """Write one step's code; returns under what condition it leaves the bounds, if it can."""
        f, builder = self.f, self.plan.model.builder
        guard = scope.value(step.guard)
        bad: Value | None = None
        if step.overflows is not builder.false:
            bad = f.and_(guard, scope.value(step.overflows))
            self._overflow(state, step, bad)
            guard = f.and_(guard, f.not_(bad))
        rewrite = self.substitution.after(step)
        promised = [rewrite.of(node) for node in self.plan.steps]
        watched = any(node is not builder.true for node in promised)
        if not watched and _cost(step) <= _CHEAP:
            self._write(scope, state, step)
            self._enabled(state, step, f.zext(guard))
            return bad
        with f.when(guard):
            inner = scope.inner()
            self._write(inner, state, step)
            if watched:
                self._watch_step(inner, state, step, promised)
            self._enabled(state, step, Value("1", I64))
        return bad

    def _write(self, scope: Scope, state: _State, step: GroundStep) -> None:
        f, words = self.f, self.plan.layout.words
        place = f.mul(f.get(state.successors), words)
        for w in range(words):
            f.store(f["out"], f.add(place, w), self._updated(scope, state, step, w))
        if self.plan.edges:
            f.store(f["steps"], f.get(state.successors), step.index, I32)

    def _enabled(self, state: _State, step: GroundStep, one: Value) -> None:
        """Keep the successor written, if `one` is 1."""
        f = self.f
        f.set(state.successors, f.add(f.get(state.successors), one))
        if step.action.spends and self.plan.deadlock:
            f.set(state.spending, f.add(f.get(state.spending), one))
        if self.plan.coverage:
            f.increase(f["observed"], self.plan.observed.fired + step.index, one)

    def _updated(self, scope: Scope, state: _State, step: GroundStep, word: int) -> Value:
        """One word of the successor."""
        f, layout = self.f, self.plan.layout
        kept, fixed = (1 << 64) - 1, 0
        parts: list[Value] = []
        for index, node in step.updates.items():
            place, low = layout.places[index], layout.cells[index].low
            if place.word != word or not place.bits:
                continue
            kept &= ~(place.mask << place.shift)
            if node.op is GroundOp.CONST:
                fixed |= (node.value - low) << place.shift
                continue
            value = scope.number(node)
            if low:
                value = f.sub(value, low)
            parts.append(f.shl(value, place.shift) if place.shift else value)
        if kept == (1 << 64) - 1:
            return state.words[word]
        total = f.and_(state.words[word], kept)
        if fixed:
            total = f.or_(total, fixed)
        for part in parts:
            total = f.or_(total, part)
        return total

    def _overflow(self, state: _State, step: GroundStep, bad: Value) -> None:
        f, plan = self.f, self.plan
        with f.when(bad, likely=False):
            place = f.at(f["observed"], plan.observed.overflow)
            f.call("@note", [place, Value(str(step.index), I64), *state.words])
            if plan.edges:
                count = f.load(f["overflows"], 0)
                f.store(f["overflows"], f.add(f.mul(count, 2), 1), state.index)
                f.store(f["overflows"], f.add(f.mul(count, 2), 2), step.index)
                f.store(f["overflows"], 0, f.add(count, 1))

    # What is watched

    def _watch_step(
        self, scope: Scope, state: _State, step: GroundStep, conditions: Sequence[GroundNode]
    ) -> None:
        observed = self.plan.observed
        promises = conditions[: observed.noted_steps]
        self._promises(
            scope, promises, observed.live_steps, observed.step_note(0), step.index, state.words
        )
        self._seen(scope, conditions[observed.noted_steps :], observed.seen_steps)

    def _conditions(self, scope: Scope, state: _State) -> None:
        observed = self.plan.observed
        promises = self.plan.states[: observed.noted_states]
        self._promises(
            scope, promises, observed.live_states, observed.state_note(0), 0, state.words
        )
        self._seen(scope, self.plan.states[observed.noted_states :], observed.seen_states)

    def _promises(
        self,
        scope: Scope,
        conditions: Sequence[GroundNode],
        live: int,
        notes: int,
        step: int,
        words: Sequence[Value],
    ) -> None:
        """Note the state where a promise is broken whose violation is still to be noted."""
        f, builder = self.f, self.plan.model.builder
        note = 2 + self.plan.layout.words
        for first in range(0, len(conditions), MASK_BITS):
            some = conditions[first : first + MASK_BITS]
            broken_one = any_broken(builder, some)
            if broken_one is builder.false:
                continue
            with f.when(scope.value(broken_one), likely=False):
                inner = scope.inner()
                bits = self._bits([f.not_(inner.value(node)) for node in some])
                broken = f.and_(bits, f.load(f["observed"], live + first // MASK_BITS))
                place = f.at(f["observed"], notes + first * note)
                f.call("@note_all", [place, broken, Value(str(step), I64), *words])

    def _seen(self, scope: Scope, conditions: Sequence[GroundNode], seen: int) -> None:
        """Remember which of the conditions are false."""
        f = self.f
        for first in range(0, len(conditions), MASK_BITS):
            values = [f.not_(scope.value(n)) for n in conditions[first : first + MASK_BITS]]
            place = seen + first // MASK_BITS
            f.store(f["observed"], place, f.or_(f.load(f["observed"], place), self._bits(values)))

    def _bits(self, values: Sequence[Value]) -> Value:
        """A mask with one bit for each condition."""
        f = self.f
        total = Value("0", I64)
        for i, value in enumerate(values):
            wide = f.zext(value)
            total = f.or_(total, f.shl(wide, i) if i else wide)
        return total

    def _deadlock(
        self, scope: Scope, state: _State, before: Value, overflowing: Sequence[Value]
    ) -> None:
        f, plan = self.f, self.plan
        others = f.sub(f.get(state.successors), f.get(state.spending))
        stuck = f.compare("eq", others, before)
        for bad in overflowing:
            stuck = f.and_(stuck, f.not_(bad))
        with f.when(stuck, likely=False):
            final = scope.inner().value(plan.model.final)
            with f.when(f.not_(final)):
                place = f.at(f["observed"], plan.observed.deadlock)
                f.call("@note", [place, Value("0", I64), *state.words])


@dataclass(frozen=True)
class _State:
    """The state whose code is being written."""

    words: Sequence[Value]
    index: Value  # within the block
    successors: Value  # variable: how many there are so far
    spending: Value  # variable: how many of this state's spend a budget


def _cost(step: GroundStep) -> int:
    """About how many operations the successor takes."""
    seen: set[int] = set()

    def cost(node: GroundNode) -> int:
        if node.id in seen or node.op is GroundOp.CONST:
            return 0
        seen.add(node.id)
        return 1 + sum(cost(arg) for arg in node.args)

    return sum(cost(node) for node in step.updates.values())


def conditions_source(layout: Layout, nodes: Sequence[GroundNode], *, steps: bool) -> str:
    """LLVM text of `conditions(old, new, count, out)`: a byte a condition and state, by condition.

    `old` and `new` hold states one after the other; without `steps`, `new` is not read.
    """
    f = Function(
        "conditions",
        [("old", POINTER), ("new", POINTER), ("count", I64), ("out", POINTER)],
        local=False,
    )
    tables = Tables()
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
        base = f.mul(f.get(index), layout.words)
        places = [f.add(base, w) for w in range(layout.words)]
        old = [f.load(f["old"], place) for place in places]
        new = [f.load(f["new"], place) for place in places] if steps else ()
        scope = Scope(f, layout, tables, old, new)
        for i, node in enumerate(nodes):
            value = f.zext(scope.value(node), "i8")
            f.store(f["out"], f.add(f.mul(f["count"], i), f.get(index)), value, "i8")
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return tables.source() + f.source() + MODULE_END
