"""Which of the reasons that a definition gives are about a requirement or an effect, and which about nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.spec.definition import (
    Assignment,
    Definition,
    Equivalent,
    EquivalentDrop,
    EquivalentHelper,
    EquivalentLoss,
    EquivalentReplacement,
    Reason,
    Requirement,
)
from stagewright.spec.nodes import Field, Node, Select, root_variable


def reasons_of_requirement(
    definition: Definition, requirement: Requirement, *, dropped: bool
) -> Iterator[Reason]:
    """Why no promise minds when a requirement is dropped, or else weakened."""
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentDrop)
            and not (dropped and said.weakened)
            and _is_of(said, requirement)
        ):
            yield said.reason


def reasons_of_assignment(definition: Definition, assignment: Assignment) -> Iterator[Reason]:
    """Why no promise minds when a place stays as it is."""
    for said in definition.equivalents:
        if isinstance(said, EquivalentLoss) and not said.helper and _assigns(said, assignment):
            yield said.reason


def reasons_of_lost_helper(
    definition: Definition, helper: str, lost: Sequence[Assignment]
) -> Iterator[Reason]:
    """Why no promise minds when all that a method assigns stays as it is."""
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentLoss)
            and said.helper == helper
            and any(said.within in assignment.said_in for assignment in lost)
        ):
            yield said.reason


def reasons_of_helper(definition: Definition, helper: str, text: str) -> Iterator[Reason]:
    """Why no promise minds when a helper returns something else."""
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentHelper)
            and said.within == helper
            and _is_of_change(said, text)
        ):
            yield said.reason


def reasons_of_replacement(
    definition: Definition, of: Requirement | Assignment, text: str
) -> Iterator[Reason]:
    """Why no promise minds when a requirement or an effect names something else."""
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentReplacement)
            and said.within in of.said_in
            and _is_of_change(said, text)
        ):
            yield said.reason


def unknown_bodies(versions: Sequence[Definition]) -> Iterator[EquivalentDrop | EquivalentLoss]:
    """What the first definition says of requirements and effects that no version of it has."""
    actions = [action for version in versions for action in version.actions]
    parts: list[Requirement | Assignment] = []
    for action in actions:
        parts += [*action.requirements, *action.assignments]
    running = {name for part in parts for name in part.said_in}
    for said in versions[0].equivalents:
        if said.reason.inherited and not running.intersection(_within(said)):
            continue
        match said:
            case EquivalentDrop():
                known = any(_is_of(said, r) for a in actions for r in a.requirements)
            case EquivalentLoss():
                known = any(_assigns(said, e) for a in actions for e in a.assignments)
            case _:
                continue
        if not known:
            yield said


def unknown_changes(
    definition: Definition, mutants: Sequence[Mutant]
) -> Iterator[EquivalentHelper | EquivalentReplacement]:
    """What is said of helpers and of what is named instead, and of no such mutant."""
    known = {id(reason) for mutant in mutants for reason in mutant.reasons}
    for said in definition.equivalents:
        elsewhere = said.reason.inherited or id(said.reason) in known
        if isinstance(said, EquivalentHelper | EquivalentReplacement) and not elsewhere:
            yield said


def _is_of_change(said: EquivalentHelper | EquivalentReplacement, text: str) -> bool:
    """Whether a change in words is the one that is said to be harmless; a part words it without its prefix."""
    return said.change in (text.replace(said.prefix, "") if said.prefix else text)


def _within(said: Equivalent) -> tuple[str, ...]:
    return (said.within,) if isinstance(said, EquivalentDrop | EquivalentLoss) else ()


def _is_of(said: EquivalentDrop, requirement: Requirement) -> bool:
    of_part = f"{said.requirement} ({requirement.part.rstrip('.')})"
    return said.within in requirement.said_in and requirement.name in (said.requirement, of_part)


def _assigns(said: EquivalentLoss, assignment: Assignment) -> bool:
    """Whether this is what may be lost, or, if all that a method assigns may be, belongs to that."""
    if said.helper:
        return {said.within, said.helper}.issubset(assignment.said_in)
    place = assignment.place
    return said.within in assignment.said_in and (
        root_variable(place) in said.variables or said.field in _fields(place)
    )


def _fields(place: Node) -> Iterator[str]:
    """The fields of records on the way to a place."""
    match place:
        case Select(base, _):
            yield from _fields(base)
        case Field(base, name):
            yield name
            yield from _fields(base)
        case _:
            pass
