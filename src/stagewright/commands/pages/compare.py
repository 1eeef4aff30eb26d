"""What differs between two profiles of a machine, as lines that begin with `+`, `-` or `~`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from stagewright.commands.facts.facts import (
    ActionFacts,
    MachineFacts,
    PropertyFacts,
    VariableFacts,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Change:
    """What differs in one thing of a machine: a variable, a step, a promise, or what runs begin with."""

    section: str
    name: str  # "": of what the section says as a whole
    sign: str  # + new, - gone, ~ changed
    gone: tuple[str, ...]
    come: tuple[str, ...]


def differences(old: MachineFacts, new: MachineFacts) -> list[str]:
    """Every difference of meaning, in the order of the definition; none if they say the same."""
    return lines_of_changes(changes(old, new), _in_full)


def changes(old: MachineFacts, new: MachineFacts) -> list[Change]:
    """Every difference of meaning, in the order of the definition."""
    return [
        *_section("variables", old.variables, new.variables, _variable_name, _variable),
        *_section("budgets", old.budgets, new.budgets, lambda b: b[0], _budget),
        *_section("fairness", old.fairness, new.fairness, lambda f: f[0], lambda f: [f[1]]),
        *_whole("initially", old.initially, new.initially),
        *_whole("final", (old.final,) if old.final else (), (new.final,) if new.final else ()),
        *_whole(
            "runs may end anywhere",
            *((f.deadlock_allowed,) if f.deadlock_allowed else () for f in (old, new)),
        ),
        *_section("constraints", old.constraints, new.constraints, _constraint_name, _constraint),
        *_section("actions", old.actions, new.actions, _action_name, _action),
        *_section("properties", old.properties, new.properties, _property_name, _property),
        *_section("known to break", _broken(old), _broken(new), lambda k: k[0], lambda k: [k[1]]),
    ]


def lines_of_changes(
    found: Sequence[Change], lines_of: Callable[[Change], Iterator[str]]
) -> list[str]:
    """The changes as lines under the titles of their sections, with an empty line between sections."""
    lines: list[str] = []
    for title, section in groupby(found, key=lambda change: change.section):
        lines += ["", title] if lines else [title]
        for change in section:
            lines += lines_of(change)
    return lines


def _in_full(change: Change) -> Iterator[str]:
    space = " " * 5 if change.name else " "
    if change.name:
        yield f"{change.sign} {change.name}"
    yield from (f"-{space}{line}" for line in change.gone)
    yield from (f"+{space}{line}" for line in change.come)
    if not change.gone and not change.come and change.sign == "~":
        yield f"~{space}the same in another order"


def _variable_name(variable: VariableFacts) -> str:
    return variable.name


def _variable(variable: VariableFacts) -> list[str]:
    kind = "constant" if variable.constant else "starts as"
    return [f"{variable.sort}, {kind} {variable.initial}"]


def _budget(budget: tuple[str, str, str]) -> list[str]:
    return [f"default {budget[1]}"]


def _constraint_name(constraint: tuple[str, str]) -> str:
    return constraint[0]


def _constraint(constraint: tuple[str, str]) -> list[str]:
    return [constraint[1]]


def _action_name(action: ActionFacts) -> str:
    return action.name


def _action(action: ActionFacts) -> list[str]:
    """Each fact of an action on a line of its own, so that one changed guard shows as one line."""
    lines = [f"takes {action.signature}"] if action.signature != action.name else []
    lines += [f"by {action.actor}"] if action.actor else []
    lines += [action.fairness] if action.fairness else []
    lines += [f"spends {action.budget}"] if action.budget else []
    return [
        *lines,
        *(f"when {r}" for r in action.requirements),
        *(f"then {e}" for e in action.effects),
    ]


def _property_name(prop: PropertyFacts) -> str:
    return prop.name


def _property(prop: PropertyFacts) -> list[str]:
    params = [f"for {prop.signature}"] if prop.signature != prop.name else []
    return [*params, f"{prop.kind}: {prop.condition}"]


def _broken(facts: MachineFacts) -> list[tuple[str, str]]:
    """Each promise that is known to be broken, with the reason."""
    return [(name, why) for names, why in facts.known_violations for name in names.split(", ")]


def _section(
    title: str,
    old: Sequence[T],
    new: Sequence[T],
    name: Callable[[T], str],
    details: Callable[[T], list[str]],
) -> Iterator[Change]:
    before, after = {name(x): details(x) for x in old}, {name(x): details(x) for x in new}
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            yield Change(title, key, "-", tuple(before[key]), ())
        elif key not in before:
            yield Change(title, key, "+", (), tuple(after[key]))
        elif before[key] != after[key]:
            yield _changed(title, key, before[key], after[key])


def _whole(title: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    if old != new:
        yield _changed(title, "", old, new)


def _changed(title: str, name: str, old: Sequence[str], new: Sequence[str]) -> Change:
    gone, come = (x for x in old if x not in new), (x for x in new if x not in old)
    return Change(title, name, "~", tuple(gone), tuple(come))
