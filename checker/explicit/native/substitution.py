"""A condition on old and new state, for one step: what the step assigns stands where the new state did."""

from __future__ import annotations

from typing import assert_never

from stagewright.spec.ground import Builder, GroundNode, GroundOp, GroundStep


class AfterStep:
    """Rewrites conditions for one ground step; most fold to true where the step touches nothing."""

    def __init__(self, builder: Builder, step: GroundStep) -> None:
        self._builder, self._updates = builder, step.updates
        self._known: dict[int, GroundNode] = {}

    def of(self, node: GroundNode) -> GroundNode:
        """The condition over the old state alone; right where the step's values stay in bounds."""
        if node.id not in self._known:
            self._known[node.id] = self._rewritten(node)
        return self._known[node.id]

    def _rewritten(self, node: GroundNode) -> GroundNode:
        b = self._builder
        match node.op:
            case GroundOp.CONST | GroundOp.CELL:
                return node
            case GroundOp.NEXT:
                update = self._updates.get(node.value)
                return b.cell(node.value) if update is None else update
            case _:
                args = [self.of(arg) for arg in node.args]
        if all(new is old for new, old in zip(args, node.args, strict=True)):
            return node
        match node.op:
            case GroundOp.NOT:
                return b.not_(args[0])
            case GroundOp.AND:
                return b.and_(args)
            case GroundOp.OR:
                return b.or_(args)
            case GroundOp.EQ:
                return b.eq(*args)
            case GroundOp.LT:
                return b.lt(*args)
            case GroundOp.LE:
                return b.le(*args)
            case GroundOp.ADD:
                return b.add(*args)
            case GroundOp.SUB:
                return b.sub(*args)
            case GroundOp.IF:
                return b.if_(*args)
            case GroundOp.TABLE:
                return b.table(node.table, args[0], boolean=node.boolean)
            case _:
                assert_never(node.op)
