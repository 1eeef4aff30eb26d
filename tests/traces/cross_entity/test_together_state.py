"""Properties over several entities, evaluated run by run: in the end they have the verdicts of one run over all."""

import dataclasses
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.traces.cross_entity.conftest import Replica, Table, Track

from stagewright.spec.define import define
from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

Runs = Callable[..., list[TraceReport]]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Evaluates some events in a run, then the next ones, and so on; with one state, or all in one run without."""

    def evaluated(
        *files: list[Event], state: str = "state", group: str = "^(.):", **options: object
    ) -> list[TraceReport]:
        definitions = {"Replica": define(Replica), "Track": define(Track)}
        asked = Options(**{"together": (Table,), "group": group, **options})  # type: ignore[arg-type]
        paths, found = list[Path](), list[TraceReport]()
        for number, events in enumerate(files):
            paths.append(tmp_path / f"{state}-{number}.jsonl")
            paths[-1].write_text("".join(e.to_json() + "\n" for e in events))
            found.append(
                validate(
                    paths,
                    lambda machine, _: definitions[machine],
                    asked,
                    engine=Embedded(2),
                    state=tmp_path / state if state else None,
                )
            )
        return found

    return evaluated


def properties(report: TraceReport) -> object:
    assert report.together is not None
    return report.together.properties


def broken(*reports: TraceReport) -> set[tuple[object, ...]]:
    """Which groups have broken what, and when."""
    return {
        (g.name, g.group, g.time)
        for report in reports
        if report.together is not None
        for g in report.together.broken
    }


def without_places(report: TraceReport) -> list[object]:
    assert report.together is not None
    return [dataclasses.replace(p, first_open=None) for p in report.together.properties]


@pytest.mark.parametrize("seed", range(4))
def test_runs_find_in_the_end_what_one_run_over_all_finds(
    recorders: Any, runs: Runs, seed: int
) -> None:
    rng, recorder = random.Random(seed), recorders()
    recorder.start(*(f"{group}:{one}" for group in "abc" for one in ("r0", "r1", "r2", "t0")))
    recorder.walk(rng, 120)
    events: list[Event] = recorder.end()
    for _ in range(seed % 4):
        events.pop(rng.randrange(len(events) - 12))  # no end: without one a trace may go on
    if seed % 3 == 1:  # files of later runs have earlier events
        events = rng.sample(events, len(events))
    if seed % 3 == 2:  # a jump: what is observed after it counts all the same
        i = rng.randrange(20, len(events) - 20)
        seen = {**events[i].observed, "complete": True} if "complete" in events[i].observed else {}
        events[i] = dataclasses.replace(events[i], observed=seen)
    cuts = [0, *sorted(rng.sample(range(1, len(events)), 4)), len(events)]
    pieces = [events[begin:end] for begin, end in itertools.pairwise(cuts)]
    (whole,) = runs(events, state="")
    nights = runs(*pieces)
    assert without_places(nights[-1]) == without_places(whole)
    assert broken(whole) <= broken(*nights)
    reported_twice = {
        g for a, b in itertools.combinations(nights, 2) for g in broken(a) & broken(b)
    }
    assert not reported_twice or seed % 3 == 1  # what late events took back may come again
    assert nights[-1].verdicts == whole.verdicts


def test_what_was_broken_is_reported_once_and_counted_on(recorder: Any, runs: Runs) -> None:
    recorder.start("a:r0", "a:r1")
    recorder.do("a:r0", "begin", n="node0")
    recorder.do("a:r1", "begin", n="node1")
    cut = len(recorder.events)
    events = recorder.end()
    first, second = runs(events[:cut], events[cut:])
    assert ("one_is_pending", "run/a", 2) in broken(first)
    assert not broken(second)
    assert first.exit_code == second.exit_code == 1
    assert "2 groups that broke a property in an earlier run" in second.notes


def test_what_late_events_explain_is_taken_back_by_name(recorder: Any, runs: Runs) -> None:
    recorder.start("a:r0", "a:r1")
    recorder.do("a:r0", "begin", n="node0")
    recorder.do("a:r0", "finish")
    recorder.do("a:r1", "begin", n="node1")
    events = recorder.end()
    late = [e for e in events if e.entity == "a:r0" and e.sequence >= 2]
    first, second = runs([e for e in events if e not in late and not e.end], late)
    assert ("one_is_pending", "run/a", 3) in broken(first)
    (back,) = (note for note in second.notes if "now that more is known" in note)
    assert "run/a/Table.one_is_pending" in back


def test_an_entity_without_its_end_is_as_it_was_last(recorder: Any, runs: Runs) -> None:
    recorder.start("a:r0", "a:r1")
    recorder.do("a:r0", "begin", n="node0")
    (report,) = runs(recorder.events)
    assert report.together is not None
    found = {p.name: p.verdict for p in report.together.properties}
    assert found["one_is_pending"] is TraceVerdict.OK


def test_a_part_that_is_first_traced_later_is_refused(recorder: Any, runs: Runs) -> None:
    recorder.start("a:t0")
    recorder.do("a:t0", "turn", to="splitting")
    cut = len(recorder.events)
    recorder.do("a:r0", "begin", n="node0")
    events = recorder.end()
    with pytest.raises(InputError, match="asks something else of Track"):
        runs(events[:cut], events[cut:])


def test_a_state_of_other_systems_is_refused(recorder: Any, runs: Runs) -> None:
    recorder.start("a:r0")
    runs(recorder.end())
    with pytest.raises(InputError, match="other options: --together Table"):
        runs(recorder.events, together=())
