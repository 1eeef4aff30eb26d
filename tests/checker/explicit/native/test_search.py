"""The native search finds what the search by batches finds: every number, note and state, at any scale."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.checker.explicit.random_models import Maker, model_of
from tests.checker.explicit.tallies import counted
from tests.thorough import examples

from stagewright.checker.check import check, watch_for
from stagewright.checker.engines import EngineKind
from stagewright.checker.explicit.exploration import Exploration, Watch, Watched
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.native.search import explore
from stagewright.checker.explicit.native.visited_set import visited
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.checker.explicit.search import explore as explore_in_batches
from stagewright.checker.limits import Limits, Progress, Stop
from stagewright.spec.definition import NO_DEADLOCK, PropertyKind
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of

MODELS = Path(__file__).resolve().parents[3] / "models"
MOST = 3_000  # states of a random model


def summary(found: Exploration) -> tuple[object, ...]:
    """Everything that a search says."""
    tally = found.tally
    return (
        tally.states,
        tally.expanded,
        tally.transitions,
        tally.stopped,
        counted(tally),
    )


@settings(max_examples=examples(120))
@given(seed=st.integers(0, 2**32))
def test_on_random_models_every_number_and_note_is_the_same(seed: int) -> None:
    maker = Maker(seed, narrow=True)
    steps = [maker.step(i) for i in range(maker.chance.randint(1, 6))]
    model = model_of(maker.cells, maker.builder, steps, maker.state())
    some, many = maker.chance.choice([(3, 2), (3, 2), (135, 70)])  # more than a mask has bits
    states = [maker.condition(2) for _ in range(some)]
    steps_ = [maker.condition(2, new=True) for _ in range(some)]
    watch = Watch(
        states=Watched(states[1:many], states[:1], states[many:]),
        steps=Watched(steps_[1:many], steps_[:1], steps_[many:]),
        graph=True,
    )
    limits = Limits(depth=maker.chance.choice((None, 0, 1, 3)), states=MOST)
    expected = explore_in_batches(numpy_engine(model), watch, Stop(limits))
    if expected.stopped.startswith("the limit"):
        return  # which states were expanded until then depends on the order
    for workers in (1, 2):
        found = explore(NativeEngine(model), watch, Stop(limits), workers=workers)
        assert summary(found) == summary(expected)
        assert (found.words == expected.words).all()
        assert found.bad_edges == expected.bad_edges
        for name in ("sources", "targets", "steps", "overflowing"):
            assert getattr(found.graph, name).tolist() == getattr(expected.graph, name).tolist()


def model_named(name: str, sizes: dict[str, int]) -> GroundModel:
    definition = load(str(MODELS / f"{name}.py"))
    return ground(definition, scope_of(definition, sizes))


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("keep", [True, False])
def test_the_number_of_workers_changes_nothing(workers: int, keep: bool) -> None:
    model = model_named("tablet_barrier", {"tablet": 3, "node": 3})
    watch = watch_for(model, deadlock=True)
    watch = Watch(watch.states, watch.steps)
    expected = explore_in_batches(numpy_engine(model), watch, Stop(Limits()))
    found = explore(NativeEngine(model), watch, Stop(Limits()), workers=workers, keep=keep)
    assert summary(found) == summary(expected)
    assert found.states == 171_458


@pytest.mark.parametrize("name", ["Migration", "Workers"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_that_forgets_finds_the_same_shortest_run(name: str, workers: int) -> None:
    definition = load(f"{MODELS / 'broken.py'}:{name}")
    scope = scope_of(definition)
    safety = [
        p.name
        for p in definition.properties
        if p.kind in (PropertyKind.INVARIANT, PropertyKind.STEP)
    ]
    kept, forgetful = (
        check(
            definition,
            scope,
            properties=[*safety, NO_DEADLOCK],
            engine=EngineKind.NATIVE,
            workers=workers,
            keep=keep,
        )
        for keep in (True, False)
    )
    assert [v.run for v in kept.verdicts] == [v.run for v in forgetful.verdicts]
    assert any(v.run is not None for v in kept.verdicts)


def test_states_of_many_words_are_found_by_place() -> None:
    model = model_named("tablet_barrier", {"tablet": 5, "node": 4})
    engine = NativeEngine(model)
    assert engine.layout.words == 2
    limits = Limits(depth=7)
    watch = Watch(deadlock=False)
    expected = explore_in_batches(numpy_engine(model), watch, Stop(limits))
    for workers in (1, 2):
        found = explore(engine, watch, Stop(limits), workers=workers)
        assert summary(found) == summary(expected)
        assert (found.words == expected.words).all()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(states=1_000), "the limit of 1,000 states was reached"),
        (Limits(seconds=1e-6), "the time limit of 1e-06 s was reached"),
        (Limits(memory=1), "the memory limit of 0 MiB was reached"),
        (Limits(depth=4), "the depth limit of 4 was reached"),
    ],
)
def test_a_limit_ends_the_search_and_is_named(limits: Limits, said: str) -> None:
    model = model_named("tablet_barrier", {"tablet": 3, "node": 3})
    found = explore(NativeEngine(model), Watch(deadlock=False), Stop(limits), workers=2)
    assert found.stopped == said
    assert not found.exhausted
    assert found.states < 171_458


def test_the_memory_limit_stops_the_table_from_growing_past_it() -> None:
    model = model_named("tablet_barrier", {"tablet": 4, "node": 3})
    summary: list[Progress] = []
    limits = Limits(memory=40 << 20)
    found = explore(NativeEngine(model), Watch(deadlock=False), Stop(limits), summary.append)
    assert found.stopped == "the memory limit of 40 MiB was reached"
    assert found.states > 500_000
    a_block = 1 << 12
    assert max(progress.memory for progress in summary) <= (40 << 20) + a_block


@pytest.mark.parametrize("size", [1 << 21, 1 << 23])
def test_little_address_space_ends_the_search_with_words(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(visited, "_ADDRESS_SPACE", size)
    model = model_named("tablet_barrier", {"tablet": 4, "node": 3})
    found = explore(NativeEngine(model), Watch(deadlock=False), Stop(Limits()), workers=2)
    assert found.stopped == "the system grants no more address space"
    assert 0.1 < found.states * 8 / size <= 1
    assert found.words.shape[1] == found.states


def test_progress_grows_and_ends_with_the_whole() -> None:
    model = model_named("tablet_barrier", {"tablet": 3, "node": 3})
    summary: list[Progress] = []
    found = explore(NativeEngine(model), Watch(deadlock=False), Stop(Limits()), summary.append)
    assert [p.states for p in summary] == sorted(p.states for p in summary)
    assert (summary[-1].states, summary[-1].frontier) == (found.states, 0)
    assert summary[-1].memory > 0


def test_an_interrupt_is_heard_between_rounds() -> None:
    model = model_named("tablet_barrier", {"tablet": 4, "node": 3})
    stop = Stop(Limits())

    def interrupt(progress: Progress) -> None:
        stop.interrupted = progress.states > 10_000

    found = explore(NativeEngine(model), Watch(deadlock=False), stop, interrupt, workers=2)
    assert found.stopped == "interrupted"
    assert 10_000 < found.states < 7_024_760
    assert found.words.shape[1] == found.states == np.unique(found.words).size
