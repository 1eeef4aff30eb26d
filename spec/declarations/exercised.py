"""Where a machine is checked: the scopes that together exercise all of it, and what is checked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.definition import Definition, ExercisedAt
from stagewright.spec.entities import Entity
from stagewright.spec.errors import VariableError
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.source import Source, here
from stagewright.spec.values import FrozenMap

Choice = Mapping[BudgetName | type[Entity], int | None]
"""What differs from the default scope: `{crashes: 1, Node: 3}`."""


@dataclass(frozen=True, eq=False)
class Scopes:
    """A machine's member that says at which scopes it is exercised."""

    choices: tuple[Choice, ...]
    where: Source


def scopes(*choices: Choice) -> Scopes:
    """The scopes at which a machine is checked, each by what differs from the default one.

    `exercised_at = scopes({}, {repairs: 1, migrations: 0}, {Node: 3, crashes: 0})`: together they make
    every action happen and every promise meet what could break it. Small ones are better than a large one.
    """
    where = here()
    for choice in choices:
        check_choice(choice, where)
    return Scopes(choices, where)


def check_choice(choice: Choice, where: Source, said: str = "scopes") -> None:
    """Refuse a scope that names what is neither an entity nor a budget.

    Raises:
        VariableError: it does.
    """
    for thing, number in cast("Mapping[object, object]", choice).items():
        sized = isinstance(thing, type) and issubclass(thing, Entity)
        if not (sized or isinstance(thing, BudgetName)):
            raise VariableError(
                f"{said}(...) is given {thing!r}, which is neither an entity nor a budget",
                where=where,
                help="write `{crashes: 1, Node: 3}`",
            )
        if not (isinstance(number, int) or (number is None and not sized)):
            raise VariableError(
                f"{said}(...) is given {number!r}, which is no number",
                where=where,
                help="write how many there are, or how often it may happen (None: without bound)",
            )


def exercised_at(machine: type[object]) -> tuple[ExercisedAt, ...]:
    """What a machine says; its own member before those of its base classes."""
    for base in machine.__mro__:
        for said in vars(base).values():
            if isinstance(said, Scopes):
                return tuple(named_choice(choice, said.where) for choice in said.choices)
    return ()


def exercising_scopes(definition: Definition) -> tuple[Scope, ...]:
    """The scopes that a definition names, without repetition; if it names none, its default one.

    Beside them those at which its witnesses are sought.
    Budgets that its profile does not have are left out.

    Raises:
        ScopeError: a scope names an entity that the definition does not have, or a number that does not fit.
    """
    own = {b.name for b in definition.budgets}
    found = [
        scope_of(
            definition,
            said.sizes,
            {name: n for name, n in said.budgets.items() if name in own},
        )
        for said in definition.exercised_at
    ]
    sought = [
        scope_of_difference(definition, p.at) for p in definition.properties if p.at is not None
    ]
    return tuple(dict.fromkeys([*(found or [scope_of(definition)]), *sought]))


def scope_of_difference(definition: Definition, at: ExercisedAt) -> Scope:
    """The scope that differs so from the default one; budgets that its profile does not have are left out."""
    own = {b.name for b in definition.budgets}
    budgets = {name: n for name, n in at.budgets.items() if name in own}
    return scope_of(definition, at.sizes, budgets)


def named_choice(choice: Choice, where: Source) -> ExercisedAt:
    """The same by the names of entities and budgets, which these have once their class is made."""
    sizes: dict[str, int] = {}
    budgets: dict[str, int | None] = {}
    for thing, number in choice.items():
        if isinstance(thing, BudgetName):
            budgets[thing.name] = number
        elif number is not None:
            sizes[thing.__name__] = number
    return ExercisedAt(FrozenMap(sizes), FrozenMap(budgets), where)
