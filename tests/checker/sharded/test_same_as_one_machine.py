"""A search over any number of shards reports what the search on one machine does."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.checker.explicit.random_models import Maker, model_of
from tests.checker.explicit.tallies import counted
from tests.checker.sharded.both_ways import model, on_one_machine, over_shards, timeless
from tests.thorough import by_turns

from stagewright.checker.explicit.exploration import Exploration, Watch, Watched
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.native.search import explore as explore_here
from stagewright.checker.explicit.runs import paths_to, run_along
from stagewright.checker.limits import Limits, Progress, Stop
from stagewright.checker.sharded.check import WHOLE_GRAPH, check_sharded
from stagewright.checker.sharded.scheduler import InThisProcess
from stagewright.checker.sharded.search import Place, explore
from stagewright.checker.sharded.tasks import LevelPart
from stagewright.spec.verdict import Outcome


@pytest.mark.parametrize("shards", by_turns([1, 2, 7]))
@pytest.mark.parametrize(
    ("name", "sizes", "states"),
    [
        ("two_phase_commit.py", {"manager": 5}, 8_832),
        ("broken.py:Migration", {}, 72),
        ("broken.py:Workers", {}, 64),
    ],
)
def test_the_number_of_shards_changes_nothing(
    name: str, sizes: dict[str, int], states: int, shards: int, tmp_path: Path
) -> None:
    definition, scope = model(name, **sizes)
    expected = on_one_machine(definition, scope)
    found = over_shards(definition, scope, tmp_path, shards)
    assert found.states == states
    assert timeless(found) == timeless(expected)


def test_a_larger_model(tmp_path: Path) -> None:
    definition, scope = model("tablet_barrier.py", tablet=3, node=3)
    levels: list[list[LevelPart]] = []
    found = over_shards(
        definition, scope, tmp_path, 3, on_level=lambda _, parts: levels.append(parts)
    )
    assert timeless(found) == timeless(on_one_machine(definition, scope))
    shares = [sum(parts[shard].states for parts in levels) for shard in range(3)]
    assert sum(shares) == 171_458
    assert max(shares) < 1.05 * min(shares)  # a hash divides the states evenly


def test_the_broken_models_show_runs_of_every_kind(tmp_path: Path) -> None:
    shown: set[str] = set()
    for name in ("Migration", "Workers"):
        report = over_shards(*model(f"broken.py:{name}"), tmp_path / name, 3)
        shown |= {v.name for v in report.verdicts if v.run is not None}
    wanted = {
        "reads_are_complete",
        "stages_go_up",
        "leader_works",
        "assigned values stay in bounds",
    }
    assert wanted <= shown


def levels(found: Exploration) -> tuple[object, ...]:
    """Everything that a finished search says, but not how states are numbered."""
    return (
        found.states,
        found.transitions,
        found.stopped,
        found.exhausted,
        found.depth,
        counted(found.tally),
    )


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_on_random_models_every_number_note_and_run_is_the_same(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    maker = Maker(seed, narrow=True)
    steps = [maker.step(i) for i in range(maker.chance.randint(1, 6))]
    ground = model_of(maker.cells, maker.builder, steps, maker.state())
    states = [maker.condition(2) for _ in range(4)]
    of_steps = [maker.condition(2, new=True) for _ in range(4)]
    watch = Watch(
        states=Watched(states[:2], states[2:3], states[3:]),
        steps=Watched(of_steps[:2], of_steps[2:3], of_steps[3:]),
    )
    limits = Limits(
        depth=maker.chance.choice((None, 0, 1, 3)), stop_at_first=maker.chance.random() < 0.3
    )
    expected = explore_here(NativeEngine(ground), watch, Stop(limits))
    place = Place(
        InThisProcess(), tmp_path_factory.mktemp("work"), seed % 4 + 1, 1, lasting=False, alone=0
    )
    found = explore(NativeEngine(ground), watch, Stop(limits), place, {"machine": "random"})
    assert levels(found) == levels(expected)
    for theirs, ours in (
        *zip(expected.first_false, found.first_false, strict=True),
        (expected.deadlock, found.deadlock),
    ):
        assert (theirs is None) == (ours is None)
        if theirs is not None and ours is not None:
            wanted = run_along(expected, paths_to(expected, [theirs])[theirs])
            assert run_along(found, paths_to(found, [ours])[ours]) == wanted
    for edge, other in zip(expected.bad_edges, found.bad_edges, strict=True):
        assert (edge is None) == (other is None)
        if edge is not None and other is not None:
            assert (expected.words[:, edge.target] == found.words[:, other.target]).all()


def test_states_of_several_words(tmp_path: Path) -> None:
    definition, scope = model("tablet_barrier.py", tablet=5, node=4)
    limits = Limits(depth=6)
    found = over_shards(definition, scope, tmp_path, 3, limits=limits)
    assert timeless(found) == timeless(on_one_machine(definition, scope, limits))
    assert found.states > 10_000


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("name", "sizes", "orbits"),
    [
        ("two_phase_commit.py", {"manager": 8}, 1_461),
        ("tablet_barrier.py", {"tablet": 3, "node": 2}, None),
        ("broken.py:Migration", {"node": 3}, None),
        ("broken.py:Workers", {"task": 3}, None),
    ],
)
def test_orbits_are_searched_and_their_runs_reported(
    name: str, sizes: dict[str, int], orbits: int | None, shards: int, tmp_path: Path
) -> None:
    definition, scope = model(name, **sizes)
    expected = on_one_machine(definition, scope, symmetry=True)
    found = over_shards(definition, scope, tmp_path, shards, symmetry=True)
    assert timeless(found) == timeless(expected)
    assert found.reduction is not None
    assert found.reduction.used
    if orbits is not None:
        assert found.states == orbits


def test_the_first_levels_are_searched_here_and_the_others_elsewhere(tmp_path: Path) -> None:
    definition, scope = model("two_phase_commit.py", manager=5)
    again: list[int] = []
    found = over_shards(
        definition,
        scope,
        tmp_path,
        2,
        alone=1_000,
        on_level=lambda _, parts: again.append(sum(part.again for part in parts)),
    )
    assert timeless(found) == timeless(on_one_machine(definition, scope))
    assert 0 < sum(again) <= 1_000  # told once more when tables went elsewhere


def test_goals_and_liveness_are_said_to_be_undecided(tmp_path: Path) -> None:
    definition, scope = model("broken.py:Migration")
    report = over_shards(definition, scope, tmp_path, 2, properties=())
    names = [p.name for p in definition.properties]
    assert [v.name for v in report.verdicts][: len(names)] == names
    whole = {v.name for v in report.verdicts if v.note == WHOLE_GRAPH}
    assert whole == {"back_to_rest", "every_migration_ends"}
    assert {v.outcome for v in report.verdicts if v.name in whole} == {Outcome.UNDECIDED}


def test_a_limit_of_states_ends_the_search_between_levels(tmp_path: Path) -> None:
    definition, scope = model("two_phase_commit.py", manager=5)
    report = over_shards(definition, scope, tmp_path, 2, limits=Limits(states=1_000))
    assert report.note == "not exhausted: the limit of 1,000 states was reached"
    depth = Limits(depth=report.depth)
    assert report.states == on_one_machine(definition, scope, depth).states >= 1_000
    assert report.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("share", [0, 1, 2, 3])
def test_a_search_that_is_broken_off_reports_the_levels_that_are_done(
    share: int, tmp_path: Path
) -> None:
    definition, scope = model("two_phase_commit.py", manager=5)
    stop = Stop(Limits())

    def interrupt(progress: Progress) -> None:
        stop.interrupted = progress.states >= share * 1_000

    place = Place(InThisProcess(), tmp_path, 2, 1, lasting=False, alone=0)
    report = check_sharded(
        definition, scope, place, stop, progress=interrupt, properties=["consistent"]
    )
    assert report.note == "not exhausted: interrupted"
    assert report.states == 0 or report.states >= share * 1_000
    said = report.verdicts[0].note
    if share:
        assert said == f"no violation up to depth {report.depth} (not exhausted)"
        limits = Limits(depth=report.depth)
        assert report.states == on_one_machine(definition, scope, limits).states
    else:
        assert (report.states, said) == (0, "nothing was searched (not exhausted)")
