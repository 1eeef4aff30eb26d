"""The last events of a trace up to a violation, replayed with the reference interpreter alone.

The tests that `validate --out` writes are made of these: they need the definition, and nothing of the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stagewright.spec.definition import Definition
from stagewright.spec.derived.open_ended import LARGEST, open_ended
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.interpreter import Interpreter, numbers_in
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.sorts import IntSort, MapSort, RecordSort, SeqSort, SetSort, Sort
from stagewright.spec.trace import observation
from stagewright.spec.values import FrozenMap, State, Value, plain, show
from stagewright.spec.verdict import Run, Step
from stagewright.traces.events.format_event import LISTED_MAX, label
from stagewright.traces.events.observability import NOTHING_HIDDEN, HiddenSteps
from stagewright.traces.events.symbols import Symbol, value_key
from stagewright.traces.explain import failed_guard

Leaves = Mapping[str, object]
_VARIABLE = re.compile(r"[.\[]")  # what ends its name in that of a leaf


class NotExplainedError(AssertionError):
    """No run of the definition explains an event."""


@dataclass(frozen=True)
class Seen:
    """One event: what it says beside who and when."""

    sequence: int
    action: str | None = None
    parameters: Leaves = field(default_factory=dict[str, object])
    observed: Leaves = field(default_factory=dict[str, object])
    end: bool = False

    @property
    def symbol(self) -> Symbol:
        """The same without its number."""
        return Symbol(self.action, self.parameters, self.observed, self.end)


def seen(sequence: int, symbol: Symbol) -> Seen:
    """A symbol that was read at a place of the sequence."""
    return Seen(sequence, symbol.action, symbol.parameters, symbol.observed, symbol.end)


@dataclass(frozen=True)
class ViolationWindow:
    """What the files of a violation are made of.

    `states`: where the entity may have been before the first of the `events`; None: where runs start.
    `run`: one legal run through all but the last event, whose state i is the one after event `marks[i]`
    (None: between events). `observed`: its last state with what was observed after the last event.
    """

    definition: Definition
    scope: Scope
    hidden: HiddenSteps
    states: tuple[State, ...] | None
    events: tuple[Seen, ...]
    run: Run
    marks: tuple[int | None, ...]
    observed: State
    from_start: bool = True


@dataclass(frozen=True)
class Window:
    """Replays events of an entity against its definition, at the scope named."""

    definition: Definition
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    budgets: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    hidden: HiddenSteps = NOTHING_HIDDEN
    from_start: bool = True  # else the first event may find the entity in any reachable state

    def replay(self, states: Sequence[Leaves] | None, events: Sequence[Seen]) -> None:
        """Find a run for the events, from one of the states (None: from an initial one).

        Raises:
            NotExplainedError: there is none; the text names the event and why nothing explains it.
        """
        __tracebackhide__ = True
        possible = None if states is None else [self._state(leaves) for leaves in states]
        ended = False
        for event in events:
            if ended:
                raise NotExplainedError(
                    f"event {event.sequence}, {label(event.symbol)}, comes after the end marker"
                )
            ended = event.end
            if not ended:
                possible = self._after(possible, event)

    @cached_property
    def interpreter(self) -> Interpreter:
        """What decides."""
        return Interpreter(
            self.definition,
            scope_of(self.definition, dict(self.sizes), self.budgets),
            bounded=False,
        )

    def _after(self, possible: list[State] | None, event: Seen) -> list[State]:
        __tracebackhide__ = True
        if possible is None:
            before: list[State] = []
            initial = self.interpreter.initial_states()
            reached = self._closure(initial, event, every=not self.from_start)
        else:
            before = self._closure(possible, event)
            reached = self._stepped(before, event.symbol)
        after = [state for state in reached if failed_guard.fits(state, event.observed)]
        if not after:
            raise NotExplainedError(self._why(before, reached, event))
        return after

    def _stepped(self, before: Sequence[State], symbol: Symbol) -> list[State]:
        meant = list(failed_guard.steps_meant(self.interpreter, symbol))
        found = [
            after
            for state in before
            for step in meant
            if (after := failed_guard.taken(self.interpreter, step, state)) is not None
        ]
        # Where steps may be hidden, an observation without an action may be of any of their states.
        looked = [*before] if symbol.action is None and self.hidden.exist else []
        return list(dict.fromkeys([*looked, *found]))

    def _closure(self, states: Iterable[State], event: Seen, *, every: bool = False) -> list[State]:
        """The states with those that hidden steps lead to; with `every`, that any steps lead to."""
        reached = dict.fromkeys(states)
        if not (every or self.hidden.exist):
            return list(reached)
        waiting = list(reached)
        within = self._horizon([], 0) if every else self._horizon(waiting, self._beyond(event))
        while waiting:
            state = waiting.pop()
            for step in failed_guard.steps_meant(self.interpreter, Symbol(None, {}, {})):
                after = failed_guard.taken(self.interpreter, step, state)
                if after is None or after in reached or not within(after):
                    continue
                if every or self._hides(step, state, after):
                    reached[after] = None
                    waiting.append(after)
        return list(reached)

    def _beyond(self, event: Seen) -> int:
        """The largest of the numbers that an event observes and that are larger than declared; 0 if none is."""
        declared = {v.name: max(_highs(v.sort), default=LARGEST) for v in self.definition.variables}
        seen = ((declared.get(_VARIABLE.split(n)[0], 0), v) for n, v in event.observed.items())
        return max((v for high, v in seen if type(v) is int and v > high), default=0)

    def _horizon(self, states: Sequence[State], far: int) -> Callable[[State], bool]:
        """How far steps that nothing records are followed from some states (none: from the beginning)."""
        most: dict[tuple[str, int, int], int] = {}
        for name, low, high, number in (one for state in states for one in self._numbers(state)):
            alike = name, low, high
            if number > high:
                most[alike] = max(most.get(alike, far), number + high - low)
        return lambda state: all(
            number <= most.get((name, low, high), max(high, far))
            for name, low, high, number in self._numbers(state)
        )

    def _numbers(self, state: State) -> Iterator[tuple[str, int, int, int]]:
        """Those that only a check bounds: variable, bounds, number."""
        sorts = {v.name: v.sort for v in self.interpreter.definition.variables}
        for name in open_ended(self.definition):
            for low, high, number in numbers_in(sorts[name], state[name]):
                yield name, low, high, number

    def _hides(self, step: Step, old: State, new: State) -> bool:
        if self.hidden.actions is not None and step.action not in self.hidden.actions:
            return False
        was, now = observation(old), observation(new)
        return not any(
            was.get(name) != now.get(name)
            and (values is None or any(value_key(v) == value_key(now.get(name)) for v in values))
            for name, values in self.hidden.visible.items()
        )

    def _why(self, before: Sequence[State], reached: Sequence[State], event: Seen) -> str:
        symbol = event.symbol
        lines = [
            f"no run of {self.definition.name} explains event {event.sequence}: {label(symbol)}"
        ]
        if not reached:
            for name, where in failed_guard.failed(self.interpreter, before, symbol):
                lines.append(f"  failed     {name}" + (f"  ({where})" if where else ""))
        for name, (expected, observed) in failed_guard.differing(reached, symbol.observed).items():
            lines.append(f"  differs    {name}: expected {expected}, observed {observed}")
        if enabled := failed_guard.enabled(self.interpreter, before)[:LISTED_MAX]:
            lines.append(f"  enabled    {', '.join(enabled)}")
        return "\n".join(lines)

    def _state(self, leaves: Leaves) -> State:
        """The state that has these leaves."""
        scope = self.interpreter.scope
        variables = self.interpreter.definition.variables
        return FrozenMap({v.name: _value(v.sort, v.name, leaves, scope) for v in variables})


def _highs(sort: Sort) -> Iterator[int]:
    """The largest numbers that are declared somewhere in a sort."""
    match sort:
        case IntSort(_, high):
            yield high
        case MapSort(_, inner) | SeqSort(inner):
            yield from _highs(inner)
        case RecordSort(_, fields):
            for _, inner in fields:
                yield from _highs(inner)
        case _:
            return


def _value(sort: Sort, name: str, leaves: Leaves, scope: Scope) -> Value:
    """The value that has these leaves: what `observation` takes apart, put together."""
    match sort:
        case MapSort(key, inner):
            keys = values_of(key, scope)
            return FrozenMap({k: _value(inner, f"{name}[{show(k)}]", leaves, scope) for k in keys})
        case RecordSort(_, fields):
            parts: dict[Value | str, Value] = {
                n: _value(inner, f"{name}.{n}", leaves, scope) for n, inner in fields
            }
            return FrozenMap(parts)
        case SeqSort(element, capacity):
            length = _value(IntSort(0, capacity), f"{name}.length", leaves, scope)
            assert isinstance(length, int)
            return tuple(_value(element, f"{name}[{i}]", leaves, scope) for i in range(length))
        case _:
            pass
    if name not in leaves:
        raise InputError(f"the states lack `{name}`", help="was the definition changed since?")
    wanted = leaves[name]
    if isinstance(sort, SetSort):
        members = wanted if isinstance(wanted, list) else []
        return frozenset(v for v in values_of(sort.element, scope) if show(v) in members)
    if isinstance(sort, IntSort) and type(wanted) is int:
        return wanted  # it may be larger than declared
    for value in values_of(sort, scope):
        if value_key(plain(value)) == value_key(wanted):
            return value
    raise InputError(f"`{name}` cannot be {wanted!r}", help="was the definition changed since?")
