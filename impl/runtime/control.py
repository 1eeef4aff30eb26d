"""The control variable of a definition: its members are the states of the `transitions` machine.

It is one of the instance, or one of each of its entities (`control="tasks.life"`): then a step moves that
of its first argument of this sort. What an action can start from and lead to is read off its expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from stagewright.impl.runtime.candidates import UNKNOWN, fold
from stagewright.impl.runtime.columns import Column, path_of
from stagewright.impl.runtime.normal import leaves, normal
from stagewright.spec.definition import Action, Definition
from stagewright.spec.errors import InputError
from stagewright.spec.nodes import Apply, Literal, Node, Op, children
from stagewright.spec.sorts import EnumSort
from stagewright.spec.text.suggestions import did_you_mean
from stagewright.spec.values import show

ALWAYS = "always"  # the only state of what has no control variable


@dataclass(frozen=True)
class Edge:
    """One transition of the `transitions` machine; without a target the control state stays."""

    action: str
    source: Enum | str
    target: Enum | None
    one_of_several: bool = False  # the action can lead elsewhere too from here


def control_column(
    definition: Definition, columns: Sequence[Column], name: str | None = None
) -> Column | None:
    """The column called `name`; without a name the enum variable that moves through most members.

    Among equals it is the one that most actions assign, then the one declared first. None if the
    definition has no enum variable of its own.

    Raises:
        InputError: there is no enum of that name, or it is one of pairs of entities.
    """
    enums = [
        c
        for c in columns
        if isinstance(c.sort, EnumSort) and not c.variable.constant and len(c.keys) <= 1
    ]
    if name is None:
        own = [c for c in enums if not c.keys and not c.fields]
        return max(own, key=lambda c: _movement(definition, c), default=None)
    for column in enums:
        if column.name == name:
            return column
    known = [c.name for c in enums]
    hint = did_you_mean(name, known)
    raise InputError(
        f"{definition.name} has no enum variable `{name}` to be its control variable",
        help=f"{hint}known: {', '.join(known) or 'none'}",
    )


def _movement(definition: Definition, column: Column) -> tuple[int, int]:
    """How many members the actions give a variable, and how many actions assign it."""
    assert isinstance(column.sort, EnumSort)
    reached: set[str] = set()
    assigning: set[str] = set()
    for action in definition.actions:
        for assignment in action.assignments:
            path = path_of(assignment.place)
            if path == (column.variable.name, (), ()):
                assigning.add(action.name)
                match assignment.value:
                    case Literal(member):
                        reached.add(show(member))
                    case _:
                        reached.update(m.name for m in column.sort.members)
    return len(reached), len(assigning)


def moved_by(action: Action, control: Column | None) -> tuple[Column | None, int | None]:
    """The control variable that an action moves, and which argument says whose it is; None: always."""
    if control is None or not control.keys:
        return control, None
    places = [i for i, p in enumerate(action.params) if p.sort == control.keys[0]]
    return (control, places[0]) if places else (None, None)


def edges_of(action: Action, control: Column | None) -> Iterator[Edge]:
    """Each member that an action can start from, with each that it can lead to from there."""
    column, position = moved_by(action, control)
    if column is None:
        yield Edge(action.name, ALWAYS, None)
        return
    assert isinstance(column.sort, EnumSort)
    mine = () if position is None else (action.params[position],)
    wanted = (column.variable.name, column.fields, mine)
    conditions = [normal(r.condition) for r in action.requirements]
    found = [p for c in conditions for p in _places(c, wanted)]
    moving = [a for whole in action.assignments for a in leaves(whole)]
    values = [a.value for a in moving if path_of(a.place) == wanted]
    found += [p for v in values for p in _places(v, wanted)]
    place = found[0] if found else None
    for member in column.sort.members:
        if any(fold(c, place, member) is False for c in conditions):
            continue
        if not values:
            yield Edge(action.name, member, None)
            continue
        targets = _led_to(values[0], place, member, column.sort.members)
        for target in targets:
            yield Edge(action.name, member, target, len(targets) > 1)


def _places(node: Node, wanted: tuple[Any, ...]) -> list[Node]:
    if path_of(node) == wanted:
        return [node]
    return [p for c in children(node) for p in _places(c, wanted)]


def _led_to(
    value: Node, place: Node | None, held: Enum, members: tuple[Enum, ...]
) -> tuple[Enum, ...]:
    found = fold(value, place, held)
    if found is not UNKNOWN:
        return (found,)
    if isinstance(value, Apply) and value.op is Op.IF:
        both = (_led_to(v, place, held, members) for v in value.args[1:])
        reached = {m for targets in both for m in targets}
        return tuple(m for m in members if m in reached)
    return members
