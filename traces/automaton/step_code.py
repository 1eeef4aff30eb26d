"""Compiles the ground steps of a model to Python functions, wherever they are needed.

A `Program` is plain data: it can be sent to a Spark worker, which has never seen the definition's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from stagewright.spec.grounding.families import Families, Input
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp, GroundStep

if TYPE_CHECKING:
    from stagewright.spec.values import Value

State = tuple[int, ...]
StepFunction = Callable[[State], State | None]

# operation, argument ids, value, table: the fields of a `GroundNode` that say what it computes
Instruction = tuple[str, tuple[int, ...], int, tuple[int, ...]]


class BeyondBoundsError(Exception):
    """A number leaves its bounds, though the system has none there."""


@dataclass(frozen=True)
class StepCode:
    """One ground step: `guard` and `overflows` are node ids, `updates` the node of each changed cell."""

    action: str
    arguments: tuple[tuple[str, object], ...]  # plain values by parameter
    guard: int
    overflows: int
    updates: tuple[tuple[int, int], ...]
    inputs: tuple[Input, ...] = ()  # of a template
    within: bool = (
        False  # in checks, a guard that says nothing of the system keeps it within its bounds
    )


@dataclass(frozen=True)
class Program:
    """The steps of a model over one list of shared instructions, arguments before their users."""

    instructions: tuple[Instruction, ...]
    steps: Families[StepCode]


def program(model: GroundModel) -> Program:
    """The steps of a ground model as plain data."""
    return Program(
        tuple(_instruction(node) for node in model.builder.nodes),
        _codes(model.steps),
    )


def _codes(steps: Sequence[GroundStep]) -> Families[StepCode]:
    from stagewright.spec.values import plain

    templates = steps.templates if isinstance(steps, Families) else steps
    return Families(
        tuple(
            StepCode(
                step.action.name,
                tuple((name, plain(value)) for name, value in step.arguments),
                step.guard.id,
                step.overflows.id,
                tuple((cell, node.id) for cell, node in step.updates.items()),
                tuple(
                    replace(i, members=tuple(plain(cast("Value", m)) for m in i.members))
                    for i in step.inputs
                ),
                any(r.bound for r in step.action.requirements),
            )
            for step in templates
        )
    )


def compile_step(
    instructions: tuple[Instruction, ...], step: StepCode
) -> Callable[..., State | None]:
    """A function from a state to the state after the step; None where the step is not enabled.

    That of a template has its inputs as further arguments. A step that would assign a value out of its bounds
    leads to no state: it is not enabled either. But where a check alone keeps it within them, it is an error.

    Raises (the function):
        BeyondBoundsError: the step is enabled, and nobody knows the state after it.
    """
    lines: list[str] = []
    known: set[int] = set()
    open_ = frozenset(one.cell for one in step.inputs)
    name, parts, _, _ = instructions[step.guard]
    for part in parts if name == GroundOp.AND.name else (step.guard,):
        # One after the other: most steps are refused by the first ones, which cost least.
        _emit(instructions, [part], known, lines, open_)
        lines.append(f"if not v{part}: return None")
    _emit(instructions, [step.overflows], known, lines, open_)
    lines.append(f"if v{step.overflows}: {'raise Beyond' if step.within else 'return None'}")
    _emit(instructions, [node for _, node in step.updates], known, lines, open_)
    lines.append("n = list(s)")
    lines += [f"n[{cell}] = int(v{node})" for cell, node in step.updates]
    inputs = "".join(f", i{one.cell}" for one in step.inputs)
    source = f"def step(s{inputs}):\n    " + "\n    ".join(lines) + "\n    return tuple(n)\n"
    tables = {f"T{i}": instructions[i][3] for i in known if instructions[i][3]}
    namespace: dict[str, Callable[..., State | None]] = {}
    names = {"int": int, "list": list, "tuple": tuple, "Beyond": BeyondBoundsError}
    exec(source, {"__builtins__": names, **tables}, namespace)  # noqa: S102 - our own text
    return namespace["step"]


def compile_values(
    instructions: tuple[Instruction, ...], wanted: tuple[int, ...]
) -> Callable[[State], tuple[int, ...]]:
    """A function from a state to the values of some instructions."""
    lines: list[str] = []
    known: set[int] = set()
    _emit(instructions, wanted, known, lines)
    values = "".join(f"int(v{node}), " for node in wanted)
    source = "def values(s):\n    " + "\n    ".join([*lines, f"return ({values})"]) + "\n"
    tables = {f"T{i}": instructions[i][3] for i in known if instructions[i][3]}
    namespace: dict[str, Callable[[State], tuple[int, ...]]] = {}
    exec(source, {"__builtins__": {"int": int}, **tables}, namespace)  # noqa: S102 - our own text
    return namespace["values"]


def instructions_of(nodes: Iterable[GroundNode]) -> tuple[Instruction, ...]:
    """The nodes of a builder as plain data."""
    return tuple(_instruction(node) for node in nodes)


def _instruction(node: GroundNode) -> Instruction:
    return node.op.name, tuple(a.id for a in node.args), node.value, node.table


def _emit(
    instructions: tuple[Instruction, ...],
    wanted: Iterable[int],
    known: set[int],
    lines: list[str],
    inputs: Collection[int] = (),
) -> None:
    """Add one line for each node that the wanted ones need and that is not known yet.

    `inputs`: the cells that are arguments of the function, not of the state.
    """
    needed: set[int] = set()
    waiting = list(wanted)
    while waiting:
        node = waiting.pop()
        if node not in known and node not in needed:
            needed.add(node)
            waiting += instructions[node][1]
    for node in sorted(needed):
        name, _, value, _ = instructions[node]
        given = name == GroundOp.CELL.name and value in inputs
        text = f"i{value}" if given else _expression(node, instructions[node])
        lines.append(f"v{node} = {text}")
    known |= needed


# What each operation is in Python, given the names of its arguments.
_TEXTS = {
    GroundOp.NOT: "not {0}",
    GroundOp.EQ: "{0} == {1}",
    GroundOp.LT: "{0} < {1}",
    GroundOp.LE: "{0} <= {1}",
    GroundOp.ADD: "{0} + {1}",
    GroundOp.SUB: "{0} - {1}",
    GroundOp.MUL: "{0} * {1}",
    GroundOp.DIV: "{0} // {1}",
    GroundOp.MOD: "{0} % {1}",
    GroundOp.MIN: "{0} if {0} <= {1} else {1}",
    GroundOp.MAX: "{0} if {0} >= {1} else {1}",
    GroundOp.IF: "{1} if {0} else {2}",
}


def _expression(node: int, instruction: Instruction) -> str:
    name, args, value, _ = instruction
    names = [f"v{a}" for a in args]
    match GroundOp[name]:
        case GroundOp.CONST:
            return str(value)
        case GroundOp.CELL:
            return f"s[{value}]"
        case GroundOp.AND:
            return " and ".join(names)
        case GroundOp.OR:
            return " or ".join(names)
        case GroundOp.TABLE:
            return f"T{node}[{names[0]}]"
        case operation:
            return _TEXTS[operation].format(*names)  # NEXT is not there: a step reads the old state
