"""The facts of a definition, in words; every format of `show` is laid out from them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum

from stagewright.commands.facts.facts import (
    ActionFacts,
    EnumFacts,
    MachineFacts,
    PropertyFacts,
    VariableFacts,
)
from stagewright.spec.declarations.fairness import Assumption, assumptions
from stagewright.spec.definition import (
    Action,
    AnyValue,
    Definition,
    Fair,
    Property,
    PropertyKind,
    Role,
    Variable,
)
from stagewright.spec.nodes import FALSE
from stagewright.spec.sorts import (
    EnumSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.text.words import Values, effect, requirement, signature, words
from stagewright.spec.values import FrozenMap, Value, show


def facts_of(definition: Definition, profiles: tuple[str, ...] = ()) -> MachineFacts:
    """The facts of a definition; `profiles` are the names of all profiles of its machine."""
    allowed = definition.deadlock_allowed
    return MachineFacts(
        name=definition.name,
        doc=definition.doc.strip(),
        profile=definition.profile,
        profiles=profiles,
        entities=tuple(f"{e.__name__} ({e.default_scope} by default)" for e in definition.entities),
        enums=tuple(enum_facts(kind) for kind in enums_of(definition)),
        variables=tuple(map(_variable, definition.variables)),
        budgets=tuple(
            (
                b.name,
                "any" if b.default is None else str(b.default),
                ": ".join(filter(None, ("faults" if b.of_faults else "", b.doc))),
            )
            for b in definition.budgets
        ),
        fairness=tuple((a.name, shared(a)) for a in assumptions(definition.actions) if a.shared),
        initially=tuple(words(condition) for condition in definition.initially),
        constraints=tuple((c.name, words(c.condition)) for c in definition.constraints),
        deadlock_allowed="" if allowed is None else allowed.text,
        final="" if allowed or definition.final == FALSE else words(definition.final),
        assumptions=tuple(
            (a.name, ", ".join(a.actions) or "the initial state", a.because)
            for a in definition.assumptions
        ),
        actions=tuple(_action(definition, action) for action in definition.actions),
        properties=tuple(map(_property, definition.properties)),
        unexercised=tuple(_unexercised(definition)),
        known_violations=tuple(_known_violations(definition)),
        not_asked=tuple(_not_asked(definition)),
    )


def _unexercised(definition: Definition) -> Iterator[tuple[str, str, str]]:
    names: dict[tuple[bool, str], list[str]] = {}
    for said in definition.unexercised or ():
        names.setdefault((said.vacuous, said.reason.text), []).append(said.name)
    for (vacuous, why), listed in names.items():
        yield "vacuous" if vacuous else "never happens", ", ".join(listed), why


def _known_violations(definition: Definition) -> Iterator[tuple[str, str]]:
    names: dict[str, list[str]] = {}
    for known in definition.known_violations:
        names.setdefault(known.reason.text, []).append(known.promise)
    for why, listed in names.items():
        yield ", ".join(listed), why


def _not_asked(definition: Definition) -> Iterator[tuple[str, str, str]]:
    for prop in definition.properties:
        if prop.kind is PropertyKind.RESTRICTED:
            yield prop.name, kind_of(prop), prop.because
    for left in definition.not_asked:
        yield left.name, left.kind, left.why


def enums_of(definition: Definition) -> list[type[Enum]]:
    """The enums that variables and parameters range over, in order of appearance."""
    sorts = [v.sort for v in definition.variables]
    sorts += [p.sort for a in definition.actions for p in a.params]
    return list(dict.fromkeys(kind for sort in sorts for kind in _enums_in(sort)))


def _enums_in(sort: Sort) -> list[type[Enum]]:
    match sort:
        case EnumSort(kind):
            return [kind]
        case OptionalSort(element) | SetSort(element) | SeqSort(element):
            return _enums_in(element)
        case MapSort(key, value):
            return _enums_in(key) + _enums_in(value)
        case RecordSort(_, fields):
            return [kind for _, inner in fields for kind in _enums_in(inner)]
        case _:
            return []


def enum_facts(kind: type[Enum]) -> EnumFacts:
    """An enum as a table."""
    members = list(kind)
    columns = tuple(n for n in vars(members[0]) if not n.startswith("_")) if members else ()
    rows = tuple((m.name, *(_cell(getattr(m, c, None)) for c in columns)) for m in members)
    return EnumFacts(kind.__name__, inspect.cleandoc(kind.__doc__ or ""), columns, rows)


def _cell(value: object) -> str:
    match value:
        case set() | frozenset():
            return show(frozenset(value))
        case None | bool() | int() | Enum():
            return show(value)
        case _:
            return str(value)


def _variable(variable: Variable) -> VariableFacts:
    initial = variable.initial
    text = "any" if isinstance(initial, AnyValue) else _initial(initial)
    return VariableFacts(
        variable.name,
        str(variable.sort),
        text,
        variable.constant,
        _kept(variable),
        variable.doc.strip(),
    )


def _kept(variable: Variable) -> str:
    owner = "" if variable.actor is None else f", of {variable.actor.name}"
    return f"{variable.kept.value}{owner}"


def _initial(value: Value) -> str:
    if not isinstance(value, FrozenMap):
        return show(value)
    # A record's field may start as any value: then it holds the mark instead of a value.
    parts = (f"{k}: {'any' if isinstance(v, AnyValue) else _initial(v)}" for k, v in value.items())
    return "{" + ", ".join(parts) + "}"


def _action(definition: Definition, action: Action) -> ActionFacts:
    # A parameter often has the name of the variable it is put into: tell the two apart.
    variables = {v.name for v in definition.variables}
    names: Values = {p: f"given {p.name}" for p in action.params if p.name in variables}
    return ActionFacts(
        name=action.name,
        signature=signature(action),
        actor=action.actor.name if action.actor else "",
        fairness=" and ".join(_fair(fair) for fair in action.fair),
        budget=action.budget or "",
        doc=action.doc.strip(),
        requirements=tuple(requirement(r, names) for r in action.requirements),
        effects=tuple(effect(a, names) for a in action.assignments),
    )


def _fair(fair: Fair) -> str:
    """`weakly fair`, or `weakly fair as one of turn` where the fairness is shared."""
    text = f"{fair.strength.name.lower()}ly fair"
    return f"{text} as one of {fair.name}" if fair.name else text


def shared(assumption: Assumption) -> str:
    """What a shared fairness assumes: `weakly fair for each n: begin(n), or work(n, t) for some t`."""
    keys = assumption.keys
    ways: list[str] = []
    for action, mine in assumption.members:
        called = {p: p.name for p in action.params}
        called.update(zip(mine, (key.name for key in keys), strict=True))
        free = ", ".join(p.name for p in action.params if p not in mine)
        given = f"({', '.join(called.values())})" if called else ""
        ways.append(f"{action.name}{given}{f' for some {free}' if free else ''}")
    text = f"{assumption.strength.name.lower()}ly fair"
    each = ", ".join(f"{key.name}: {key.sort}" for key in keys)
    return f"{text}{f' for each {each}' if each else ''}: {', or '.join(ways)}"


def _property(prop: Property) -> PropertyFacts:
    params = ", ".join(f"{p.name}: {p.sort}" for p in prop.params)
    condition = words(prop.condition)
    if prop.premise is not None:
        condition = f"({words(prop.premise)}) leads to ({condition})"
    elif prop.kind is PropertyKind.EVENTUALLY:
        condition = f"eventually ({condition})"
    if prop.independent:
        actions, apart = ", ".join(prop.independent), ", ".join(prop.apart)
        condition = f"{actions}: what refuses one of them refuses it whatever {apart} says"
    if prop.kind is PropertyKind.ACCEPTS:
        condition = f"{prop.action} is enabled whenever {condition}"
    if prop.kind is PropertyKind.RESTRICTED:
        condition = f"{prop.action} is refused somewhere, though {condition}"
    return PropertyFacts(
        prop.name,
        f"{prop.name}({params})" if params else prop.name,
        kind_of(prop),
        prop.doc.strip(),
        condition,
    )


def kind_of(prop: Property) -> str:
    """A property's kind, with what it is for where that is no promise about data."""
    kind = "independent" if prop.independent else prop.kind.value
    if prop.action:
        kind += f" {prop.action}"
    if prop.at is not None and (prop.at.sizes or prop.at.budgets):
        parts = [*prop.at.sizes.items(), *prop.at.budgets.items()]
        kind += " at " + ", ".join(f"{name}={'any' if n is None else n}" for name, n in parts)
    if prop.role is Role.WORDING:
        return f"{kind}, of the text's words: {prop.citation}"
    return kind if prop.role is Role.PROMISE else f"{kind}, {prop.role.value}"
