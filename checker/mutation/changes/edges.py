"""Mutants with a step more: for each pair of members between which a variable takes none, one is added.

The steps of a variable are those that a definition writes as such (`@stage.step(source, target)`): the
requirement and the assignment then were written in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import cast

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, part_of
from stagewright.spec.definition import (
    Action,
    Assignment,
    Definition,
    EquivalentStep,
    Reason,
    Requirement,
)
from stagewright.spec.nodes import BOOL, Apply, Bound, Literal, Node, Op, bounds_in, root_variable
from stagewright.spec.sorts import EnumSort
from stagewright.spec.terms.tracing import place_name
from stagewright.spec.text.words import against_literal, alternatives


@dataclass
class Steps:
    """The steps of one variable: the place as its first action writes it, and pairs of members."""

    place: Node
    action: Action
    pairs: set[tuple[Enum, Enum]] = field(default_factory=set[tuple[Enum, Enum]])


def added_edges(definition: Definition) -> Iterator[Mutant]:
    """One mutant for each missing edge."""
    for variable, steps in steps_of(definition).items():
        members = cast("EnumSort", steps.place.sort).members
        for source in members:
            for target in members:
                if source is not target and (source, target) not in steps.pairs:
                    yield _edge(definition, variable, steps, source, target)


def steps_of(definition: Definition) -> Mapping[str, Steps]:
    """The steps that the actions take, by variable."""
    found: dict[str, Steps] = {}
    for action in definition.actions:
        for assignment in action.assignments:
            value, place = assignment.value, assignment.place
            if not (isinstance(value, Literal) and isinstance(place.sort, EnumSort)):
                continue
            for guard in action.requirements:
                if guard.where is None or guard.where != assignment.where:
                    continue
                steps = found.setdefault(root_variable(place), Steps(place, action))
                target = cast("Enum", value.value)
                steps.pairs |= {(source, target) for source in _sources(guard.condition, place)}
    return found


def unknown_steps(definition: Definition) -> Iterator[EquivalentStep]:
    """What is said to be harmless and cannot be added: it is there already, or no such variable steps."""
    known = steps_of(definition)
    for said in definition.equivalents:
        if isinstance(said, EquivalentStep):
            steps = known.get(said.variable)
            pairs = {(a, b) for a in said.sources for b in said.targets if a is not b}
            if steps is None or not pairs - steps.pairs:
                yield said


def _sources(condition: Node, place: Node) -> Iterator[Enum]:
    listed = alternatives(condition)
    if listed is not None and listed[0] == place:
        yield from (cast("Enum", value) for value in listed[1])
    pair = against_literal(condition)
    if pair is not None and pair[0] == place:
        yield cast("Enum", pair[1].value)


def _edge(
    definition: Definition, variable: str, steps: Steps, source: Enum, target: Enum
) -> Mutant:
    place, sort = steps.place, steps.place.sort
    name = f"{place_name(place)}: {source.name} → {target.name}"
    at = Apply(Op.EQ, (place, Literal(source, sort)), BOOL)
    keys = tuple(sorted(bounds_in(place), key=lambda b: b.serial))
    assert all(isinstance(key, Bound) for key in keys)
    action = Action(
        name,
        keys,
        (Requirement(f"{variable} is {source.name}", at),),
        (Assignment(place, Literal(target, sort)),),
        "Added by mutation: no such step is in the definition.",
        actor=steps.action.actor,
        where=steps.action.where,
    )
    return Mutant(
        Kind.EDGE,
        "",
        name,
        lambda: replace(definition, actions=(*definition.actions, action)),
        definition.variable(variable).where,
        tuple(_reasons(definition, variable, source, target)),
        part_of(variable),
    )


def _reasons(definition: Definition, variable: str, source: Enum, target: Enum) -> Iterator[Reason]:
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentStep)
            and said.variable == variable
            and source in said.sources
            and target in said.targets
        ):
            yield said.reason
