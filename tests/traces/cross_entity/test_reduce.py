"""What a system's invariant says of single entities is what the reference interpreter says of the system."""

import random
from itertools import product
from typing import Any

import pytest

from stagewright.spec import Machine
from stagewright.spec.define import define
from stagewright.spec.entities import Entity
from stagewright.spec.grounding.encoding import encode
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.values import FrozenMap
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.cross_entity.system import Together, together
from stagewright.traces.events.observability import Recording
from stagewright.traces.options import unbounded_scope
from stagewright.traces.replay.related.formula import ClassOf, evaluate


def evaluator_of(machine: type[Machine]) -> Evaluator:
    definition = define(machine)
    scope = unbounded_scope(definition)
    model = ground(definition, scope)
    return Evaluator(definition, scope, model, of_model(model, Recording()))


def parts_of(system: Any) -> dict[tuple[str, str, str], Evaluator]:
    machines = (system.replicas.machine, system.tracks.machine)
    return {(m.__name__, "", ""): evaluator_of(m) for m in machines}


@pytest.fixture
def watched(table: type[Machine]) -> Together:
    return together([table], parts_of(table))


def test_what_no_trace_reports_is_listed_with_the_variable(watched: Together) -> None:
    (one,) = watched.unevaluated
    assert one.name == "the_epoch_fits"
    assert "`epoch`" in one.reason


def test_only_what_speaks_of_each_entity_by_itself_is_local(watched: Together) -> None:
    assert [p.name for p in watched.properties if p.local] == ["ready_is_complete"]


def test_a_property_counts_no_more_entities_than_it_compares_with(watched: Together) -> None:
    weights = {p.name: p.weight for p in watched.properties}
    assert weights["one_is_pending"] == 2
    assert weights["nothing_is_built_while_splitting"] == 1
    assert weights["hosts_differ"] == 2
    assert weights["more_complete_than_pending"] > 1_000_000


def test_every_property_means_what_the_interpreter_says(
    table: type[Machine], watched: Together
) -> None:
    definition = define(table)
    rng = random.Random(1)
    views = {name: view for (name, *_), view in watched.views.items()}
    evaluators = {name: evaluator for (name, *_), evaluator in parts_of(table).items()}
    broken = set[str]()
    for slots, lanes in product((1, 2, 3, 4), (1, 2)):
        scope = scope_of(definition, {"Slot": slots, "Lane": lanes})
        interpreter = Interpreter(definition, scope)
        for _ in range(60):
            state, entities = _random_state(rng, definition, evaluators, slots, lanes)
            for prop in watched.properties:
                counts: dict[ClassOf, int] = {}
                for machine, part in entities:
                    for family, (name, atoms) in enumerate(prop.families):
                        if name == machine:
                            (values,) = (
                                views[name].seen([encode(evaluators[name].model, part)]).possible
                            )
                            whose = ClassOf(family, tuple(values[a] for a in atoms))
                            counts[whose] = counts.get(whose, 0) + 1
                holds, _ = interpreter.holds(definition.property(prop.name), state)
                assert bool(evaluate(prop.formula, counts)) == holds, (prop.name, state)
                if not holds:
                    broken.add(prop.name)
    assert broken == {p.name for p in watched.properties}


def _random_state(
    rng: random.Random, definition: Any, evaluators: dict[str, Evaluator], slots: int, lanes: int
) -> tuple[Any, list[tuple[str, Any]]]:
    """A state of the system, and those of its parts."""
    values: dict[str, Any] = {"epoch": rng.randrange(4)}
    entities: list[tuple[str, Any]] = []
    for name, machine, size in (("replicas", "Replica", slots), ("tracks", "Track", lanes)):
        model = evaluators[machine].model
        states = [
            model.decode(tuple(rng.randint(c.low, c.high) for c in model.cells))
            for _ in range(size)
        ]
        entities += [(machine, state) for state in states]
        kind: type[Entity] = definition.variable(f"{name}.{next(iter(states[0]))}").sort.key.kind
        for variable in states[0]:
            values[f"{name}.{variable}"] = FrozenMap(
                {kind(i): state[variable] for i, state in enumerate(states)}
            )
    return FrozenMap(values), entities
