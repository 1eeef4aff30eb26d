"""How each backend is asked whether it finds what the reference interpreter has found of a machine.

A new backend needs its row in `WAYS`: it is then compared on a machine of each construct of the language. Where it also
takes machines whose steps overflow, a row in `ON_RANDOM_MACHINES` compares it on these, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import pytest
from tests.checker.mutation.test_agrees_with_interpreter import agree
from tests.cross.test_random_traces import evaluate as evaluated_slowly, spoiled, walk
from tests.random_machines.explored import Explored

from stagewright.checker.check import check
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import play
from stagewright.checker.conformance.space import explored as space_of
from stagewright.checker.conformance.suites import refusal_suite, transition_tour
from stagewright.checker.engines import EngineKind
from stagewright.checker.mutation.changes.mutants import all_mutants
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.symbolic.relation import StepRelation
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.commands.pages.capabilities import Backend
from stagewright.impl.runtime import Instance, Program
from stagewright.spec.definition import NO_DEADLOCK, Property, PropertyKind
from stagewright.spec.errors import DomainError, RefusedError
from stagewright.spec.grounding.ground import GroundStep
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.text.itf_values import from_json, to_json
from stagewright.spec.text.words import effect, requirement, words
from stagewright.spec.trace import TraceVerdict, observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Outcome, Step
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.events.event_block import block_of
from stagewright.traces.replay.exact_verdicts import evaluate

RUNTIME_STATES = 6
Way = Callable[[Explored], None]


def step_of(step: GroundStep) -> Step:
    return Step(step.action.name, FrozenMap(dict(step.arguments)))


def is_of_the_whole_graph(prop: Property) -> bool:
    return prop.kind is PropertyKind.REACHABLE or prop.kind.of_fair_runs


def agree_on_the_check(found: Explored) -> None:
    report = check(found.machine.definition, found.machine.scope)
    assert report.exhausted
    assert report.states == len(found.states)
    assert report.transitions == len(found.edges)
    verdicts = {v.name: v.outcome for v in report.verdicts}
    assert verdicts[NO_DEADLOCK] is found.no_deadlock
    assert (verdicts[IN_BOUNDS] is Outcome.VIOLATED) == bool(found.overflows)
    for prop in found.machine.definition.properties:
        if found.overflows and is_of_the_whole_graph(prop):
            continue  # what lies beyond an overflow is not defined
        assert verdicts[prop.name] is found.verdict(prop), prop.name


def agree_on_the_relation(found: Explored) -> None:
    model = ground(found.machine.definition, found.machine.scope)
    index = {step_of(s): s.index for s in model.steps}
    edges = [(model.encode(s), index[a], model.encode(t)) for s, a, t in found.edges]
    states = [model.encode(s) for s in found.states]
    assert StepRelation(model).difference(states, edges) is None


def agree_on_the_runtime(found: Explored) -> None:
    program = Program(found.machine.definition, found.machine.scope)
    after = {(s, a): t for s, a, t in found.edges}
    some = sorted(found.states, key=repr)
    for state in Random(0).sample(some, min(RUNTIME_STATES, len(some))):
        assert set(Instance(program, state).enabled()) == set(found.enabled[state])
        for step in found.steps:
            instance = Instance(program, state)
            failed = found.interpreter.failed_requirements(step, state)
            assert instance.refusals(step) == tuple(r.name for r in failed)
            if failed:
                with pytest.raises(RefusedError) as refused:
                    instance.fire(step)
                assert refused.value.requirements == tuple(r.name for r in failed)
            elif (state, step) in found.overflows:
                with pytest.raises(DomainError):
                    instance.fire(step)
            else:
                instance.fire(step)
                assert instance.state == after[state, step]
                continue
            assert instance.state == state


def check_finds_the_same(
    one: Explored, engine: EngineKind = EngineKind.AUTO, *, symmetry: bool = False
) -> None:
    report = check(one.machine.definition, one.machine.scope, engine=engine, symmetry=symmetry)
    assert report.exhausted
    if not symmetry:
        assert (report.states, report.transitions) == (len(one.states), len(one.edges))
    outcomes = {v.name: v.outcome for v in report.verdicts}
    for prop in one.machine.definition.properties:
        assert outcomes[prop.name] is one.verdict(prop), prop.name


def itf_is_read_back(one: Explored) -> None:
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


def the_definition_conforms_to_itself(one: Explored) -> None:
    definition, scope = one.machine.definition, one.machine.scope
    space = space_of(definition, scope)
    for plan in (transition_tour, refusal_suite):
        result = play(
            Oracle(definition, scope), partial(_Itself, one), plan(definition, scope, space=space)
        )
        assert result.failure is None


def traces_are_checked_as_the_interpreter_does(one: Explored) -> None:
    random = Random(1)
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


def everything_has_words(one: Explored) -> None:
    definition = one.machine.definition
    shown = [requirement(r) for a in definition.actions for r in a.requirements]
    shown += [effect(s) for a in definition.actions for s in a.assignments]
    shown += [words(p.condition) for p in definition.properties]
    assert all(shown)
    assert not [t for t in shown if "(op=" in t or "Sort(" in t]
    assert len(set(shown)) == len(dict.fromkeys(shown))


def mutants_meet_the_same_fate(one: Explored) -> None:
    mutants = all_mutants(one.machine.definition)
    some = Random(0).sample(mutants, min(8, len(mutants)))
    fates = {agree(one.machine, m, one) for m in some}
    assert fates - {None}
    assert Fate.UNDECIDED not in fates


WAYS: Mapping[Backend, Way] = {
    Backend.NATIVE: partial(check_finds_the_same, engine=EngineKind.NATIVE),
    Backend.NUMPY: partial(check_finds_the_same, engine=EngineKind.NUMPY),
    Backend.SYMMETRY: partial(check_finds_the_same, symmetry=True),
    Backend.SOLVER: agree_on_the_relation,
    Backend.ITF: itf_is_read_back,
    Backend.RUNTIME: agree_on_the_runtime,
    Backend.CONFORMANCE: the_definition_conforms_to_itself,
    Backend.TRACES: traces_are_checked_as_the_interpreter_does,
    Backend.WORDS: everything_has_words,
    Backend.MUTATION: mutants_meet_the_same_fate,
}

ON_RANDOM_MACHINES: Mapping[Backend, Way] = {
    Backend.NATIVE: agree_on_the_check,
    Backend.SOLVER: agree_on_the_relation,
    Backend.RUNTIME: agree_on_the_runtime,
}
