"""What decides on the traces of one machine: its definition at a scope, ground, as an automaton."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.definition import Definition
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.scope import Scope
from stagewright.traces.automaton.nfa import Automaton


@dataclass(frozen=True)
class Evaluator:
    """Everything that evaluates the traces of one machine."""

    definition: Definition
    scope: Scope
    model: GroundModel
    automaton: Automaton

    def __str__(self) -> str:
        """Name and profile, and the scope, if there is anything that has one."""
        return self.of_profile(self.definition.profile)

    def of_profile(self, profile: str) -> str:
        """The same with a text in place of the profile."""
        profile = f" ({profile})" if profile else ""
        scope = f", {self.scope}" if self.scope.sizes or self.scope.budgets else ""
        return f"{self.definition.name}{profile}{scope}"
