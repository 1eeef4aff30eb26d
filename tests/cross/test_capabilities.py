"""Every construct that the table of capabilities lists works in every backend that it lists, or is refused there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random

import pytest
from tests.checker.mutation.test_agrees_with_interpreter import agree
from tests.checker.tla.joined import explore
from tests.checker.tla.tlc import tlc_in
from tests.cross.constructs import EXAMPLES
from tests.cross.test_random_machines import agree_on_the_relation, agree_on_the_runtime
from tests.cross.test_random_traces import evaluate as evaluated_slowly, spoiled, walk
from tests.random_machines.definitions import RandomMachine
from tests.random_machines.explored import Explored
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import play
from stagewright.checker.conformance.space import explored as space_of
from stagewright.checker.conformance.suites import refusal_suite, transition_tour
from stagewright.checker.engines import EngineKind
from stagewright.checker.mutation.changes.mutants import all_mutants
from stagewright.checker.mutation.evaluation import Fate
from stagewright.commands.pages.capabilities import CONSTRUCTS, Backend, Construct, capability_page
from stagewright.spec import StagewrightError, define, scope_of
from stagewright.spec.definition import PropertyKind
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.text.itf_values import from_json, to_json
from stagewright.spec.text.words import effect, requirement, words
from stagewright.spec.trace import TraceVerdict, observation
from stagewright.spec.values import State
from stagewright.spec.verdict import Outcome, Step
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.events.event_block import block_of
from stagewright.traces.replay.exact_verdicts import evaluate

MOST_STATES = 2_000
ROOT = Path(__file__).parents[2]


@cache
def found(construct: str) -> Explored:
    """All of a construct's example, by the reference interpreter."""
    definition = define(EXAMPLES[construct])
    return Explored(RandomMachine(definition, scope_of(definition)), MOST_STATES)


def broken(one: Explored) -> set[str]:
    promises = one.machine.definition.properties
    return {p.name for p in promises if one.verdict(p) is Outcome.VIOLATED}


def check_finds_the_same(
    construct: str, engine: EngineKind = EngineKind.AUTO, *, symmetry: bool = False
) -> None:
    one = found(construct)
    report = check(one.machine.definition, one.machine.scope, engine=engine, symmetry=symmetry)
    assert report.exhausted
    if not symmetry:
        assert (report.states, report.transitions) == (len(one.states), len(one.edges))
    outcomes = {v.name: v.outcome for v in report.verdicts}
    for prop in one.machine.definition.properties:
        assert outcomes[prop.name] is one.verdict(prop), prop.name


def the_solver_has_the_same_steps(construct: str) -> None:
    one = found(construct)
    agree_on_the_relation(one, ground(one.machine.definition, one.machine.scope))


def itf_is_read_back(construct: str) -> None:
    one = found(construct)
    definition = one.machine.definition
    for state in one.states:
        for v in definition.variables:
            assert from_json(to_json(state[v.name], v.sort), v.sort, v.name) == state[v.name]
    for _, step, _ in one.edges:
        for p in definition.action(step.action).params:
            value = step.arguments[p.name]
            assert from_json(to_json(value, p.sort), p.sort, p.name) == value


class _Itself:
    """The definition as an implementation, by the interpreter."""

    def __init__(self, one: Explored) -> None:
        self._interpreter = one.interpreter
        self.state: State = one.initial[0]

    def reset(self, initial: State) -> None:
        self.state = initial

    def do(self, step: Step) -> None:
        self.state = self._interpreter.take(step, self.state)

    def observe(self) -> dict[str, object]:
        return dict(observation(self.state))


def the_definition_conforms_to_itself(construct: str) -> None:
    one = found(construct)
    definition, scope = one.machine.definition, one.machine.scope
    space = space_of(definition, scope)
    for plan in (transition_tour, refusal_suite):
        result = play(
            Oracle(definition, scope), partial(_Itself, one), plan(definition, scope, space=space)
        )
        assert result.failure is None


