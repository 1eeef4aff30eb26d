"""A search that was stopped, taken up again, ends as one that was not."""

import json
import resource
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.limits import Limits
from stagewright.spec import Machine, NumberVar, action, number, require
from stagewright.spec.define import define
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


def summary(report: Report) -> object:
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
    assert summary(report) == summary(expected)


@engines
@pytest.mark.parametrize("name", ["Migration", "Workers"])
def test_a_violation_found_before_is_reported_after(
    tmp_path: Path, engine: EngineKind, name: str
) -> None:
    definition = load(f"{MODELS / 'broken.py'}:{name}")
    scope = scope_of(definition)
    expected = check(definition, scope, engine=engine)
    for depth in range(1, expected.depth, 3):
        limits = Limits(depth=depth)
        check(definition, scope, engine=engine, limits=limits, checkpoint=Checkpoint(tmp_path))
    report = check(definition, scope, engine=engine, checkpoint=Checkpoint(tmp_path))
    assert summary(report) == summary(expected)
    assert report.outcome is Outcome.VIOLATED


def test_an_engine_takes_up_what_the_other_one_wrote(tmp_path: Path) -> None:
    definition, scope = barrier()
    expected = check(definition, scope)
    stopped = Limits(states=90_000)
    check(definition, scope, limits=stopped, checkpoint=Checkpoint(tmp_path))
    for engine in (EngineKind.NUMPY, EngineKind.NATIVE):
        report = check(definition, scope, engine=engine, checkpoint=Checkpoint(tmp_path))
        assert summary(report) == summary(expected)


def test_a_finished_search_is_reported_again_without_searching(tmp_path: Path) -> None:
    definition, scope = barrier()
    expected = check(definition, scope, checkpoint=Checkpoint(tmp_path))
    again = check(definition, scope, checkpoint=Checkpoint(tmp_path), limits=Limits(states=1))
    assert summary(again) == summary(expected)


@pytest.mark.parametrize("damage", ["cut", "gone", "flipped", "record", "other"])
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
        case "flipped":
            content = bytearray(states[1].read_bytes())
            content[3] ^= 1
            states[1].write_bytes(content)
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


def test_states_of_a_search_that_died_before_its_next_record_are_in_nobodys_way(
    tmp_path: Path,
) -> None:
    definition, scope = barrier()
    expected = check(definition, scope)
    check(definition, scope, limits=Limits(depth=8), checkpoint=Checkpoint(tmp_path))
    (states,) = tmp_path.glob("states-*")
    count = int(states.name.rsplit("-", 1)[1])
    for first, after in ((0, count - 1), (0, count + 1), (count, count + 9), (count, 10**6)):
        (tmp_path / f"states-{first:020}-{after:020}").write_bytes(bytes(8))
    check(definition, scope, limits=Limits(depth=10), checkpoint=Checkpoint(tmp_path))
    report = check(definition, scope, checkpoint=Checkpoint(tmp_path))
    assert summary(report) == summary(expected)


@engines
@pytest.mark.parametrize("keep", [True, False])
def test_a_place_that_takes_no_more_ends_the_writing_and_not_the_search(
    tmp_path: Path, engine: EngineKind, keep: bool
) -> None:
    definition, scope = barrier()
    names = ["at_most_one_behind", "no deadlock"]
    expected = check(definition, scope, engine=engine, properties=names)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoint = Checkpoint(tmp_path, seconds=0)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        report = check(
            definition, scope, engine=engine, properties=names, keep=keep, checkpoint=checkpoint
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert checkpoint.failed == "File too large"
    assert summary(report) == summary(expected)
    assert not list(tmp_path.glob(".new-*"))
    again = Checkpoint(tmp_path)
    assert again.exists
    assert summary(check(definition, scope, properties=names, checkpoint=again)) == summary(
        expected
    )


class Thin(Machine):
    """A state a level."""

    count: NumberVar = number(0, 2_000, init=0)

    @action
    def on(self) -> None:
        """One more."""
        require(self.count < 2_000, "there is one")
        self.count = self.count + 1


def test_a_search_of_many_levels_that_forgets_is_written_in_few_files(tmp_path: Path) -> None:
    definition = define(Thin)
    checkpoint = Checkpoint(tmp_path, seconds=3_600)
    report = check(definition, scope_of(definition), keep=False, checkpoint=checkpoint)
    assert report.depth == 2_000
    assert len(list(tmp_path.iterdir())) == 2
