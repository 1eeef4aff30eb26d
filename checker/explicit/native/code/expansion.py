"""Generates `expand`: every enabled step of each state of a block, and what is to be watched on the way.

A state's code is straight: all guards, then step by step the successor. A cheap successor is written
whether its step is enabled or not, and kept only if it is: no branch, nothing for the processor to guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

_NONE = Value("0", I64)
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
        text = note_functions(words) + self._broken_functions() + f.source()
        return self.tables.source() + text + MODULE_END

    def _broken_functions(self) -> str:
        """`broken0(words of the old state, words of the new one)`, `broken64`, ...: which of 64 step promises are broken.

        All steps share them: they are called only where some promise is broken.
        """
        plan, text = self.plan, ""
        promises = plan.steps[: plan.observed.noted_steps]
        for first, some in _masked(promises):
            names = [f"{state}{w}" for state in ("old", "new") for w in range(plan.layout.words)]
            f = Function(f"broken{first}", [(name, I64) for name in names])
            words = [f[name] for name in names]
            old, new = words[: plan.layout.words], words[plan.layout.words :]
            scope = Scope(f, plan.layout, self.tables, old, new)
            f.return_(_false(scope, some))
            text += f.source()
        return text

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
            successor = self._write(inner, state, step)
            if watched:
                self._watch_step(inner, state, step, promised, successor)
            self._enabled(state, step, Value("1", I64))
        return bad

    def _write(self, scope: Scope, state: _State, step: GroundStep) -> Sequence[Value]:
        """Write the successor; returns its words."""
        f, words = self.f, self.plan.layout.words
        place = f.mul(f.get(state.successors), words)
        successor = [self._updated(scope, state, step, w) for w in range(words)]
        for w, word in enumerate(successor):
            f.store(f["out"], f.add(place, w), word)
        if self.plan.edges:
            f.store(f["steps"], f.get(state.successors), step.index, I32)
        return successor

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
        self,
        scope: Scope,
        state: _State,
        step: GroundStep,
        conditions: Sequence[GroundNode],
        successor: Sequence[Value],
    ) -> None:
        observed = self.plan.observed
        words = [*state.words, *successor]
        for first, some in _masked(conditions[: observed.noted_steps]):
            with self._broken(scope, some) as seldom:
                if seldom is not None:
                    bits = self.f.call(f"@broken{first}", words)
                    place = observed.step_note(first)
                    self._note(state, bits, observed.live_steps, first, place, step.index)
        self._seen(scope, conditions[observed.noted_steps :], observed.seen_steps)

    def _conditions(self, scope: Scope, state: _State) -> None:
        observed = self.plan.observed
        for first, some in _masked(self.plan.states[: observed.noted_states]):
            with self._broken(scope, some) as seldom:
                if seldom is not None:
                    bits = _false(seldom, some)
                    self._note(state, bits, observed.live_states, first, observed.state_note(first))
        self._seen(scope, self.plan.states[observed.noted_states :], observed.seen_states)

    @contextmanager
    def _broken(self, scope: Scope, conditions: Sequence[GroundNode]) -> Iterator[Scope | None]:
        """What is written inside happens only where one of the promises is broken; None if none can be."""
        broken_one = any_broken(self.plan.model.builder, conditions)
        if broken_one is self.plan.model.builder.false:
            yield None
            return
        with self.f.when(scope.value(broken_one), likely=False):
            yield scope.inner()

    def _note(
        self, state: _State, bits: Value, live: int, first: int, place: int, step: int = 0
    ) -> None:
        """Note the state for those of 64 promises whose violation is still to be noted."""
        f = self.f
        broken = f.and_(bits, f.load(f["observed"], live + first // MASK_BITS))
        at = f.at(f["observed"], place)
        f.call("@note_all", [at, broken, Value(str(step), I64), *state.words])

    def _seen(self, scope: Scope, conditions: Sequence[GroundNode], seen: int) -> None:
        """Remember which of the conditions are false."""
        f = self.f
        for first, some in _masked(conditions):
            bits = _false(scope, some)
            if bits != _NONE:
                place = seen + first // MASK_BITS
                f.store(f["observed"], place, f.or_(f.load(f["observed"], place), bits))

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


def _masked(
    conditions: Sequence[GroundNode],
) -> Iterator[tuple[int, Sequence[GroundNode]]]:
    """As many as one mask has bits for, with the number of the first."""
    for first in range(0, len(conditions), MASK_BITS):
        yield first, conditions[first : first + MASK_BITS]


def _false(scope: Scope, conditions: Sequence[GroundNode]) -> Value:
    """A mask with one bit for each condition: set where it is false.

    Most are known to be true: those of a step that does not touch what they are about.
    """
    f, total = scope.function, _NONE
    for i, node in enumerate(conditions):
        if node.op is GroundOp.CONST and node.value:
            continue
        wide = f.zext(f.not_(scope.value(node)))
        bit = f.shl(wide, i) if i else wide
        total = bit if total == _NONE else f.or_(total, bit)
    return total


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
