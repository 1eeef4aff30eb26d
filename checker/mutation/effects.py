"""Mutants that lose an effect, or what a part does in a system's step; or whose conditional effect happens always."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from stagewright.checker.mutation.mutants import Kind, Mutant, with_action
from stagewright.spec.definition import Action, Assignment, Definition, Requirement
from stagewright.spec.nodes import Apply, Node, Op, Select
from stagewright.spec.sorts import SetSort
from stagewright.spec.words import effect


def lost_effects(definition: Definition, action: Action) -> Iterator[Mutant]:
    """Each effect of an action lost; of a conditional one also each branch taken always."""
    for assignment in action.assignments:
        others = tuple(a for a in action.assignments if a is not assignment)
        lost = replace(action, assignments=others)
        yield _mutant(definition, action, lost, assignment, effect(assignment))
        value = assignment.value
        if not (isinstance(value, Apply) and value.op is Op.IF):
            continue
        _, then, otherwise = value.args
        for branch in (then, otherwise):
            if _stays(assignment.place, branch):
                continue
            always = replace(assignment, value=branch)
            assignments = tuple(always if a is assignment else a for a in action.assignments)
            changed = replace(action, assignments=assignments)
            text = f"{effect(always)}, always"
            yield _mutant(definition, action, changed, assignment, text)


def lost_joins(definition: Definition, action: Action) -> Iterator[Mutant]:
    """What a part of a system does in a step of the system does not happen: the step is the others' alone."""
    said: list[Requirement | Assignment] = [*action.requirements, *action.assignments]
    for part in dict.fromkeys(_first(s.part) for s in said if "." not in action.name):
        if not part:
            continue
        requirements = tuple(r for r in action.requirements if _first(r.part) != part)
        assignments = tuple(a for a in action.assignments if _first(a.part) != part)
        if assignments and len(assignments) < len(action.assignments):
            alone = replace(action, requirements=requirements, assignments=assignments)
            lost = [s for s in said if _first(s.part) == part]
            reasons = {s.equivalent for s in lost}
            yield Mutant(
                Kind.LOSE,
                action.name,
                f"all that `{part}` does in it",
                partial(with_action, definition, action, alone),
                action.where,
                tuple(r for r in reasons if r is not None and len(reasons) == 1),
            )


def _first(part: str) -> str:
    return part.partition(".")[0]


def _stays(place: Node, value: Node) -> bool:
    """Whether assigning this value changes nothing: that effect is the one that is lost."""
    if value == place:
        return True
    within = isinstance(place, Select) and isinstance(place.base.sort, SetSort)
    return (
        within
        and isinstance(place, Select)
        and isinstance(value, Apply)
        and value.op is Op.MEMBER
        and value.args == (place.key, place.base)
    )


def _mutant(
    definition: Definition, old: Action, new: Action, assignment: Assignment, text: str
) -> Mutant:
    reasons = () if assignment.equivalent is None else (assignment.equivalent,)
    return Mutant(
        Kind.LOSE,
        old.name,
        text,
        lambda: with_action(definition, old, new),
        assignment.where or old.where,
        reasons,
        assignment.part,
    )
