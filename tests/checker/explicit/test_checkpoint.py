"""A search that was stopped, taken up again, ends as one that was not."""

import json
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.explicit.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.loading import load
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.verdict import Outcome, Report

MODELS = Path(__file__).resolve().parents[2] / "models"
engines = pytest.mark.parametrize("engine", [EngineKind.NUMPY, EngineKind.NATIVE])


def barrier() -> tuple[Definition, Scope]:
    definition = load(str(MODELS / "tablet_barrier.py"))
    return definition, scope_of(definition, {"tablet": 3, "node": 3})


def told(report: Report) -> object:
    """Everything but the time."""
    verdicts = [(v.name, v.outcome, v.note, v.run, v.arguments) for v in report.verdicts]
    numbers = (report.states, report.transitions, report.depth, report.exhausted, report.note)
    return verdicts, numbers, report.coverage


@engines
@pytest.mark.parametrize("keep", [True, False])
def test_stopped_again_and_again_it_ends_with_the_same_report(
    tmp_path: Path, engine: EngineKind, keep: bool
) -> None:
    definition, scope = barrier()
    properties = ["at_most_one_behind", "no deadlock"]
    expected = check(definition, scope, engine=engine, properties=properties)
    rounds = 0
    while True:
        rounds += 1
        report = check(
            definition,
            scope,
            engine=engine,
            workers=1 + rounds % 2,
            properties=properties,
            keep=keep,
            limits=Limits(states=60_000 * rounds),
            checkpoint=Checkpoint(tmp_path, seconds=0),
        )
        if report.exhausted:
            break
        assert report.note.startswith("not exhausted: the limit of")
    assert rounds > 2
    assert told(report) == told(expected)


@engines
@pytest.mark.parametrize("name", ["Migration", "Workers"])
def test_a_violation_found_before_is_told_after(
    tmp_path: Path, engine: EngineKind, name: str
) -> None:
    definition = load(f"{MODELS / 'broken.py'}:{name}")
    scope = scope_of(definition)
    expected = check(definition, scope, engine=engine)
    for depth in range(1, expected.depth, 3):
        limits = Limits(depth=depth)
        check(definition, scope, engine=engine, limits=limits, checkpoint=Checkpoint(tmp_path))
    report = check(definition, scope, engine=engine, checkpoint=Checkpoint(tmp_path))
    assert told(report) == told(expected)
    assert report.outcome is Outcome.VIOLATED


def test_an_engine_takes_up_what_the_other_one_wrote(tmp_path: Path) -> None:
    definition, scope = barrier()
    expected = check(definition, scope)
    stopped = Limits(states=90_000)
    check(definition, scope, limits=stopped, checkpoint=Checkpoint(tmp_path))
    for engine in (EngineKind.NUMPY, EngineKind.NATIVE):
        report = check(definition, scope, engine=engine, checkpoint=Checkpoint(tmp_path))
        assert told(report) == told(expected)


def test_a_finished_search_is_told_again_without_searching(tmp_path: Path) -> None:
    definition, scope = barrier()
    expected = check(definition, scope, checkpoint=Checkpoint(tmp_path))
    again = check(definition, scope, checkpoint=Checkpoint(tmp_path), limits=Limits(states=1))
    assert told(again) == told(expected)


@pytest.mark.parametrize("damage", ["cut", "gone", "record", "other"])
def test_damaged_or_foreign_files_are_refused(tmp_path: Path, damage: str) -> None:
    definition, scope = barrier()
    check(definition, scope, limits=Limits(depth=8), checkpoint=Checkpoint(tmp_path, seconds=0))
    states, record = sorted(tmp_path.glob("states-*")), tmp_path / "search.json"
    assert len(states) > 1
    match damage:
        case "cut":
            states[1].write_bytes(states[1].read_bytes()[:-8])
        case "gone":
            states[0].unlink()
        case "record":
            record.write_text(record.read_text()[:-5])
        case _:
            content = json.loads(record.read_text())
            content["tally"]["fired"].append(1)
            record.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        check(definition, scope, checkpoint=Checkpoint(tmp_path))
    assert str(tmp_path) in caught.value.problem
    assert caught.value.help == "start the search again, with another directory"
