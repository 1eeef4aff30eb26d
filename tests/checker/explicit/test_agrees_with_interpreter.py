"""The search finds exactly the states, steps and coverage that the reference interpreter finds."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from stagewright.checker.coverage import coverage_of
from stagewright.checker.engines import EngineKind, search
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.explicit.runs import decoded, step_of
from stagewright.checker.limits import Limits, Stop
from stagewright.spec import Scope, scope_of
from stagewright.spec.definition import Action, Definition
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Environment, Interpreter
from stagewright.spec.loading import load
from stagewright.spec.nodes import variables_in
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

MODELS = Path(__file__).resolve().parents[2] / "models"
CASES = [
    pytest.param(("two_phase_commit", "", {"manager": 2}), id="two-phase commit"),
    pytest.param(("ewd840", "three", {}), id="EWD 840"),
    pytest.param(("tablet_barrier", "", {"tablet": 1, "node": 2}), id="tablet barrier"),
]

engines = pytest.mark.parametrize("kind", [EngineKind.NUMPY, EngineKind.NATIVE])

Graph = dict[State, list[tuple[Step, State]]]


def by_interpreter(definition: Definition, scope: Scope) -> Graph:
    interpreter = Interpreter(definition, scope)
    graph: Graph = {}
    waiting = list(interpreter.initial_states())
    while waiting:
        state = waiting.pop()
        if state not in graph:
            graph[state] = list(interpreter.successors(state))
            waiting += [new for _, new in graph[state]]
    return graph


def refusing(
    interpreter: Interpreter, action: Action, state: State, chosen: Environment
) -> list[str]:
    """The false requirements; of a choice that can never be made, those that are so always."""
    false = [
        r
        for r in action.requirements
        if not interpreter.evaluate(r.condition, state, environment=chosen)
    ]
    always = [r for r in false if not variables_in(r.condition)]
    return [r.name for r in always or false]


def by_search(definition: Definition, scope: Scope, kind: EngineKind) -> Exploration:
    return search(ground(definition, scope), Watch(graph=True), Stop(Limits()), kind=kind)


@dataclass(frozen=True)
class Case:
    """A definition at a scope, and its graph as the interpreter finds it."""

    definition: Definition
    scope: Scope
    graph: Graph


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    model, profile, sizes = request.param
    definition = load(str(MODELS / f"{model}.py"), profile)
    scope = scope_of(definition, sizes)
    return Case(definition, scope, by_interpreter(definition, scope))


@engines
def test_the_same_states_and_steps_are_found(case: Case, kind: EngineKind) -> None:
    found = by_search(case.definition, case.scope, kind)
    states = [decoded(found, i) for i in range(found.states)]
    assert len(set(states)) == found.states
    assert set(states) == set(case.graph)
    graph, steps = found.graph, found.engine.model.steps
    edges = zip(graph.sources.tolist(), graph.steps.tolist(), graph.targets.tolist(), strict=True)
    ours = Counter((states[a], step_of(steps[s]), states[b]) for a, s, b in edges)
    assert ours == Counter((a, s, b) for a, after in case.graph.items() for s, b in after)


@engines
def test_the_same_coverage_is_counted(case: Case, kind: EngineKind) -> None:
    definition = case.definition
    interpreter = Interpreter(definition, case.scope)
    fired: Counter[str] = Counter()
    false: Counter[tuple[str, str]] = Counter()
    for state, after in case.graph.items():
        fired.update(step.action for step, _ in after)
        for action in definition.actions:
            for environment in interpreter.instances(action.params):
                for name in refusing(interpreter, action, state, environment):
                    false[action.name, name] += 1
    coverage = coverage_of(definition, by_search(definition, case.scope, kind))
    assert dict(coverage.fired) == {a.name: fired[a.name] for a in definition.actions}
    assert {k: n for k, n in coverage.requirement_false.items() if n} == dict(false)
