"""Members of entities that stand in an order or have a name: what a definition may say of them."""

from __future__ import annotations

from typing import TypeVar

from stagewright.spec.entities import Entity, Notation
from stagewright.spec.errors import EntityError
from stagewright.spec.nodes import BOOL, Apply, Literal, Node, Op
from stagewright.spec.sorts import EntitySort, EnumSort, OptionalSort
from stagewright.spec.source import here
from stagewright.spec.terms.binding import each
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import apply, lift
from stagewright.spec.terms.terms import Maybe, Term

N = TypeVar("N", bound=Entity)


def named_member(kind: type[N], index: int) -> Term[N]:
    """A member that is declared `named()`."""
    return Term(Literal(kind(index), EntitySort(kind), here()))


def first_of(kind: type[N]) -> Term[N]:
    """The first member of an ordered entity."""
    _check_ordered(kind, f"{kind.__name__}.first")
    return named_member(kind, 0)


def last_of(kind: type[N]) -> Term[N]:
    """The last member of an ordered entity."""
    _check_ordered(kind, f"{kind.__name__}.last")
    return Term(Apply(Op.LAST, (), EntitySort(kind), here()))


def _check_ordered(kind: type[Entity], what: str) -> None:
    if not kind.is_ordered:
        raise EntityError(
            f"`{what}`: the members of {kind.__name__} stand in no order",
            where=here(),
            help=f"declare `class {kind.__name__}(Entity, ordered=True)`, or `ring=True`; "
            "one special member is `root = named()` in its body",
        )


def ordered_kind(node: Node, what: str) -> type[Entity]:
    """The ordered entity that a term is a member of.

    Raises:
        DefinitionError: it is of an enum, or of an entity without an order.
    """
    if isinstance(node.sort, EnumSort):
        raise EntityError(
            f"`{what}`: {node.sort} is an enum, whose members stand in no order",
            where=here(),
            help="compare a column of numbers: `x.number_column(lambda m: m.rank)`; or make it an "
            f"entity: `class {node.sort}(Entity, ordered=True)`",
        )
    assert isinstance(node.sort, EntitySort)
    _check_ordered(node.sort.kind, what)
    return node.sort.kind


def compared(op: Op, left: Node, right: object, sign: str) -> Bool:
    """`left < right` or `left <= right` of an ordered entity."""
    ordered_kind(left, f"n {sign} m")
    other = lift(right, left.sort, f"the other side of `{sign}`")
    args = (left, other) if sign.startswith("<") else (other, left)
    return Bool(apply(op, BOOL, *args))


def beside(op: Op, node: Node, word: str) -> Node:
    """The member that stands next to one in a ring."""
    kind = ordered_kind(node, f"n.{word}")
    if not kind.is_ring:
        end = "last" if op is Op.NEXT else "first"
        raise EntityError(
            f"`n.{word}`: {kind.__name__} is ordered but no ring, so the {end} has none",
            where=here(),
            help=f"write `n.{word}_or_none`, which is none there; or declare "
            f"`class {kind.__name__}(Entity, ring=True)`",
        )
    return apply(op, EntitySort(kind), node)


def beside_or_none(op: Op, node: Node, word: str) -> Maybe[Entity]:
    """The member that stands next to one in a row, or none at its end."""
    kind = ordered_kind(node, f"n.{word}")
    if kind.is_ring:
        plain = word.removesuffix("_or_none")
        raise EntityError(
            f"`n.{word}`: {kind.__name__} is a ring, so there always is one",
            where=here(),
            help=f"write `n.{plain}`",
        )
    return Maybe(apply(op, OptionalSort(EntitySort(kind)), node))


NOTATION = Notation(each, first_of, last_of, named_member)
