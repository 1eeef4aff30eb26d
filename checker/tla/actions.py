"""Actions: when each can happen, what it does, which may follow, and which must in the end."""

from __future__ import annotations

from stagewright.checker.tla.blocks import (
    WIDTH,
    Block,
    bullets,
    comment,
    hanging,
)
from stagewright.checker.tla.effects import new_value
from stagewright.checker.tla.expressions import Formulas
from stagewright.checker.tla.vocabulary import Vocabulary
from stagewright.spec.definition import Action, Assignment, Definition, Fairness, Requirement
from stagewright.spec.nodes import Bound, root_variable

_WITH_REMARK = 60  # columns up to which a formula has its requirement's name beside it


def called(name: str, params: tuple[Bound, ...], formulas: Formulas) -> str:
    """`learn(n)`: an operator with the action's parameters."""
    told = ", ".join(formulas.bound[p] for p in params)
    return f"{name}({told})" if params else name


def for_some(name: str, params: tuple[Bound, ...], names: Vocabulary) -> str:
    r"""`\E n \in Node : learn(n)`."""
    formulas = Formulas(names).within(*params)
    choice = f"\\E {formulas.ranges(params)} : " if params else ""
    return f"{choice}{called(name, params, formulas)}"


def action_lines(action: Action, definition: Definition, names: Vocabulary) -> Block:
    """The action's guard, then the action."""
    formulas = Formulas(names).within(*action.params)
    guard = called(names.guards[action.name], action.params, formulas)
    step = called(names.actions[action.name], action.params, formulas)
    required = _required(action.requirements, formulas)
    return (
        *_about(action),
        *hanging(f"{guard} ==", bullets("/\\", required) if required else ("TRUE",), 0),
        "",
        *hanging(f"{step} ==", _effect(action, guard, definition, formulas), 0),
    )


def _about(action: Action) -> Block:
    who = f"{action.actor.name}: " if action.actor is not None else ""
    return comment(f"{who}{action.doc}")


def _required(requirements: tuple[Requirement, ...], formulas: Formulas) -> list[Block]:
    """The guards with their names: beside them where there is room, else above."""
    blocks = [formulas.block(r.condition, WIDTH - 5) for r in requirements]
    short = [len(b[0]) for b in blocks if len(b) == 1 and len(b[0]) <= _WITH_REMARK]
    column = max(short, default=0)
    return [_named(r.name, block, column) for r, block in zip(requirements, blocks, strict=True)]


def _named(name: str, block: Block, column: int) -> Block:
    remark = comment(" ".join(name.split()))
    if not remark:
        return block
    if len(block) == 1 and len(block[0]) <= column:
        return (f"{block[0].ljust(column)}  {remark[0]}",)
    return (*remark, *block)


def _effect(action: Action, guard: str, definition: Definition, formulas: Formulas) -> Block:
    by_variable: dict[str, list[Assignment]] = {}
    for assignment in action.assignments:
        by_variable.setdefault(root_variable(assignment.place), []).append(assignment)
    conjuncts: list[Block] = [(guard,)]
    kept: list[str] = []
    for variable in definition.variables:
        name = formulas.names.variables[variable.name]
        if (assigned := by_variable.get(variable.name)) is None:
            kept.append(name)
            continue
        value = new_value(variable.name, variable.sort, assigned, formulas, WIDTH - 9)
        conjuncts.append(hanging(f"{name}' =", value, WIDTH - 5))
    if kept:
        conjuncts.append((f"UNCHANGED {_tuple(kept)}",))
    return bullets("/\\", conjuncts)


def _tuple(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"<<{', '.join(names)}>>"


def following_lines(definition: Definition, names: Vocabulary) -> Block:
    """The relation between a state and the next."""
    ways = [(for_some(names.actions[a.name], a.params, names),) for a in definition.actions]
    nothing = (f"FALSE /\\ UNCHANGED {names.own.variables}",)
    return hanging(f"{names.own.following} ==", bullets("\\/", ways) if ways else nothing, 0)


def fairness_lines(definition: Definition, names: Vocabulary) -> Block:
    """A run goes on as long as it can, and fair actions get their turn, each for every parameter.

    A strongly fair step that may change nothing counts as taken where it would.
    """
    own = names.own
    on = f"WF_{own.variables}({own.following} /\\ ~{own.idle})"
    conjuncts: list[Block] = [(on,)]
    for action in definition.actions:
        if action.fairness is Fairness.NONE:
            continue
        formulas = Formulas(names).within(*action.params)
        step = called(names.actions[action.name], action.params, formulas)
        told = f"WF_{own.variables}({step})"
        if action.fairness is Fairness.STRONG:
            idle = f"{step} /\\ {own.variables}' = {own.variables}"
            told = f"(SF_{own.variables}({step}) \\/ []<>(ENABLED ({idle})))"
        for_all = f"\\A {formulas.ranges(action.params)} : " if action.params else ""
        conjuncts.append((f"{for_all}{told}",))
    said = comment("A run goes on while it can, and what is fair happens in the end.")
    return (*said, *hanging(f"{own.fairness} ==", bullets("/\\", conjuncts), 0))
