"""Finds the properties that compare members which the traces number for each entity by itself.

Where the first real name that an entity's trace has becomes `node0`, the `node0` of two entities are two nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Literal, Node, children
from stagewright.spec.sorts import EntitySort, OptionalSort
from stagewright.traces.cross_entity.reduce import AtomNode
from stagewright.traces.events.observability import Recording


def incomparable(atoms: Iterable[AtomNode], recordings: Iterable[Recording]) -> str:
    """Why the values of some atoms of several entities cannot be compared; nothing if they can."""
    numbered = frozenset(name for r in recordings for name in r.numbered)
    named = sorted({name for atom in atoms for name in _named(atom)} & numbered)
    if not named:
        return ""
    sorts = " and ".join(named)
    return (
        f"compares {sorts} of several entities, and the traces number each entity's {sorts} by itself: "
        "in a mapping say which member each real name is in `values`, in place of `members`"
    )


def _named(atom: AtomNode) -> Iterator[str]:
    """The entity sorts of which an atom's value says which member it is; a count of members does not."""
    sort = atom.node.sort
    element = sort.element if isinstance(sort, OptionalSort) else sort
    if isinstance(element, EntitySort):
        yield element.kind.__name__
    for value in (*(v for _, v in atom.values), *_literals(atom.node)):
        if isinstance(value, Entity):
            yield type(value).__name__


def _literals(node: Node) -> Iterator[object]:
    if isinstance(node, Literal):
        yield node.value
    for child in children(node):
        yield from _literals(child)
