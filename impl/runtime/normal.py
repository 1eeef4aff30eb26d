"""Expressions about leaves alone: records and maps are compared and assigned leaf by leaf.

What is left reads single leaves; a choice between records or maps is a choice between their leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from stagewright.spec.definition import Assignment
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Column,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Select,
    conjunction,
)
from stagewright.spec.sorts import MapSort, RecordSort, SetSort
from stagewright.spec.values import FrozenMap

_SERIALS = itertools.count(1_000_000)  # beyond those of any body


def normal(node: Node) -> Node:
    """An equal expression that reads leaves, and compares scalars and sets only."""
    match node:
        case Apply(Op.EQ, (left, right)) if isinstance(left.sort, RecordSort | MapSort):
            return normal(_equal(left, right))
        case Apply(_, args):
            return replace(node, args=tuple(map(normal, args)))
        case Field(base, name):
            return _field(normal(base), name, node)
        case Select(base, key):
            return _select(normal(base), normal(key), node)
        case Column(_, index):
            return replace(node, index=normal(index))
        case Quantified(_, _, body):
            return replace(node, body=normal(body))
        case _:
            return node


def leaves(assignment: Assignment) -> Iterator[Assignment]:
    """The same as assignments of single leaves: a map is assigned for each of its keys."""
    place, value = assignment.place, assignment.value
    match place.sort:
        case RecordSort(_, fields):
            for name, sort in fields:
                part = replace(
                    assignment, place=Field(place, name, sort), value=Field(value, name, sort)
                )
                yield from leaves(part)
        case MapSort(key, inner):
            one = Bound("key", key, next(_SERIALS))
            part = replace(
                assignment,
                place=Select(place, one, inner),
                value=Select(value, one, inner),
                binders=(*assignment.binders, one),
            )
            yield from leaves(part)
        case _:
            if isinstance(place, Select) and isinstance(place.base.sort, SetSort):
                # A member of a set: the set itself is the leaf.
                place = replace(place, base=normal(place.base), key=normal(place.key))
            else:
                place = normal(place)
            yield replace(assignment, place=place, value=normal(value))


def _equal(left: Node, right: Node) -> Node:
    match left.sort:
        case RecordSort(_, fields):
            parts: list[Node] = [
                Apply(Op.EQ, (Field(left, name, sort), Field(right, name, sort)), BOOL)
                for name, sort in fields
            ]
            return conjunction(parts)
        case MapSort(key, value):
            one = Bound("key", key, next(_SERIALS))
            body = Apply(Op.EQ, (Select(left, one, value), Select(right, one, value)), BOOL)
            return Quantified(Quantity.EVERY, one, body, BOOL)
        case _:
            raise AssertionError(f"{left.sort} has no parts")


def _field(base: Node, name: str, node: Field) -> Node:
    match base:
        case Apply(Op.IF, (condition, then, otherwise)):
            chosen = _field(then, name, node), _field(otherwise, name, node)
            return Apply(Op.IF, (condition, *chosen), node.sort)
        case Literal(FrozenMap() as value):
            return Literal(value[name], node.sort)
        case Apply(Op.RECORD, args, RecordSort(_, fields)):
            return args[[n for n, _ in fields].index(name)]
        case _:
            return replace(node, base=base)


def _select(base: Node, key: Node, node: Select) -> Node:
    match base:
        case Apply(Op.IF, (condition, then, otherwise)):
            chosen = _select(then, key, node), _select(otherwise, key, node)
            return Apply(Op.IF, (condition, *chosen), node.sort)
        case _:
            return replace(node, base=base, key=key)