def traces_are_checked_as_the_interpreter_does(construct: str) -> None:
    one, random = found(construct), Random(1)
    definition = one.machine.definition
    seen: set[TraceVerdict] = set()
    automata = {
        (definition.name, definition.profile, definition.fingerprint()): automaton(
            definition, one.machine.scope
        )
    }
    for _ in range(40):
        good = walk(one, random)
        bad = spoiled(one, good, random)
        results = evaluate([block_of([*good, *bad])], automata, every=True).findings
        shown = {f.key.entity: (f.verdict, f.sequence) for f in results}
        assert shown == {"good": evaluated_slowly(one, good), "bad": evaluated_slowly(one, bad)}
        seen |= {verdict for verdict, _ in shown.values()}
    assert TraceVerdict.VIOLATION in seen


def everything_has_words(construct: str) -> None:
    definition = found(construct).machine.definition
    shown = [requirement(r) for a in definition.actions for r in a.requirements]
    shown += [effect(s) for a in definition.actions for s in a.assignments]
    shown += [words(p.condition) for p in definition.properties]
    assert all(shown)
    assert not [t for t in shown if "(op=" in t or "Sort(" in t]
    assert len(set(shown)) == len(dict.fromkeys(shown))


def mutants_meet_the_same_fate(construct: str) -> None:
    one = found(construct)
    mutants = all_mutants(one.machine.definition)
    some = Random(0).sample(mutants, min(8, len(mutants)))
    fates = {agree(one.machine, m, one) for m in some}
    assert fates - {None}
    assert Fate.UNDECIDED not in fates


WAYS: Mapping[Backend, Callable[[str], None]] = {
    Backend.NATIVE: partial(check_finds_the_same, engine=EngineKind.NATIVE),
    Backend.NUMPY: partial(check_finds_the_same, engine=EngineKind.NUMPY),
    Backend.SYMMETRY: partial(check_finds_the_same, symmetry=True),
    Backend.SOLVER: the_solver_has_the_same_steps,
    Backend.ITF: itf_is_read_back,
    Backend.RUNTIME: lambda construct: agree_on_the_runtime(found(construct)),
    Backend.CONFORMANCE: the_definition_conforms_to_itself,
    Backend.TRACES: traces_are_checked_as_the_interpreter_does,
    Backend.WORDS: everything_has_words,
    Backend.MUTATION: mutants_meet_the_same_fate,
}


def test_every_construct_has_an_example_and_every_backend_a_way_to_ask_it() -> None:
    assert [c.name for c in CONSTRUCTS] == list(EXAMPLES)
    assert {*WAYS, Backend.TLA} == set(Backend)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_promise_that_holds_and_one_that_does_not(name: str) -> None:
    one = found(name)
    kept = {p.name for p in one.machine.definition.properties} - broken(one)
    assert broken(one)
    assert kept
    assert len(one.states) > 10
    assert not one.overflows


@pytest.mark.parametrize(
    ("construct", "backend"), some_of(product(CONSTRUCTS, WAYS)), ids=lambda one: one.name
)
def test_a_backend_agrees_with_the_reference_interpreter_or_refuses(
    construct: Construct, backend: Backend
) -> None:
    if backend in construct.lacks:
        with pytest.raises(StagewrightError, match=construct.lacks[backend]):
            WAYS[backend](construct.name)
    else:
        WAYS[backend](construct.name)


def test_tlc_agrees_on_every_example(tmp_path: Path) -> None:
    able = [c.name for c in CONSTRUCTS if Backend.TLA not in c.lacks]
    machines = [(found(n).machine.definition, found(n).machine.scope) for n in able]
    for name, shown in zip(able, explore(tlc_in(tmp_path), machines), strict=True):
        one = found(name)
        assert shown.distinct == len(one.states), name
        invariants = {
            p.name for p in one.machine.definition.properties if p.kind is PropertyKind.INVARIANT
        }
        assert shown.broken & invariants == broken(one) & invariants, name


def test_the_page_is_the_table() -> None:
    page = (ROOT / "docs" / "language" / "capabilities.md").read_text(encoding="utf-8")
    assert page == capability_page()
