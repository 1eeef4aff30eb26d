"""Mutants in which an action never happens.

What an operator or a client asks for must be possible, and so must each decision that a coordinator may take: an `@accepts`,
a `@sometimes`, a goal or liveness notices. A fault need not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, part_of, with_action
from stagewright.spec.definition import Action, Definition, EquivalentDisabled, Reason, Requirement
from stagewright.spec.nodes import FALSE
from stagewright.spec.source import here

_TEXT = "it is never enabled"


def disabled(definition: Definition) -> Iterator[Mutant]:
    """Each action refused always."""
    for action in definition.actions:
        never = Requirement(_TEXT, FALSE, action.where)
        changed = replace(action, requirements=(*action.requirements, never))
        yield Mutant(
            Kind.DISABLE,
            action.name,
            _TEXT,
            partial(with_action, definition, action, changed),
            action.where,
            tuple(reasons_never(definition, action)),
            part_of(action.name),
        )


def reasons_never(definition: Definition, action: Action) -> Iterator[Reason]:
    """Why it may never happen: as the machine says, or since it is a fault, or does not happen at its scopes."""
    for said in definition.equivalents:
        if isinstance(said, EquivalentDisabled) and said.allows(action.name):
            yield said.reason
    yield from reasons_of_fault(definition, action)
    for idle in definition.unexercised or ():
        if idle.name == action.name:
            yield replace(idle.reason, inherited=True)


def reasons_of_fault(definition: Definition, action: Action) -> Iterator[Reason]:
    """Of an action that spends a budget of faults: that it is one."""
    for budget in definition.budgets:
        if budget.of_faults and action.budget == budget.name:
            yield Reason("it is a fault", action.where or here(), inherited=True)


def unknown_actions(versions: Sequence[Definition]) -> Iterator[EquivalentDisabled]:
    """What the first definition says of actions that no version of it has."""
    known = {action.name for version in versions for action in version.actions}
    for said in versions[0].equivalents:
        if not isinstance(said, EquivalentDisabled) or said.reason.inherited:
            continue
        if not known.issuperset(said.actions):
            yield said
