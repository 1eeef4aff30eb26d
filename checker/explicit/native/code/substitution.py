"""A condition on old and new state, for one step: what the step assigns stands where the new state did."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.grounding.ground import Builder, GroundNode, GroundOp, GroundStep


class Substitution:
    """Rewrites conditions for one ground step after the other."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._touched: dict[int, int] = {}  # by node: a bit for each cell read of the new state
        self._still = AfterStep(self, builder, {})

    def after(self, step: GroundStep) -> AfterStep:
        """Rewrites for this step; what it does not touch is rewritten once for all steps."""
        return AfterStep(self, self._builder, step.updates, self._still)

    def touched(self, node: GroundNode) -> int:
        """A bit for each cell of the new state that the condition reads."""
        known = self._touched.get(node.id)
        if known is None:
            known = 1 << node.value if node.op is GroundOp.NEXT else 0
            for arg in node.args:
                known |= self.touched(arg)
            self._touched[node.id] = known
        return known


class AfterStep:
    """Rewrites conditions for one ground step; most fold to true where the step touches nothing."""

    def __init__(
        self,
        shared: Substitution,
        builder: Builder,
        updates: Mapping[int, GroundNode],
        still: AfterStep | None = None,
    ) -> None:
        """`still`: rewrites what no update touches."""
        self._shared, self._builder, self._updates, self._still = shared, builder, updates, still
        self._changed = sum(1 << cell for cell in updates)
        self._known: dict[int, GroundNode] = {}

    def of(self, node: GroundNode) -> GroundNode:
        """The condition over the old state alone; right where the step's values stay in bounds."""
        if self._still is not None and not self._shared.touched(node) & self._changed:
            return self._still.of(node)
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
        return b.operation(node.op, args, table=node.table, boolean=node.boolean)
