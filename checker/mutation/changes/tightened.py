"""Mutants that ask for more: an action is locked in a state, or waits for others.

What may never happen at all may be refused anywhere. Else, what such a mutant refuses wrongly is noticed where something is
to happen: by `sometimes`, `accepts`, a goal or liveness. Many machines promise nothing of the kind, so that these survivors
are counted by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import partial

from stagewright.checker.mutation.changes.disabled import reasons_never
from stagewright.checker.mutation.changes.edges import Steps, steps_of
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, part_of, with_action
from stagewright.spec.definition import Action, AnyValue, Definition, Requirement
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Select,
    bounds_in,
    free_bounds,
    is_place,
)
from stagewright.spec.sorts import EntitySort, EnumSort
from stagewright.spec.text.words import words

_OTHER = 1 << 21  # the serial of the other member, apart from all that a definition binds


def tightened(definition: Definition) -> Iterator[Mutant]:
    """Each action locked in a state, serialised, or asking for what its neighbour does."""
    steps = steps_of(definition)
    for number, action in enumerate(definition.actions):
        for variable, of in steps.items():
            place = _place(of, action)
            if place is not None:
                yield from _locked(definition, action, place)
                yield from _serialised(definition, action, variable, place)
        for other in definition.actions[max(0, number - 1) : number + 2]:
            if other is not action:
                yield from _one_more(definition, action, other)


def _locked(definition: Definition, action: Action, place: Node) -> Iterator[Mutant]:
    """Not in one state of a variable that takes steps."""
    assert isinstance(place.sort, EnumSort)
    for member in place.sort.members:
        at = Apply(Op.EQ, (place, Literal(member, place.sort)), BOOL)
        not_there: Node = Apply(Op.NOT, (at,), BOOL)
        yield _mutant(definition, action, f"not while {words(at)}", not_there)


def _serialised(
    definition: Definition, action: Action, variable: str, place: Node
) -> Iterator[Mutant]:
    """Not while another member is anywhere but where it begins."""
    initial = definition.variable(variable).initial
    if not isinstance(place, Select) or not isinstance(place.key, Bound):
        return
    if isinstance(initial, AnyValue) or not isinstance(initial, Enum):
        return
    if not isinstance(place.key.sort, EntitySort):
        return
    other = Bound("another", place.key.sort, _OTHER)
    itself = Apply(Op.EQ, (other, place.key), BOOL)
    rests = Apply(Op.EQ, (replace(place, key=other), Literal(initial, place.sort)), BOOL)
    alone = Quantified(Quantity.EVERY, other, Apply(Op.OR, (itself, rests), BOOL), BOOL)
    yield _mutant(definition, action, f"only while {words(alone)}", alone)


def _one_more(definition: Definition, action: Action, other: Action) -> Iterator[Mutant]:
    """One requirement of the action before it, or after it, too."""
    mine = {(p.name, p.sort): p for p in action.params}
    own = {r.condition for r in action.requirements}
    for guard in other.requirements:
        free = free_bounds(guard.condition)
        known: Mapping[Bound, Bound | None] = {b: mine.get((b.name, b.sort)) for b in free}
        if any(param != bound for bound, param in known.items()) or guard.condition in own:
            continue
        text = f"also, as {other.name}, {guard.name}"
        yield _mutant(definition, action, text, guard.condition)


def _place(steps: Steps, action: Action) -> Node | None:
    """The place of a variable that takes steps, for an action's own parameter of the key's sort."""
    place = steps.place
    if not bounds_in(place):
        return place if isinstance(place.sort, EnumSort) else None
    if not (isinstance(place, Select) and isinstance(place.key, Bound) and is_place(place)):
        return None
    mine = [p for p in action.params if p.sort == place.key.sort]
    if bounds_in(place.base) or not mine:
        return None
    return replace(place, key=mine[0])


def _mutant(definition: Definition, action: Action, text: str, condition: Node) -> Mutant:
    more = Requirement(text, condition, action.where)
    changed = replace(action, requirements=(*action.requirements, more))
    return Mutant(
        Kind.TIGHTEN,
        action.name,
        text,
        partial(with_action, definition, action, changed),
        action.where,
        tuple(reasons_never(definition, action)),
        part_of(action.name),
    )
