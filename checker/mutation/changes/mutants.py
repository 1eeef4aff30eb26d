"""What a mutant is: a definition with one thing changed; and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.spec.definition import Action, CheckedAlone, Definition, Reason
from stagewright.spec.source import Source

if TYPE_CHECKING:
    from stagewright.spec.machine import Machine


@dataclass(frozen=True)
class Mutant:
    """One change of a definition. `made` makes the changed definition, which may be refused."""

    kind: Kind
    action: str  # that was changed or added; empty for a table
    text: str  # the change in words: "requires no longer: barrier done"
    made: Callable[[], Definition] = field(compare=False, repr=False)
    where: Source | None = field(default=None, compare=False)
    reasons: tuple[Reason, ...] = field(default=(), compare=False)  # why it may survive
    # of a system, that says what was changed: "tablet."
    part: str = field(default="", compare=False)
    whole: bool = field(default=False, compare=False)  # several places: no reason is of all of them

    @property
    def id(self) -> str:
        """The same text for the same change, as a list of mutants is filtered and compared by."""
        return " / ".join(part for part in (self.kind.value, self.action, self.text) if part)


def all_mutants(
    definition: Definition,
    machine: type[Machine] | None = None,
    afresh: Callable[[], Definition] | None = None,
) -> list[Mutant]:
    """Every mutant of a definition, in a fixed order.

    `machine`: the class that it is of; without it, tables and helpers stay as they are. `afresh` traces it again after
    one of them has changed, as the definition was made of it; by default as its profile has it.
    """
    from stagewright.checker.mutation.changes.columns import swapped_columns
    from stagewright.checker.mutation.changes.disabled import disabled
    from stagewright.checker.mutation.changes.edges import added_edges
    from stagewright.checker.mutation.changes.effects import lost_effects, lost_helpers, lost_joins
    from stagewright.checker.mutation.changes.replaced import replacements
    from stagewright.checker.mutation.changes.requirements import changed_requirements
    from stagewright.checker.mutation.changes.shared_methods import changed_helpers
    from stagewright.checker.mutation.changes.tightened import tightened
    from stagewright.spec.define import defined_afresh

    found: list[Mutant] = []
    for action in definition.actions:
        found.extend(changed_requirements(definition, action))
        found.extend(lost_effects(definition, action))
        found.extend(lost_joins(definition, action))
        found.extend(lost_helpers(definition, action))
        found.extend(replacements(definition, action))
    if machine is not None:
        again = afresh or partial(defined_afresh, machine, definition.profile)
        found.extend(swapped_columns(definition, again))
        found.extend(changed_helpers(definition, machine, again))
    found.extend(added_edges(definition))
    found.extend(disabled(definition))
    found.extend(tightened(definition))
    return found


def evaluated_here(definition: Definition, mutants: Sequence[Mutant]) -> tuple[Mutant, ...]:
    """Those of a system that are not of a part that is evaluated alone."""
    elsewhere = tuple(alone.part for alone in definition.checked_alone)
    return tuple(mutant for mutant in mutants if not mutant.part.startswith(elsewhere))


def part_of(name: str) -> str:
    """The part of a system whose member this is; empty for one of its own."""
    path, dot, _ = name.rpartition(".")
    return path + dot


def owner_of(parts: Collection[str], alone: Sequence[CheckedAlone]) -> str:
    """Whose a column or a method is: the system's own, if it uses it itself; else that of a part that does."""
    elsewhere = tuple(other.part for other in alone)
    here = {part for part in parts if not part.startswith(elsewhere)}
    return min(here or parts)


def with_action(definition: Definition, old: Action, new: Action) -> Definition:
    """The definition with one action replaced."""
    actions = tuple(new if action is old else action for action in definition.actions)
    return replace(definition, actions=actions)


def changed_actions(
    original: Definition, mutant: Definition
) -> Iterator[tuple[Action | None, Action | None]]:
    """The actions that differ, before and after; None where there is none."""
    before = {action.name: action for action in original.actions}
    after = {action.name: action for action in mutant.actions}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old is not new and old != new:
            yield old, new
