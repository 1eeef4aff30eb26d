"""What a test names: a machine's class or its definition, at a scope."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.machine import Machine
from stagewright.spec.scope import Scope, scope_of

Sizes = Mapping[str, int]
"""How many members an entity has, by its name: `{"node": 3}`."""
Budgets = Mapping[str, int | None]
"""How often a budget may be spent, by its name; None: without bound."""


def resolved(
    machine: type[Machine] | Definition,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
) -> tuple[Definition, Scope]:
    """The definition and its scope: the default one with some sizes and budgets changed.

    Raises:
        DefinitionError: the definition is wrong, or has no such profile.
        ScopeError: it has no such entity or budget.
    """
    definition = machine if isinstance(machine, Definition) else define(machine, profile)
    return definition, scope_of(definition, sizes, budgets)
