"""That some promise is broken, with as few operations as its products of conditions share.

"No two managers decide differently" is one condition for each pair. All of them together say no more than:
nobody has committed, or nobody has aborted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stagewright.spec.grounding.ground import Builder, GroundNode, GroundOp

Product = frozenset[int]
"""The ids of conditions that hold together."""

_MOST = 2_000  # products: beyond, looking for what they share takes longer than is fair


def any_broken(builder: Builder, conditions: Sequence[GroundNode]) -> GroundNode:
    """That one of the conditions, at least, is false."""
    broken = [builder.not_(condition) for condition in conditions]
    products = {_product(builder, node) for node in broken}
    if len(products) > _MOST:
        return builder.or_(broken)
    return _any_of(builder, products)


def _product(builder: Builder, node: GroundNode) -> Product:
    """The conditions whose conjunction a condition is."""
    if node.op is GroundOp.AND:
        return frozenset(part.id for arg in node.args for part in _parts(builder, arg))
    return frozenset(part.id for part in _parts(builder, node))


def _parts(builder: Builder, node: GroundNode) -> Iterable[GroundNode]:
    if node.op is GroundOp.NOT and node.args[0].op is GroundOp.OR:
        return [builder.not_(arg) for arg in node.args[0].args]
    return [node]


def _any_of(builder: Builder, products: set[Product]) -> GroundNode:
    """The disjunction of products: what most of them share is taken out first."""
    alternatives: dict[int, list[GroundNode]] = {}  # by what is left: the conditions it goes with
    alone: list[GroundNode] = []
    left = products
    while left:
        shared, times = _most_shared(left)
        if times < 2:
            alone += [_all_of(builder, product) for product in sorted(left, key=sorted)]
            break
        inside = {product - {shared} for product in left if shared in product}
        left = {product for product in left if shared not in product}
        rest = _any_of(builder, inside)
        alternatives.setdefault(rest.id, []).append(builder.nodes[shared])
    joined = [
        builder.and_((builder.or_(nodes), builder.nodes[rest]))
        for rest, nodes in alternatives.items()
    ]
    return builder.or_([*joined, *alone])


def _most_shared(products: set[Product]) -> tuple[int, int]:
    """The condition that most products have, of equals the one made first; and how many have it."""
    counts = Counter(part for product in products for part in product)
    if not counts:
        return 0, 0
    shared = min(counts, key=lambda part: (-counts[part], part))
    return shared, counts[shared]


def _all_of(builder: Builder, product: Product) -> GroundNode:
    return builder.and_(builder.nodes[part] for part in sorted(product))
