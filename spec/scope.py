"""How large a check is: the number of each entity, and the budgets of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from stagewright.spec.definition import Action, Assignment, Definition, Kept, Requirement, Variable
from stagewright.spec.derived.accepting import spelled_out
from stagewright.spec.entities import Entity
from stagewright.spec.errors import ScopeError, did_you_mean
from stagewright.spec.nodes import BOOL, Apply, Literal, Op, Read, root_variable, variables_in
from stagewright.spec.sorts import IntSort
from stagewright.spec.values import FrozenMap

N = TypeVar("N", bound=Entity)
BUDGET_PREFIX = "budget."
MAX_SIZE = 10_000  # of an entity: the ground form has a cell and steps for each
MAX_BUDGET = 10_000  # a counter up to it is part of every state


@dataclass(frozen=True)
class Scope:
    """`sizes`: how many of each entity. `budgets`: how often each budget may be spent (None: no bound)."""

    sizes: FrozenMap[type[Entity], int]
    budgets: FrozenMap[str, int | None]

    def __str__(self) -> str:
        parts = [f"{kind.__name__}={n}" for kind, n in self.sizes.items()]
        parts += [f"{name}={'any' if n is None else n}" for name, n in self.budgets.items()]
        return ", ".join(parts) or "no entities"


def scope_of(
    definition: Definition,
    sizes: Mapping[str, int] | Mapping[type[N], int] | None = None,
    budgets: Mapping[str, int | None] | None = None,
) -> Scope:
    """The definition's default scope, with some sizes (by entity or its name, in any case) and budgets changed.

    Raises:
        ScopeError: an unknown entity or budget, a size below 1 or a budget below 0, or far too large.
    """
    chosen = {kind: kind.default_scope for kind in definition.entities}
    names = {kind.__name__.lower(): kind for kind in definition.entities}
    for wanted, size in (sizes or {}).items():
        name = wanted if isinstance(wanted, str) else wanted.__name__
        if name.lower() not in names:
            raise _unknown("entity", name, [k.__name__ for k in chosen], definition.name)
        if size < 1:
            raise ScopeError(
                f"{name}={size}: a scope needs at least one {name}", help=f"write {name}=1 or more"
            )
        if size < len(known := names[name.lower()].member_names):
            raise ScopeError(
                f"{name}={size}: {len(known)} members have names: {', '.join(known)}",
                help=f"write {name}={len(known)} or more",
            )
        if size > MAX_SIZE:
            raise ScopeError(
                f"{name}={size}: a scope has at most {MAX_SIZE:,} of an entity",
                help="choose a smaller number: what goes wrong shows with a few",
            )
        chosen[names[name.lower()]] = size
    spend = {b.name: b.default for b in definition.budgets}
    for name, limit in (budgets or {}).items():
        if name not in spend:
            raise _unknown("budget", name, list(spend), definition.name)
        if limit is not None and limit < 0:
            raise ScopeError(
                f"{name}={limit}: a budget cannot be negative",
                help=f"write {name}=0 to switch it off",
            )
        if limit is not None and limit > MAX_BUDGET:
            raise ScopeError(
                f"{name}={limit}: a budget is at most {MAX_BUDGET:,}",
                help=f"write {name}=any for no bound",
            )
        spend[name] = limit
    return Scope(FrozenMap(chosen), FrozenMap(spend))


def without_budgets(definition: Definition) -> Scope:
    """The definition's default sizes, with every budget without bound."""
    return scope_of(definition, budgets={b.name: None for b in definition.budgets})


def _unknown(what: str, name: str, known: list[str], machine: str) -> ScopeError:
    hint = (
        f"{did_you_mean(name, known)}known: {', '.join(known)}"
        if known
        else f"it has no {what}: leave this out"
    )
    return ScopeError(f"{machine} has no {what} named `{name}`", help=hint)


def within_budgets(definition: Definition, scope: Scope) -> Definition:
    """The definition with its budgets spelled out: a counter each, and actions without budget removed.

    What accepts an action is spelled out, too, before: as the invariant that it is, so that no budget refuses.
    """
    definition = spelled_out(definition)
    if not definition.budgets:
        return definition  # has none, or has them spelled out already
    counters: list[Variable] = []
    for budget in definition.budgets:
        limit = scope.budgets[budget.name]
        if limit:
            name = BUDGET_PREFIX + budget.name
            counters.append(Variable(name, IntSort(0, limit), limit, doc=f"{budget.name} left"))
    actions = [a for a in definition.actions if a.budget is None or scope.budgets[a.budget] != 0]
    spent = [
        a if a.budget is None or scope.budgets[a.budget] is None else _spending(a, scope)
        for a in actions
    ]
    return replace(
        definition, variables=(*definition.variables, *counters), actions=tuple(spent), budgets=()
    )


def living(definition: Definition) -> Definition:
    """The definition as a running system follows it: without bounds of a check, and without history."""
    asked = {name for c in definition.initially for name in variables_in(c)}
    history = {
        v.name for v in definition.variables if v.kept is Kept.HISTORY and v.name not in asked
    }
    actions = tuple(
        replace(
            a,
            requirements=tuple(r for r in a.requirements if not r.bound),
            assignments=tuple(s for s in a.assignments if root_variable(s.place) not in history),
        )
        for a in definition.actions
    )
    variables = tuple(v for v in definition.variables if v.name not in history)
    return replace(definition, actions=actions, variables=variables)


def _spending(action: Action, scope: Scope) -> Action:
    assert action.budget is not None
    limit = scope.budgets[action.budget]
    assert limit is not None
    left = Read(BUDGET_PREFIX + action.budget, IntSort(0, limit))
    some_left = Apply(Op.LT, (Literal(0, IntSort(0, 0)), left), BOOL)
    fewer = Apply(Op.SUB, (left, Literal(1, IntSort(1, 1))), IntSort(-1, limit - 1))
    return replace(
        action,
        requirements=(
            *action.requirements,
            Requirement(f"{action.budget} left", some_left, action.where),
        ),
        assignments=(*action.assignments, Assignment(left, fewer, (), action.where)),
    )
