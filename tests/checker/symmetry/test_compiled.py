"""The compiled canonical form is the one that NumPy computes, and a check may use it."""

from pathlib import Path

import numpy as np
import pytest
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.explicit.exploration import Watch
from stagewright.checker.explicit.native.code.jit import Module
from stagewright.checker.explicit.native.code.llvm_text import MODULE_END
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.checker.explicit.packing import Layout, Words
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.symmetry.canonical import Canonical
from stagewright.checker.symmetry.compiled import canonical_source
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.permutations.detection import detect
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.spec import scope_of
from stagewright.spec.define import define
from stagewright.spec.definition import NO_DEADLOCK, Definition, PropertyKind
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Reduction, Run

MODELS = Path(__file__).resolve().parents[2] / "models"
MACHINES = Path(__file__).parent / "machines.py"


def compiled(layout: Layout, symmetry: Symmetry, states: Words) -> Words:
    module = Module(canonical_source(layout, symmetry) + MODULE_END)
    given = np.ascontiguousarray(states.T)
    module.function("canonical", 2)(given.ctypes.data, given.shape[0])
    return given.T


def agree(definition: Definition, sizes: dict[str, int], states: int = 20_000) -> Symmetry:
    """Search as far as that, and compare the forms of all states and of all their permutations."""
    model = ground(definition, scope_of(definition, sizes))
    symmetry = detect(model).symmetry
    assert symmetry.groups
    engine = numpy_engine(model)
    found = explore(engine, Watch(deadlock=False), Stop(Limits(states=states))).words
    canonical = Canonical(engine.layout, symmetry)
    expected = canonical(found)
    assert (compiled(engine.layout, symmetry, found) == expected).all()
    assert (compiled(engine.layout, symmetry, expected) == expected).all()
    return symmetry


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("two_phase_commit", {"manager": 2}),
        ("two_phase_commit", {"manager": 7}),
        ("tablet_barrier", {"tablet": 3, "node": 3}),
        ("tablet_barrier", {"tablet": 2, "node": 4}),
        ("tablet_barrier", {"tablet": 5, "node": 4}),
    ],
)
def test_on_models(model: str, sizes: dict[str, int]) -> None:
    agree(load(str(MODELS / f"{model}.py")), sizes)


@pytest.mark.parametrize("nodes", some_of([2, 3, 4]))
def test_on_the_shipped_cluster(nodes: int) -> None:
    symmetry = agree(define(TabletCluster, "scylla-2026.2"), {"node": nodes})
    assert symmetry.tried  # replicas are related to nodes: sorting is not enough


@pytest.mark.parametrize("name", ["Gossip", "Market"])
def test_on_machines_that_relate_members_to_each_other(name: str) -> None:
    agree(load(f"{MACHINES}:{name}"), {})


@pytest.mark.parametrize("name", ["Migration", "Workers"])
@pytest.mark.parametrize("engine", [EngineKind.NUMPY, EngineKind.NATIVE])
def test_a_check_on_orbits_breaks_the_same_promises_as_near_with_runs_that_are_real(
    name: str, engine: EngineKind
) -> None:
    definition = load(f"{MODELS / 'broken.py'}:{name}")
    scope = scope_of(definition)
    safety = [
        p.name
        for p in definition.properties
        if p.kind in (PropertyKind.INVARIANT, PropertyKind.STEP)
    ]
    asked = [*safety, NO_DEADLOCK, IN_BOUNDS]
    full = check(definition, scope, properties=asked, engine=engine)
    reduced = check(definition, scope, properties=asked, engine=engine, symmetry=True)
    assert reduced.reduction is not None
    assert reduced.states < full.states if reduced.reduction.used else reduced.states == full.states
    for one, other in zip(full.verdicts, reduced.verdicts, strict=True):
        assert (one.name, one.outcome) == (other.name, other.outcome)
        if one.run is not None:
            assert other.run is not None
            assert len(other.run.steps) == len(one.run.steps)
            assert is_run(Interpreter(definition, scope), other.run)


def is_run(interpreter: Interpreter, run: Run) -> bool:
    """Whether the interpreter takes every step."""
    if run.states[0] not in set(interpreter.initial_states()):
        return False
    return all(
        (step, new) in set(interpreter.successors(old))
        for old, step, new in zip(run.states, run.steps, run.states[1:], strict=False)
    )


def test_engines_and_workers_agree_on_orbits() -> None:
    definition = load(str(MODELS / "tablet_barrier.py"))
    scope = scope_of(definition)
    reports = [
        check(definition, scope, symmetry=True, engine=engine, workers=workers)
        for engine, workers in (
            (EngineKind.NUMPY, 1),
            (EngineKind.NATIVE, 1),
            (EngineKind.NATIVE, 3),
        )
    ]
    assert len({(r.states, r.transitions, r.depth, r.coverage) for r in reports}) == 1
    assert reports[0].states == 7_507
    assert reports[0].reduction == Reduction(FrozenMap({"Tablet": 3, "Node": 3}), True, "", 171_458)


def test_fairness_is_never_decided_on_orbits() -> None:
    definition = define(TabletCluster, "scylla-2026.2")
    scope = scope_of(definition)
    report = check(definition, scope, symmetry=True, limits=Limits(depth=2))
    assert report.reduction is not None
    assert not report.reduction.used
    assert "follows single members through time" in report.reduction.reason
