"""Random projections of random machines, decided as by an oracle that walks pairs of states in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from hypothesis import HealthCheck, assume, event, given, settings, strategies as st
from tests.random_machines.choices import Choices
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.random_machines.expressions import Expressions
from tests.thorough import examples

from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.refinement.verdicts import Searching, decide
from stagewright.spec import refinement
from stagewright.spec.definition import (
    Action,
    AnyValue,
    Assignment,
    Definition,
    Requirement,
    Variable,
)
from stagewright.spec.derived.mentioned import entities_in
from stagewright.spec.nodes import BOOL, TRUE, Apply, Literal, Node, Op, Read
from stagewright.spec.refinement import Mapped, SeenStep
from stagewright.spec.values import State
from stagewright.spec.verdict import Outcome

SLOW = [HealthCheck.filter_too_much, HealthCheck.too_slow]
PREFIX = "seen."
MOST = 150
Bits = tuple[bool, ...]
Move = tuple[Bits, Bits]


@refinement()
def a_random_one(_it: object, _seen: object) -> None:
    """Traced by no one: the definitions are trees."""


@dataclass(frozen=True)
class Case:
    """A random machine, conditions of it that are seen as flags, and the seen machine as a table of moves."""

    machine: RandomMachine
    conditions: tuple[Node, ...]
    initial: frozenset[Bits]
    moves: frozenset[Move]
    known: tuple[bool, ...]  # which flags are mapped
    from_start: bool
    rows: tuple[tuple[str, tuple[SeenStep, ...]], ...]


def flags(count: int) -> list[str]:
    return [f"s{i}" for i in range(count)]


def at(bits: Bits) -> Node:
    """The condition that the seen machine is there."""
    reads = [Read(name, BOOL) for name in flags(len(bits))]
    held = [r if bit else Apply(Op.NOT, (r,), BOOL) for r, bit in zip(reads, bits, strict=True)]
    return Apply(Op.AND, tuple(held), BOOL)


def table(moves: Iterable[Move], initial: Iterable[Bits], count: int) -> Definition:
    """A machine of flags with an action a move: `m01_11`."""
    listed = sorted(moves)
    actions = [
        Action(
            called(move),
            (),
            (Requirement("there", at(move[0])),),
            tuple(
                Assignment(Read(name, BOOL), Literal(bit, BOOL))
                for name, bit in zip(flags(count), move[1], strict=True)
            ),
        )
        for move in listed
    ]
    starts = Apply(Op.OR, tuple(at(bits) for bits in sorted(initial)), BOOL)
    return Definition(
        name="Table",
        doc="",
        profile="",
        variables=tuple(Variable(name, BOOL, AnyValue.ANY) for name in flags(count)),
        budgets=(),
        initially=(starts,),
        actions=tuple(actions),
        properties=(),
        final=TRUE,
        entities=(),
    )


def called(move: Move) -> str:
    return "m" + "_".join("".join("1" if bit else "0" for bit in bits) for bits in move)


class Seen:
    """A random machine explored by the reference interpreter, and what its conditions say of each state."""

    def __init__(self, machine: RandomMachine, conditions: tuple[Node, ...]) -> None:
        self.explored = Explored(machine, MOST)
        interpreter = self.explored.interpreter
        self.bits = {
            state: tuple(bool(interpreter.evaluate(c, state, None, {})) for c in conditions)
            for state in self.explored.states
        }
        self.initial = frozenset(self.bits[s] for s in self.explored.initial)
        self.moves = frozenset(
            (self.bits[s], self.bits[t])
            for s, _, t in self.explored.edges
            if self.bits[s] != self.bits[t]
        )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Seen]:
    """The quotient, or one with edges and initial states missing, flags hidden, or rows of steps."""
    machine = draw(machines())
    choices = Choices(draw)
    makers = Expressions(choices, machine.definition.variables)
    conditions = tuple(makers.condition(2) for _ in range(choices.pick((2, 1, 3))))
    known_sorts = set(machine.definition.entities)
    assume(known_sorts.issuperset(entities_in((), (), (), conditions)))
    try:
        seen = Seen(machine, conditions)
    except TooLargeError:
        assume(False)
        raise AssertionError from None
    assume(seen.initial and (seen.moves or choices.chance(10)))
    moves, initial = seen.moves, seen.initial
    for _ in range(choices.pick((0, 1, 1, 2))):
        if moves:
            moves -= {choices.pick(sorted(moves))}
    if len(initial) > 1 and choices.chance(20):
        initial -= {choices.pick(sorted(initial))}
    known = (True, *(not choices.chance(35) for _ in conditions[1:]))
    rows: list[tuple[str, tuple[SeenStep, ...]]] = []
    if moves and choices.chance(40):
        names = sorted(map(called, moves))
        row = [
            SeenStep(
                frozenset(choices.pick(names) for _ in range(choices.pick((1, 2)))),
                choices.chance(50),
            )
            for _ in range(choices.pick((1, 2)))
        ]
        actions = [a.name for a in machine.definition.actions]
        rows.append((choices.pick(actions), tuple(row)))
    case = Case(machine, conditions, initial, moves, known, not choices.chance(30), tuple(rows))
    return case, seen


def mapped(case: Case) -> Mapped:
    pairs = zip(flags(len(case.conditions)), case.conditions, case.known, strict=True)
    said = [Assignment(Read(PREFIX + n, BOOL), c) for n, c, known in pairs if known]
    return Mapped(
        replace(a_random_one, from_start=case.from_start),
        case.machine.definition,
        table(case.moves, case.initial, len(case.conditions)),
        PREFIX,
        (),
        tuple(said),
        (),
        dict(case.rows),
        frozenset(),
    )


# -- the oracle --------------------------------------------------------------------------------------------


def refines(case: Case, seen: Seen) -> tuple[bool, bool]:
    """Whether each run is seen as one of the table, and whether anything seen ever changes."""
    reach = set(case.initial)
    while more := {t for s, t in case.moves if s in reach} - reach:
        reach |= more
    starts = case.initial if case.from_start else reach
    rows = dict(case.rows)

    def look(bits: Bits) -> Bits:
        return tuple(b for b, known in zip(bits, case.known, strict=True) if known)

    def closed(states: frozenset[Bits]) -> frozenset[Bits]:
        found = set(states)
        while more := {t for s, t in case.moves if s in found and look(s) == look(t)} - found:
            found |= more
        return frozenset(found)

    def along(states: frozenset[Bits], step: SeenStep | None) -> frozenset[Bits]:
        moved = {
            t
            for s, t in case.moves
            if s in states and (step is None or called((s, t)) in step.actions)
        }
        return closed(frozenset(moved) | (states if step and step.may_stutter else frozenset()))

    def after(states: frozenset[Bits], action: str, old: Bits, new: Bits) -> frozenset[Bits]:
        row = rows.get(action)
        if row is None and look(old) == look(new):
            return states
        ends = reduce(along, row or (None,), states)
        return frozenset(s for s in ends if look(s) == look(new))

    edges = seen.explored.edges
    changes = any(look(seen.bits[s]) != look(seen.bits[t]) for s, _, t in edges)
    out: dict[State, list[tuple[str, State]]] = {}
    for source, step, target in edges:
        out.setdefault(source, []).append((step.action, target))
    todo: list[tuple[State, frozenset[Bits]]] = []
    for state in seen.explored.initial:
        fits = closed(frozenset(s for s in starts if look(s) == look(seen.bits[state])))
        if not fits:
            return False, changes
        todo.append((state, fits))
    known = set(todo)
    while todo:
        state, states = todo.pop()
        for action, target in out.get(state, ()):
            held = after(states, action, seen.bits[state], seen.bits[target])
            if not held:
                return False, changes
            if (target, held) not in known:
                known.add((target, held))
                todo.append((target, held))
    return True, changes


# -- the laws ----------------------------------------------------------------------------------------------


def verdict_of(case: Case, engine: EngineKind) -> Outcome:
    found = decide(
        mapped(case),
        [case.machine.scope],
        Searching(Limits(), engine, workers=1),
    )
    return found.outcome


@settings(max_examples=examples(60), suppress_health_check=SLOW)
@given(cases())
def test_every_decision_is_the_one_of_the_oracle(given: tuple[Case, Seen]) -> None:
    case, seen = given
    right, changes = refines(case, seen)
    expected = Outcome.HOLDS if right and changes else Outcome.VIOLATED
    event(f"{'refines' if right else 'does not refine'}, {'changes' if changes else 'vacuous'}")
    assert verdict_of(case, EngineKind.NUMPY) is expected


@settings(max_examples=examples(25), suppress_health_check=SLOW)
@given(cases())
def test_both_engines_decide_alike(given: tuple[Case, Seen]) -> None:
    case, _ = given
    assert verdict_of(case, EngineKind.NATIVE) is verdict_of(case, EngineKind.NUMPY)


@settings(max_examples=examples(30), suppress_health_check=SLOW)
@given(cases())
def test_a_projection_refines_its_quotient_and_not_one_with_an_edge_less(
    given: tuple[Case, Seen],
) -> None:
    case, seen = given
    assume(seen.moves)
    everything = tuple(True for _ in case.conditions)
    quotient = replace(
        case, moves=seen.moves, initial=seen.initial, known=everything, rows=(), from_start=True
    )
    assert verdict_of(quotient, EngineKind.NUMPY) is Outcome.HOLDS
    less = replace(quotient, moves=seen.moves - {min(seen.moves)})
    assert verdict_of(less, EngineKind.NUMPY) is Outcome.VIOLATED
