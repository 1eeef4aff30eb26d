"""What a symbol means to one machine: what it asks of the step, and of the state after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagewright.spec.derived.open_ended import LARGEST
from stagewright.traces.automaton.nfa import Automaton, Numbers
from stagewright.traces.events.symbols import Symbol, value_key

_ELEMENT = re.compile(r"\[([0-9]+)\]")
_LISTED_MAX = 12  # values that a reason names
TRIED_MAX = 100_000  # steps that one event may be


@dataclass(frozen=True)
class Constraint:
    """A symbol in terms of one automaton: what it asks of the step and of the state after it."""

    steps: Sequence[int] | None  # any step if None
    cells: tuple[tuple[int, int], ...] = ()  # (cell, code) after the step
    end: bool = False
    action: str | None = None
    too_many: bool = False  # steps that it may be, to be tried one by one


class Alphabet:
    """The symbols that a machine understands, and why it does not understand the others."""

    def __init__(self, source: Automaton) -> None:
        self.source = source
        self._by_values: dict[
            tuple[str, tuple[str, ...]], Mapping[tuple[str, ...], tuple[int, ...]]
        ] = {}
        self._open: dict[str, Mapping[str, Mapping[str, int]]] = {}
        self._steps = source.program.steps
        self._by_action: dict[str, list[int]] = {}  # its templates
        for number, template in enumerate(self._steps.templates):
            self._by_action.setdefault(template.action, []).append(number)

    def constraint(self, symbol: Symbol) -> Constraint | str:
        """A symbol in the machine's terms, or why it is none of this machine's."""
        if symbol.end:
            said = symbol.action is not None or symbol.parameters or symbol.observed
            return (
                "an end marker has no action and observes nothing"
                if said
                else Constraint((), end=True)
            )
        steps, number = self._matching_steps(symbol)
        if isinstance(steps, str):
            return steps
        cells: list[tuple[int, int]] = []
        for name, value in symbol.observed.items():
            if name in self.source.ignored:
                continue
            found = self._observed(name, value)
            if isinstance(found, str):
                return found
            if (why := _beyond_the_end(name, symbol.observed)) is not None:
                return why
            cells += found
        too_many = number > TRIED_MAX
        return Constraint(
            () if too_many else steps, tuple(cells), action=symbol.action, too_many=too_many
        )

    def _matching_steps(self, symbol: Symbol) -> tuple[Sequence[int] | str | None, int]:
        """The steps that an event may be, or why it is none; and how many these are."""
        if symbol.action is None:
            return "parameters without an action" if symbol.parameters else None, 0
        known = self.source.parameters.get(symbol.action)
        if known is None:
            actions = _listed(self.source.parameters)
            return f"{self._machine} has no action `{symbol.action}`, only {actions}", 0
        wanted = {name: value_key(value) for name, value in symbol.parameters.items()}
        for name, value in wanted.items():
            if name not in known:
                others = _listed(known) or "none at all"
                return f"action `{symbol.action}` has no parameter `{name}`, only {others}", 0
            if value not in known[name]:
                return (
                    f"parameter `{name}` of `{symbol.action}` cannot be {value}, "
                    f"only {_listed(known[name])}"
                ), 0
        open_ = self._open_of(symbol.action)
        names = tuple(name for name in wanted if name not in open_)
        found = self._by_arguments(symbol.action, names).get(tuple(wanted[n] for n in names), ())
        if not open_:
            return found, len(found)
        given = {name: open_[name][wanted[name]] for name in wanted if name in open_}
        having = [self._steps.having(template, given) for template in found]
        number = sum(count for count, _ in having)
        return (
            [i for _, indices in having for i in indices] if number <= TRIED_MAX else ()
        ), number

    def _open_of(self, action: str) -> Mapping[str, Mapping[str, int]]:
        """The parameters that the templates of an action leave open: the code of each value."""
        if action not in self._open:
            inputs = (
                i for n in self._by_action.get(action, ()) for i in self._steps.templates[n].inputs
            )
            self._open[action] = {
                i.name: {value_key(m): i.low + at for at, m in enumerate(i.members)}
                if i.members
                else Numbers(i.low, i.high, i.low)
                for i in inputs
            }
        return self._open[action]

    def _by_arguments(
        self, action: str, names: tuple[str, ...]
    ) -> Mapping[tuple[str, ...], tuple[int, ...]]:
        """The steps of an action by the values of some of its parameters: there may be many thousands.

        Of an action with inputs these are its templates.
        """
        if (action, names) not in self._by_values:
            found: dict[tuple[str, ...], list[int]] = {}
            for number in self._by_action.get(action, ()):
                template = self._steps.templates[number]
                values = dict(template.arguments)
                step = number if template.inputs else self._steps.first(number)
                found.setdefault(tuple(value_key(values[name]) for name in names), []).append(step)
            self._by_values[action, names] = {key: tuple(steps) for key, steps in found.items()}
        return self._by_values[action, names]

    def _observed(self, name: str, value: object) -> list[tuple[int, int]] | str:
        leaf = self.source.leaves.get(name)
        if leaf is None:
            part = next(
                (n for n in self.source.leaves if n.startswith((f"{name}[", f"{name}."))), ""
            )
            how = f"; its parts are observed one by one: `{part}`" if part else ""
            return f"{self._machine} has nothing named `{name}` to observe{how}"
        if leaf.cell is not None:
            code = leaf.codes.get(value_key(value))
            if code is None:
                return f"`{name}` cannot be {value_key(value)}, only {_listed(leaf.codes)}"
            return [(leaf.cell, code)]
        members = value if isinstance(value, list) else [value]
        if not isinstance(value, list) or any(str(m) not in leaf.codes for m in members):
            return f"`{name}` cannot be {value_key(value)}, only a list of {_listed(leaf.codes)}"
        return [(cell, int(m in members)) for m, cell in leaf.codes.items()]

    @property
    def _machine(self) -> str:
        profile = f" ({self.source.profile})" if self.source.profile else ""
        return f"{self.source.machine}{profile}"


def _beyond_the_end(name: str, observed: Mapping[str, object]) -> str | None:
    """Why `channel[2].kind` cannot be observed, if the channel is observed to be shorter; None if it can."""
    for element in _ELEMENT.finditer(name):
        length = observed.get(f"{name[: element.start()]}.length")
        if isinstance(length, int) and length <= int(element.group(1)):
            return f"`{name}` is observed of a sequence that is {length} long"
    return None


def _listed(values: Iterable[str]) -> str:
    """Some values as an error lists them."""
    if isinstance(values, Numbers) and values.high == LARGEST:
        return f"whole numbers from {values.low} on"
    if isinstance(values, Numbers) and len(values) > _LISTED_MAX:
        return f"{values.low} … {values.high}"
    known = sorted(values, key=_by_size)
    return ", ".join(known[:_LISTED_MAX]) + ", …" * (len(known) > _LISTED_MAX)


def _by_size(value: str) -> tuple[bool, int, str]:
    """Numbers in their order, before names."""
    is_number = value.removeprefix("-").isdigit()
    return not is_number, int(value) if is_number else 0, value
