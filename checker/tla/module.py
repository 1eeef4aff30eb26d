"""A definition at a scope as a module of TLA+ and the configuration with which TLC checks it.

Translated from the definition as it was written, not from its ground form: actions, requirements and
promises keep their names and read alike. Entity sorts are sets of model values, maps are functions,
records are records, enum members are strings and their columns records over them; an optional value
may be the model value NONE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from stagewright.checker.tla.actions import (
    action_lines,
    fairness_lines,
    following_lines,
    for_some,
    idle_lines,
    may_change_nothing,
)
from stagewright.checker.tla.blocks import WIDTH, Block, bullets, comment, hanging
from stagewright.checker.tla.config import configuration
from stagewright.checker.tla.declarations import (
    constants,
    folds,
    put,
    records,
    sequence_operators,
    tables,
    variables,
)
from stagewright.checker.tla.expressions import Formulas
from stagewright.checker.tla.initial import initial
from stagewright.checker.tla.names import words_in
from stagewright.checker.tla.properties import Promise, about_states, promise
from stagewright.checker.tla.vocabulary import Vocabulary, nodes_of, vocabulary_of
from stagewright.spec.definition import Constraint, Definition
from stagewright.spec.nodes import BOOL, FALSE, Apply, Op
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.sorts import MapSort, RecordSort, SeqSort, Sort

_COLUMNS = 78


@dataclass(frozen=True)
class TlaModule:
    """`module` belongs into `<name>.tla`, `config` into `<name>.cfg` beside it."""

    name: str
    module: str
    config: str


def tla_module(source: Definition, scope: Scope) -> TlaModule:
    """The definition at a scope; TLC has to be run with `-deadlock`, as the module says."""
    definition = within_budgets(source, scope)
    names = vocabulary_of(definition, scope)
    may_stand = any(may_change_nothing(definition))
    promises = [promise(p, names, may_stand=may_stand) for p in definition.properties]
    body = list(_body(definition, names, promises))
    mentioned = words_in(*(line.partition("\\*")[0] for line in body))
    lines = [
        f" MODULE {names.module} ".center(_COLUMNS, "-"),
        *_heading(definition, scope, names),
        f"EXTENDS Integers, FiniteSets{', Sequences' if _has_sequences(definition) else ''}",
        "",
        *constants(names, mentioned),
        *(put(names) if names.own.put in mentioned else ()),
        *folds(names, mentioned),
        *sequence_operators(names, mentioned),
        *body,
        "=" * _COLUMNS,
    ]
    module = "\n".join(line.rstrip() for line in lines) + "\n"
    config = configuration(names, promises, mentioned, ends_anywhere=_ends_anywhere(definition))
    return TlaModule(names.module, module, config)


def _ends_anywhere(definition: Definition) -> bool:
    return definition.deadlock_allowed is not None


def _has_sequences(definition: Definition) -> bool:
    return any(isinstance(node.sort, SeqSort) for node in nodes_of(definition)) or any(
        _is_sequence(v.sort) for v in definition.variables
    )


def _is_sequence(sort: Sort) -> bool:
    match sort:
        case SeqSort():
            return True
        case MapSort(_, value):
            return _is_sequence(value)
        case RecordSort(_, fields):
            return any(_is_sequence(field) for _, field in fields)
        case _:
            return False


def _heading(definition: Definition, scope: Scope, names: Vocabulary) -> Block:
    profile = f", profile {definition.profile}" if definition.profile else ""
    return (
        *comment(definition.doc),
        *(("\\*",) if definition.doc else ()),
        *comment(f"Written by Stagewright from {definition.name}{profile}, at {scope}."),
        _on_deadlock(definition, names),
    )


def _on_deadlock(definition: Definition, names: Vocabulary) -> str:
    if definition.deadlock_allowed is not None:
        why = " ".join(definition.deadlock_allowed.text.split())
        return f"\\* Run TLC with -deadlock: a run may end anywhere, for {why}."
    return f"\\* Run TLC with -deadlock: {names.own.no_deadlock} says where a run may end."


def _constraint(constraint: Constraint, names: Vocabulary) -> Block:
    """A bound of the check."""
    return (
        *comment(constraint.doc or "A bound of the check."),
        *hanging(
            f"{names.constraints[constraint.name]} ==",
            Formulas(names).block(constraint.condition, WIDTH - 4),
            WIDTH,
        ),
    )


def _body(definition: Definition, names: Vocabulary, promises: list[Promise]) -> Iterable[str]:
    """All after the constants, with an empty line after every part."""
    own = names.own
    fair = any(a.fair for a in definition.actions)
    parts: list[Block] = [
        *tables(names),
        *records(names),
        *variables(definition, names),
        initial(definition, names),
        ("-" * _COLUMNS,),
        *(action_lines(action, definition, names) for action in definition.actions),
        following_lines(definition, names),
    ]
    idle = idle_lines(definition, names)
    if idle and any(p.may_stand for p in promises):
        parts.append(idle)
    if fair:
        parts.append(fairness_lines(definition, names))
    run = f"{own.first} /\\ [][{own.following}]_{own.variables}"
    parts += [
        (f"{own.whole} == {run} /\\ {own.fairness}" if fair else f"{own.whole} == {run}",),
        ("-" * _COLUMNS,),
        *(() if _ends_anywhere(definition) else (_no_deadlock(definition, names),)),
        *(_constraint(c, names) for c in definition.constraints),
        *(p.lines for p in promises),
    ]
    return chain.from_iterable((*part, "") for part in parts)


def _no_deadlock(definition: Definition, names: Vocabulary) -> Block:
    """In every state some action that spends no budget can happen, or a run may end there."""
    own = names.own
    counted = [a for a in definition.actions if not a.spends]
    ways = [(for_some(names.guards[a.name], a.params, names),) for a in counted]
    ends: Block = ()
    if definition.final != FALSE:
        ways.insert(0, (own.final,))
        condition = Formulas(names).block(definition.final, WIDTH - 4)
        ends = ("\\* A run may end here.", *hanging(f"{own.final} ==", condition, WIDTH), "")
    lines = bullets("\\/", ways) if ways else ("FALSE",)
    speaking = [
        definition.final,
        *(r.condition for a in counted for r in a.requirements),
    ]
    lines = about_states(lines, Apply(Op.OR, tuple(speaking), BOOL), names)
    besides = len(counted) < len(definition.actions)
    return (
        *ends,
        *comment(
            "Something can happen that spends no budget, or the run may end here."
            if besides
            else "Something can happen, or the run may end here."
        ),
        *hanging(f"{own.no_deadlock} ==", lines, 0),
    )
