"""What a definition declares and never uses; `others`: the same under its other profiles, looked at if need be."""

from __future__ import annotations

from collections.abc import Iterable

from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.definition import Definition
from stagewright.spec.errors import UnusedError
from stagewright.spec.nodes import root_variable
from stagewright.spec.source import here


def check_assigned(definition: Definition, others: Iterable[Definition]) -> None:
    """A variable that no action of any profile assigns is a constant that was not said to be one.

    A part's variables may rest: a system leaves out the part's actions that it has no use for.
    """
    own = [v for v in definition.variables if "." not in v.name]
    assigned = _assigned_in(definition)
    if all(v.constant or v.name in assigned for v in own):
        return  # to look at the other profiles takes as long as all the rest
    for other in others:
        assigned |= _assigned_in(other)
    for variable in own:
        if variable.name not in assigned and not variable.constant:
            raise UnusedError(
                f"variable `{variable.name}` is never assigned by an action",
                where=variable.where or here(),
                help="remove it, or declare it `constant(...)` if runs differ in it but never change it",
            )


def check_spent(
    machine: type[object], definition: Definition, others: Iterable[Definition]
) -> None:
    """A budget that no action of any profile spends bounds nothing; one that a base class declares may rest."""
    own = {n: member for n, member in vars(machine).items() if isinstance(member, BudgetName)}
    spent = {b.name for b in definition.budgets}
    if own.keys() <= spent:
        return
    for other in others:
        spent |= {b.name for b in other.budgets}
    for name, budget in own.items():
        if name not in spent:
            raise UnusedError(
                f"budget `{name}` is spent by no action",
                where=budget.where,
                help=f"write `@action(spends={name})` at the action that it bounds, or remove it",
            )


def _assigned_in(definition: Definition) -> set[str]:
    return {root_variable(a.place) for action in definition.actions for a in action.assignments}
