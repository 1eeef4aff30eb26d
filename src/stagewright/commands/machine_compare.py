"""What differs between two profiles of a machine, as lines that begin with `+`, `-` or `~`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from stagewright.commands.machine_facts import (
    ActionFacts,
    MachineFacts,
    PropertyFacts,
    VariableFacts,
)

T = TypeVar("T")


def differences(old: MachineFacts, new: MachineFacts) -> list[str]:
    """Every difference of meaning, in the order of the definition; none if they say the same."""
    lines = [
        *_section("variables", old.variables, new.variables, _variable_name, _variable),
        *_section("budgets", old.budgets, new.budgets, lambda b: b[0], _budget),
        *_section("fairness", old.fairness, new.fairness, lambda f: f[0], lambda f: [f[1]]),
        *_plain("initially", old.initially, new.initially),
        *_plain("final", (old.final,) if old.final else (), (new.final,) if new.final else ()),
        *_plain(
            "runs may end anywhere",
            *((f.deadlock_allowed,) if f.deadlock_allowed else () for f in (old, new)),
        ),
        *_section("constraints", old.constraints, new.constraints, _constraint_name, _constraint),
        *_section("actions", old.actions, new.actions, _action_name, _action),
        *_section("promises", old.properties, new.properties, _property_name, _property),
    ]
    return lines[1:] if lines[:1] == [""] else lines


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


def _section(
    title: str,
    old: Sequence[T],
    new: Sequence[T],
    name: Callable[[T], str],
    details: Callable[[T], list[str]],
) -> Iterator[str]:
    before, after = {name(x): details(x) for x in old}, {name(x): details(x) for x in new}
    lines: list[str] = []
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            lines += [f"- {key}", *(f"-     {line}" for line in before[key])]
        elif key not in before:
            lines += [f"+ {key}", *(f"+     {line}" for line in after[key])]
        elif before[key] != after[key]:
            lines += [f"~ {key}", *_changed(before[key], after[key])]
    if lines:
        yield from ("", title, *lines)


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    gone, come = [x for x in old if x not in new], [x for x in new if x not in old]
    yield from (f"-     {line}" for line in gone)
    yield from (f"+     {line}" for line in come)
    if not gone and not come:
        yield "~     the same in another order"


def _plain(title: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    changed = list(_changed(list(old), list(new))) if old != new else []
    if changed:
        yield from ("", title, *(line.replace("     ", " ", 1) for line in changed))
