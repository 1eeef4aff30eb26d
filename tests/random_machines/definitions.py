"""A Hypothesis strategy for whole definitions with their scopes, most of at most 200 reachable states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import assume, strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter
from tests.random_machines.actions import action
from tests.random_machines.choices import Choices
from tests.random_machines.expressions import Expressions
from tests.random_machines.fairness import with_fairness
from tests.random_machines.sorts import (
    BOOL,
    FINITE,
    Node as NodeEntity,
    Peer,
    Rank,
    Seat,
    Task,
    variables,
)

from stagewright.spec.definition import (
    Action,
    Budget,
    Constraint,
    Definition,
    Fairness,
    Joined,
    Property,
    PropertyKind,
    Variable,
)
from stagewright.spec.derived.mentioned import entities_in
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import FALSE, TRUE, Bound, Node, Quantified, children
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import IntSort
from stagewright.spec.text.words import effect, signature, words
from stagewright.spec.values import FrozenMap


@dataclass(frozen=True)
class RandomMachine:
    """A definition and the scope to look at it."""

    definition: Definition
    scope: Scope

    def __repr__(self) -> str:
        """As a person reads it: expressions share parts, so that their own text can have megabytes."""
        text = "\n".join(_lines(self))
        return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n  ..."

    def _repr_pretty_(self, printer: RepresentationPrinter, _: bool) -> None:
        """Hypothesis would print the fields of a dataclass."""
        printer.text(repr(self))


LONGEST_LINE = 400  # characters
LONGEST_TEXT = 25_000  # Hypothesis warns of more than 30,000


def _lines(machine: RandomMachine) -> Iterator[str]:
    made = machine.definition
    yield "Random machine"
    sizes = {kind.__name__: size for kind, size in machine.scope.sizes.items()}
    yield f"  scope {sizes}, budgets {dict(machine.scope.budgets)}"
    for v in made.variables:
        yield f"  {v.name}: {v.sort} = {v.initial}"[:LONGEST_LINE]
    for name, nodes in (
        ("initially", made.initially),
        ("within", [c.condition for c in made.constraints]),
        ("final", [made.final]),
    ):
        yield from (f"  {name} {words(node)}"[:LONGEST_LINE] for node in nodes)
    for a in made.actions:
        yield f"  {signature(a)}" + (f" spends {a.budget}" if a.spends else "")
        for guard in a.requirements:
            kind = "bound" if guard.bound else "require"
            yield f"    {kind} {guard.name}: {words(guard.condition)}"[:LONGEST_LINE]
        yield from (f"    {effect(e)}"[:LONGEST_LINE] for e in a.assignments)
    for p in made.properties:
        yield f"  {p.kind.value} {p.name}: {words(p.condition)}"[:LONGEST_LINE]


@st.composite
def machines(draw: st.DrawFn) -> RandomMachine:
    """Random machines at small scopes."""
    choices = Choices(draw)
    sizes: dict[type[Entity], int] = {
        NodeEntity: choices.pick((2, 1, 3)),
        Task: choices.pick((1, 2)),
        Peer: choices.pick((3, 2)),
        Seat: choices.pick((3, 2, 1)),
        Rank: choices.pick((2, 3, 1)),
    }
    definition = _definition(choices, variables(choices, sizes))
    chosen = {kind: sizes[kind] for kind in definition.entities}
    limits = {b.name: choices.pick((b.default, 0, 2, None)) for b in definition.budgets}
    return RandomMachine(definition, Scope(FrozenMap(chosen), FrozenMap(limits)))


@st.composite
def bounded_machines(draw: st.DrawFn) -> RandomMachine:
    """Random machines with a constraint."""
    machine = draw(machines())
    choices = Choices(draw)
    condition = Expressions(choices, machine.definition.variables).condition(2)
    known = set(machine.definition.entities)
    assume(set(entities_in((), (), (), [condition])) <= known)
    constraint = Constraint("bound", condition)
    return replace(machine, definition=replace(machine.definition, constraints=(constraint,)))


def _definition(choices: Choices, declared: tuple[Variable, ...]) -> Definition:
    budgets = tuple(
        Budget(f"b{i}", choices.pick((1, 2, None))) for i in range(choices.pick((0, 0, 1, 2)))
    )
    states = Expressions(choices, declared)
    initially = (states.condition(2),) if choices.chance(20) else ()
    actions = tuple(
        action(choices, f"a{i}", declared, budgets) for i in range(choices.pick((3, 2, 4, 1, 5)))
    )
    spent = {a.budget for a in actions}
    properties = (
        *_properties(choices, declared),
        *_accepting(choices, declared, actions),
        *_independent(choices, declared, actions),
    )
    actions = with_fairness(choices, actions)
    actions, joined = _joining(choices, declared, actions)
    properties += joined
    final = choices.pick((FALSE, TRUE, None)) or states.condition(1)
    return Definition(
        name="Random",
        doc="",
        profile="",
        variables=declared,
        budgets=tuple(b for b in budgets if b.name in spent),
        initially=initially,
        actions=actions,
        properties=properties,
        final=final,
        entities=entities_in(declared, actions, properties, [*initially, final]),
    )


def _properties(choices: Choices, declared: tuple[Variable, ...]) -> list[Property]:
    kinds = [
        PropertyKind.INVARIANT,
        PropertyKind.INVARIANT,
        PropertyKind.STEP,
        PropertyKind.REACHABLE,
        PropertyKind.LEADS_TO,
        PropertyKind.EVENTUALLY,
        PropertyKind.SOMETIMES,
        PropertyKind.SOMETIMES_STEP,
    ]
    return [
        _property(choices, f"q{i}", kind, declared)
        for i, kind in enumerate(kinds)
        if choices.chance(60)
    ]


def _accepting(
    choices: Choices, declared: tuple[Variable, ...], actions: tuple[Action, ...]
) -> list[Property]:
    """That some action is enabled where a condition holds, for some of its parameters as they are named there."""
    if not choices.chance(60):
        return []
    accepted = choices.pick(actions)
    outside = Expressions(choices, declared)
    shared = tuple(replace(p, serial=100 + p.serial) for p in accepted.params if choices.chance(50))
    own = (outside.bound(choices.pick((*FINITE, BOOL)), "q"),) if choices.chance(30) else ()
    params = (*shared, *own)
    condition = outside.within(*params).condition(2)
    return [Property("accepted", PropertyKind.ACCEPTS, params, condition, action=accepted.name)]


def _independent(
    choices: Choices, declared: tuple[Variable, ...], actions: tuple[Action, ...]
) -> list[Property]:
    """That some actions wait for nothing that some variables say."""
    waits = tuple(a.name for a in actions if choices.chance(60))
    apart = tuple(v.name for v in declared if choices.chance(40))
    if not waits or not apart:
        return []
    kind = PropertyKind.INVARIANT
    return [Property("independent", kind, (), TRUE, independent=waits, apart=apart)]


def _joining(
    choices: Choices, declared: tuple[Variable, ...], actions: tuple[Action, ...]
) -> tuple[tuple[Action, ...], tuple[Property, ...]]:
    """What a part accepts of an action that some steps of the system join, and whether the system restricts it."""
    if not choices.chance(50):
        return actions, ()
    outside = Expressions(choices, declared)
    params = tuple(
        outside.bound(choices.pick((*FINITE, BOOL)), "j") for _ in range(choices.pick((1, 0, 2)))
    )
    joining = tuple(
        replace(a, joined=(_call(choices, declared, a, params),)) if choices.chance(60) else a
        for a in actions
    )
    if not any(a.joined for a in joining):
        return actions, ()
    condition = outside.within(*params).condition(2)
    kind = choices.pick((PropertyKind.ACCEPTS, PropertyKind.RESTRICTED))
    return joining, (Property("joined", kind, params, condition, action="part.do"),)


def _call(
    choices: Choices, declared: tuple[Variable, ...], action: Action, params: tuple[Bound, ...]
) -> Joined:
    scope = Expressions(choices, declared).within(*action.params)
    loops: tuple[tuple[Bound, Node | None], ...] = ()
    if choices.chance(50):
        bound = scope.bound(choices.pick(FINITE), "l")
        scope = scope.within(bound)
        loops = ((bound, scope.condition(1) if choices.chance(60) else None),)
    given = [(p.name, scope.of(p.sort, 1)) for p in params]
    arguments = tuple((name, node) for name, node in given if node is not None)
    return Joined("part.do", arguments, loops)


def _property(
    choices: Choices, name: str, kind: PropertyKind, declared: tuple[Variable, ...]
) -> Property:
    of_steps = kind in (PropertyKind.STEP, PropertyKind.SOMETIMES_STEP)
    outside = Expressions(choices, declared, new=of_steps)
    sorts = (*FINITE, BOOL, IntSort(0, 2))
    params = tuple(
        outside.bound(choices.pick(sorts), "q") for _ in range(choices.pick((0, 0, 1, 2)))
    )
    scope = outside.within(*params)
    premise = scope.condition(2) if kind is PropertyKind.LEADS_TO else None
    return Property(name, kind, params, scope.condition(3), premise)


def count_all(definition: Definition) -> dict[object, int]:
    """How often each operation, quantity, node kind and sort kind occurs in a definition."""
    counts: dict[object, int] = {}

    def note(*things: object) -> None:
        for thing in things:
            counts[thing] = counts.get(thing, 0) + 1

    nodes: list[Node] = [definition.final, *definition.initially]
    for a in definition.actions:
        note(*(f.strength for f in a.fair), *("shared" for f in a.fair if f.name))
        note(*([] if a.fair else [Fairness.NONE]))
        note(*(["loop"] if any(s.binders for s in a.assignments) else []))
        nodes += [r.condition for r in a.requirements]
        nodes += [n for s in a.assignments for n in (s.place, s.value)]
    for p in definition.properties:
        note(p.kind)
        nodes += [p.condition, *([p.premise] if p.premise is not None else [])]
    while nodes:
        node = nodes.pop()
        nodes += children(node)
        note(type(node), (type(node), type(node.sort)))
        if isinstance(node, Quantified):
            note(node.quantity, (node.quantity, type(node.bound.sort)))
        op = getattr(node, "op", None)
        if op is not None:
            note(op, (op, type(node.sort)))
    return counts
