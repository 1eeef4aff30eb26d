"""Actions: when each can happen, what it does, which may follow, and which must in the end."""

from __future__ import annotations

from stagewright.checker.tla.blocks import (
    WIDTH,
    Block,
    bullets,
    comment,
    filled,
    hanging,
    remark,
)
from stagewright.checker.tla.changing import always_changes
from stagewright.checker.tla.effects import new_value
from stagewright.checker.tla.expressions import Formulas
from stagewright.checker.tla.vocabulary import Vocabulary
from stagewright.spec.declarations.fairness import Assumption, assumptions
from stagewright.spec.definition import Action, Assignment, Definition, Fairness, Requirement
from stagewright.spec.nodes import Bound, root_variable

_WITH_REMARK = 60  # columns up to which a formula has its requirement's name beside it


def called(name: str, params: tuple[Bound, ...], formulas: Formulas) -> str:
    """`learn(n)`: an operator with the action's parameters."""
    text = ", ".join(formulas.bound[p] for p in params)
    return f"{name}({text})" if params else name


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
    # TLC asks them in this order: those before say what is known.
    blocks = [
        formulas.knowing(*(r.condition for r in requirements[:i])).block(g.condition, WIDTH - 5)
        for i, g in enumerate(requirements)
    ]
    short = [len(b[0]) for b in blocks if len(b) == 1 and len(b[0]) <= _WITH_REMARK]
    column = max(short, default=0)
    return [
        _named(_remark(r), block, column) for r, block in zip(requirements, blocks, strict=True)
    ]


def _remark(requirement: Requirement) -> str:
    return f"bound of this check: {requirement.name}" if requirement.bound else requirement.name


def _named(name: str, block: Block, column: int) -> Block:
    if len(block) == 1 and len(block[0]) <= column:
        return (f"{block[0].ljust(column)}  {remark(name)}",)
    return (remark(name), *block)


def _effect(action: Action, guard: str, definition: Definition, formulas: Formulas) -> Block:
    formulas = formulas.knowing(*(r.condition for r in action.requirements))
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
        many = filled("UNCHANGED <<", kept, ">>", WIDTH - 5)
        conjuncts.append(many if len(kept) > 1 else (f"UNCHANGED {kept[0]}",))
    return bullets("/\\", conjuncts)


def following_lines(definition: Definition, names: Vocabulary) -> Block:
    """The relation between a state and the next."""
    ways = [(for_some(names.actions[a.name], a.params, names),) for a in definition.actions]
    nothing = (f"FALSE /\\ UNCHANGED {names.own.variables}",)
    return hanging(f"{names.own.following} ==", bullets("\\/", ways) if ways else nothing, 0)


def may_change_nothing(definition: Definition) -> list[Action]:
    """The actions of which it is not plain that they always change something."""
    return [a for a in definition.actions if not always_changes(a)]


def idle_lines(definition: Definition, names: Vocabulary) -> Block:
    """Whether some step that can be taken changes nothing; no lines if there is plainly none."""
    actions = may_change_nothing(definition)
    ways = [_stays(a, Formulas(names).within(*a.params)) for a in actions]
    if not ways:
        return ()
    said = comment("Some step that can be taken leaves everything as it is.")
    return (*said, *hanging(f"{names.own.idle} ==", bullets("\\/", [(w,) for w in ways]), 0))


def _stays(action: Action, formulas: Formulas) -> str:
    own = formulas.names.own
    step = called(formulas.names.actions[action.name], action.params, formulas)
    choice = f"\\E {formulas.ranges(action.params)} : " if action.params else ""
    return f"{choice}ENABLED ({step} /\\ {own.variables}' = {own.variables})"


def fairness_lines(definition: Definition, names: Vocabulary) -> Block:
    """What is shared by several actions, or by the choices of one; then all that is fair."""
    own = names.own
    conjuncts: list[Block] = []
    shared: list[str] = []
    for assumption in assumptions(definition.actions):
        formulas = Formulas(names).within(*assumption.keys)
        letter = "WF" if assumption.strength is Fairness.WEAK else "SF"
        name = names.actions[assumption.name] if not assumption.shared else ""
        if assumption.shared:
            name = names.fairness[assumption.name]
            shared += [*_any_of(assumption, name, names), ""]
        step = called(name, assumption.keys, formulas)
        for_all = f"\\A {formulas.ranges(assumption.keys)} : " if assumption.keys else ""
        conjuncts.append((f"{for_all}{letter}_{own.variables}({step})",))
    said = comment("What is fair happens in the end; nothing else has to.")
    return (*shared, *said, *hanging(f"{own.fairness} ==", bullets("/\\", conjuncts), 0))


def _any_of(assumption: Assumption, name: str, names: Vocabulary) -> Block:
    r"""`turn(n) == \/ begin(n) \/ \E t \in Task : work(n, t)`: any step of those that share a fairness."""
    keys = Formulas(names).within(*assumption.keys)
    ways: list[Block] = []
    for action, mine in assumption.members:
        formulas = keys
        for key, first in zip(mine, assumption.keys, strict=True):
            formulas = formulas.calling(key, keys.bound[first])
        free = tuple(p for p in action.params if p not in mine)
        formulas = formulas.within(*free)
        choice = f"\\E {formulas.ranges(free)} : " if free else ""
        ways.append((f"{choice}{called(names.actions[action.name], action.params, formulas)}",))
    head = called(name, assumption.keys, keys)
    said = comment("The steps that share a fairness.")
    return (*said, *hanging(f"{head} ==", bullets("\\/", ways), 0))
