"""Many ground expressions as one Python function: every shared part is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stagewright.spec.ground import GroundNode, GroundOp
from stagewright.spec.ground_eval import Ints

Evaluator = Callable[[Ints], tuple[int, ...]]


def compiled(nodes: Sequence[GroundNode], wanted: Sequence[GroundNode]) -> Evaluator:
    """A function from the cells of a state to the values of the `wanted` nodes, booleans as 0 and 1.

    `nodes` are all nodes of the model, children before parents.
    """
    needed = [False] * len(nodes)
    for node in wanted:
        needed[node.id] = True
    for node in reversed(nodes):
        if needed[node.id]:
            for arg in node.args:
                needed[arg.id] = True
    body = [f"    n{n.id} = {_expression(n)}" for n in nodes if needed[n.id]]
    results = "".join(f"n{n.id}, " for n in wanted)
    source = "\n".join(["def evaluate(c):", *body, f"    return ({results})"])
    names: dict[str, Evaluator] = {}
    exec(compile(source, "<conditions of a model>", "exec"), {}, names)  # noqa: S102
    return names["evaluate"]


_INFIX = {
    GroundOp.AND: " & ",
    GroundOp.OR: " | ",
    GroundOp.EQ: " == ",
    GroundOp.LT: " < ",
    GroundOp.LE: " <= ",
    GroundOp.ADD: " + ",
    GroundOp.SUB: " - ",
}


def _expression(node: GroundNode) -> str:
    args = [f"n{a.id}" for a in node.args]
    match node.op:
        case GroundOp.CONST:
            return str(node.value)
        case GroundOp.CELL:
            return f"c[{node.value}]"
        case GroundOp.NOT:
            return f"1 - {args[0]}"
        case GroundOp.IF:
            return f"{args[1]} if {args[0]} else {args[2]}"
        case GroundOp.TABLE:
            return f"{node.table!r}[{args[0]}]"
        case GroundOp.NEXT:
            raise AssertionError("the new state is read outside of a step property")
        case _:
            return _INFIX[node.op].join(args)
