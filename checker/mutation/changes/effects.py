"""Mutants that lose an effect, or what a step of a system joins of a part; or whose conditional effect happens always."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, part_of, with_action
from stagewright.checker.mutation.changes.reasons import (
    reasons_of_assignment,
    reasons_of_lost_helper,
)
from stagewright.spec.definition import (
    Action,
    Assignment,
    Definition,
    EquivalentWithout,
    Reason,
    Requirement,
)
from stagewright.spec.nodes import Apply, Node, Op, Select
from stagewright.spec.sorts import SetSort
from stagewright.spec.text.words import effect


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
    """A step of a system forgets an action of a part that it joins, with all that this one requires."""
    said: list[Requirement | Assignment] = [*action.requirements, *action.assignments]
    for join in dict.fromkeys(s.join for s in said if s.join):
        requirements = tuple(r for r in action.requirements if r.join != join)
        assignments = tuple(a for a in action.assignments if a.join != join)
        if assignments and len(assignments) < len(action.assignments):
            alone = replace(action, requirements=requirements, assignments=assignments)
            yield Mutant(
                Kind.LOSE,
                action.name,
                f"all of `{join}`",
                partial(with_action, definition, action, alone),
                action.where,
                tuple(_reasons_without(definition, join)),
                part_of(action.name),
            )


def lost_helpers(definition: Definition, action: Action) -> Iterator[Mutant]:
    """All that a method assigns for an action is lost, where it assigns several places and is not all there is."""
    own = (action.name, *(a.join for a in action.assignments))
    said = [name for a in action.assignments for name in a.said_in if ":" in name]
    for method in dict.fromkeys(said):
        lost = [a for a in action.assignments if method in a.said_in]
        short = method.rpartition(".")[2]
        if len(lost) < 2 or len(lost) == len(action.assignments) or short in own:
            continue
        others = tuple(a for a in action.assignments if method not in a.said_in)
        named = tuple(reasons_of_lost_helper(definition, method, lost))
        each = [r for a in lost for r in reasons_of_assignment(definition, a)]
        yield Mutant(
            Kind.LOSE,
            action.name,
            f"all that `{short}` assigns",
            partial(with_action, definition, action, replace(action, assignments=others)),
            action.where,
            named or tuple(dict.fromkeys(each)),
            lost[0].part,
            whole=not named,
        )


def _reasons_without(definition: Definition, join: str) -> Iterator[Reason]:
    for said in definition.equivalents:
        if isinstance(said, EquivalentWithout) and join.rpartition(".")[2] in said.actions:
            yield said.reason


def unknown_joins(definition: Definition) -> Iterator[EquivalentWithout]:
    """What is said of actions that no step joins."""
    said: list[Requirement | Assignment] = []
    for action in definition.actions:
        said += [*action.requirements, *action.assignments]
    joined = {s.join.rpartition(".")[2] for s in said}
    for without in definition.equivalents:
        if isinstance(without, EquivalentWithout) and not joined.issuperset(without.actions):
            yield without


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
    return Mutant(
        Kind.LOSE,
        old.name,
        text,
        lambda: with_action(definition, old, new),
        assignment.where or old.where,
        tuple(reasons_of_assignment(definition, assignment)),
        assignment.part,
    )
