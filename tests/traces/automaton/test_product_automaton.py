"""Several candidate profiles at once find of each entity the best of what each finds by itself, however events lie."""

import dataclasses
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.thorough import examples, some_of
from tests.traces.candidates import RELEASES, recorded, resolve, walk

from stagewright.spec.errors import InputError
from stagewright.spec.machine import Machine
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import Determinised
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.engines.spark_engine import OnSpark
from stagewright.traces.events.observability import HiddenSteps
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import Options, unbounded_scope
from stagewright.traces.readers import text_lines
from stagewright.traces.replay import segments
from stagewright.traces.replay.exact_verdicts import Cause
from stagewright.traces.report.results import TraceReport
from stagewright.traces.report.text import as_json, entity_lines
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = tuple(RELEASES)


def evaluated(paths: Sequence[Path], *names: str, engine: Any = None, **more: Any) -> TraceReport:
    """The report on files by one profile, or by several candidates."""
    state = more.pop("state", None)
    one = {"profile": names[0]} if len(names) == 1 else {"candidates": names}
    options = Options(profiles_of=lambda _: ALL, **one, **more)
    return validate(paths, resolve, options, engine=engine or Embedded(2), state=state)


def write(path: Path, events: Iterable[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


def outcome(report: TraceReport) -> object:
    """All that must not depend on where events lie; of coverage, that of what refuses nothing."""
    whole = {one.candidate for one in report.candidates if not one.refuses}
    covered = [one for one in report.coverage if one.definition.name in whole]
    places = {(e.key, e.verdict, e.cause, e.sequence, e.refused) for e in report.entities}
    return report.verdicts, places, report.totals, report.candidates, covered


Found = dict[str, tuple[TraceVerdict, int]]


def found_in(report: TraceReport) -> Found:
    return {e.key.entity: (e.verdict, e.sequence) for e in report.entities}


def best(traces: dict[str, list[Event]], alone: Sequence[Found]) -> Found:
    """What several candidates must find together, from what each has found by itself."""
    machines = [Determinised(automaton(d, unbounded_scope(d))) for d in RELEASES.values()]
    expected: Found = {}
    for entity, events in traces.items():
        if any(entity not in one for one in alone):
            continue  # one of them explains all of it
        sequence = max(one[entity][1] for one in alone)
        there = {one[entity][0] for one in alone if one[entity][1] == sequence}
        said = [symbol_of(e).text for e in events if e.sequence == sequence]
        known = any(not isinstance(m.constraint(text), str) for m in machines for text in said)
        if TraceVerdict.GAP in there:
            expected[entity] = TraceVerdict.GAP, sequence
        elif there == {TraceVerdict.UNPARSED} and not known:
            expected[entity] = TraceVerdict.UNPARSED, sequence
        else:
            expected[entity] = TraceVerdict.VIOLATION, sequence
    return expected


@pytest.mark.parametrize("seed", range(examples(6)))
def test_an_entitys_verdict_is_the_best_that_a_candidate_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    traces = {f"lease{i}": recorded(f"lease{i}", 1000 * seed + i) for i in range(120)}
    events = [event for trace in traces.values() for event in trace]
    if seed % 3:
        rng.shuffle(events)
    if seed % 3 == 2:
        events.sort(key=lambda e: e.sequence)
    monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([500, 5_000, 50_000]))
    monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([3, 50, 1 << 20]))
    hidden = HiddenSteps(frozenset({"watch"} if seed % 2 else ()))
    half = len(events) // 2
    paths = [write(tmp_path / "a.jsonl", events[:half]), write(tmp_path / "b.jsonl", events[half:])]
    alone = [  # only the second release has the action that is hidden
        found_in(evaluated(paths, name, hidden=hidden if name == "2" else HiddenSteps()))
        for name in RELEASES
    ]
    report = evaluated(paths, *ALL, hidden=hidden)
    assert found_in(report) == best(traces, alone)
    assert report.verdicts[TraceVerdict.OK] == len(traces) - len(found_in(report))
    for one, found in zip(report.candidates, alone, strict=True):
        explained = len(traces) - len(found)
        assert (one.entities, one.explains) == (len(traces), explained)
    bad = {v for v, _ in found_in(report).values()}
    assert bad == {TraceVerdict.VIOLATION, TraceVerdict.GAP, TraceVerdict.UNPARSED}


@pytest.mark.parametrize("seed", range(2, 2 + examples(4)))
def test_parts_and_order_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    traces = [recorded(f"lease{i}", 300 * seed + i) for i in range(60)]
    traces.append(walk("2", "long", seed, 200))
    events = [event for trace in traces for event in trace]
    plain = outcome(evaluated([write(tmp_path / "all.jsonl", events)], *ALL, engine=Embedded(1)))
    monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([300, 900]))
    monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([2, 20]))
    assert outcome(evaluated([tmp_path / "all.jsonl"], *ALL)) == plain


def test_only_a_body_that_none_of_the_living_explains_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "long.jsonl", walk("2", "long", 5, 3_000))
    monkeypatch.setattr(text_lines, "PART_SIZE", 20_000)
    report = evaluated([path], *ALL)
    assert report.verdicts[TraceVerdict.OK] == 1
    assert any("no second pass" in line for line in report.plan)
    assert [(c.candidate, c.explains, c.refuses, c.first) for c in report.candidates] == [
        ("1", 0, 1, "long"), ("2", 1, 0, ""), ("3", 0, 1, "long"),
    ]  # fmt: skip


@pytest.mark.spark
def test_spark_gives_the_same_report(spark: "SparkSession", tmp_path: Path) -> None:
    events = [e for i in range(60) for e in recorded(f"lease{i}", i)]
    path = write(tmp_path / "all.jsonl", events)
    embedded = evaluated([path], *ALL)
    assert evaluated([path], *ALL, engine=OnSpark(spark)) == embedded
    assert embedded.verdicts[TraceVerdict.VIOLATION] > 3


@pytest.mark.parametrize("seed", some_of([1, 0]))
def test_runs_that_continue_each_other_find_what_one_run_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    traces = [recorded(f"lease{i}", 700 * seed + i) for i in range(80)]
    traces = [t for t in traces if len({e.sequence for e in t}) == len(t)]
    events = [event for trace in traces for event in trace]
    rng.shuffle(events)  # so that bodies of three events wait behind gaps for the next run
    events.sort(key=lambda e: e.sequence // 3 + rng.randrange(3))
    monkeypatch.setattr(text_lines, "PART_SIZE", 2_000)
    whole = evaluated([write(tmp_path / "whole.jsonl", events)], *ALL)
    third, files, last = len(events) // 3, list[Path](), whole
    found: Found = {}
    for number in range(3):
        stop = len(events) if number == 2 else third * (number + 1)
        files.append(write(tmp_path / f"{number}.jsonl", events[third * number : stop]))
        last = evaluated(files, *ALL, state=tmp_path / "state")
        found |= {k: v for k, v in found_in(last).items() if v[0] is not TraceVerdict.GAP}
    assert found == {k: v for k, v in found_in(whole).items() if v[0] is not TraceVerdict.GAP}
    refused = {one.candidate: (one.refuses, one.first) for one in whole.candidates}
    assert {one.candidate: (one.refuses, one.first) for one in last.candidates} == refused
    with pytest.raises(
        InputError, match="made with other options: --profile 1 --profile 2 --profile 3"
    ):
        evaluated(files, "1", "2", state=tmp_path / "state")


def test_a_violation_names_what_each_candidate_refuses(tmp_path: Path) -> None:
    events = walk("1", "lease0", 3, 1)[:1]
    said = [("take", "held", "node0"), ("close", "closed", None), ("give_back", "free", None)]
    for number, (action, phase, owner) in enumerate(said, 1):
        observed = {"phase": phase, "owner": owner}
        parameters = {"node": "node0"} if action == "take" else {}
        event = dataclasses.replace(
            events[0], sequence=number, action=action, parameters=parameters, observed=observed
        )
        events.append(event)
    report = evaluated([write(tmp_path / "t.jsonl", events)], *ALL)
    (entity,) = report.entities
    assert (entity.verdict, entity.sequence) == (TraceVerdict.VIOLATION, 3)
    lines = [line.strip() for line in entity_lines(entity) if line.startswith("  as ")]
    assert lines == [
        "as         1: event 2 is refused, close: lease is free",
        "as         2: event 1 is refused, take(node0): a lease is taken by watchers only",
        "as         3: event 3 is refused, give_back: lease is held",
    ]
    assert entity.explanation is not None
    assert [name for name, _ in entity.explanation.failed] == ["lease is held"]  # by the furthest
    assert len(entity.explanation.steps) == 3
    findings: Any = as_json(report)["findings"]
    assert [one["sequence"] for one in findings[0]["candidates"]] == [2, 1, 3]


def test_coverage_is_reported_of_those_that_refuse_least(tmp_path: Path) -> None:
    traces = {f"lease{i}": walk("2", f"lease{i}", i, 12) for i in range(10)}
    path = write(tmp_path / "t.jsonl", [e for trace in traces.values() for e in trace])
    (together,), (alone,) = evaluated([path], *ALL).coverage, evaluated([path], "2").coverage
    assert together == alone


def test_a_spent_budget_of_the_last_candidate_is_undecided(tmp_path: Path) -> None:
    seen = walk("2", "lease0", 3, 30)
    lines = [
        dataclasses.replace(e, action=None, parameters={}, observed={}) for e in seen if not e.end
    ]
    path = write(tmp_path / "t.jsonl", lines)
    (entity,) = evaluated([path], *ALL, max_states=2).entities
    assert (entity.verdict, entity.cause) == (TraceVerdict.UNDECIDED, Cause.BUDGET)
    assert "raise it with --max-states" in entity.note


def test_any_stands_for_all_profiles_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", walk("3", "lease0", 3, 8))
    assert [c.candidate for c in evaluated([path], "any", "1").candidates] == ["1", "2", "3"]
    with pytest.raises(InputError, match="none of the machines has a profile `4`") as error:
        evaluated([path], "1", "4")
    assert "known: 1, 2, 3; or --profile any" in error.value.help


def test_a_trace_of_none_of_the_candidates_is_refused(tmp_path: Path) -> None:
    events = [
        dataclasses.replace(e, definition=RELEASES["3"].fingerprint())
        for e in walk("3", "lease0", 3, 8)
    ]
    path = write(tmp_path / "t.jsonl", events)
    assert evaluated([path], "1", "3").verdicts[TraceVerdict.OK] == 1
    with pytest.raises(InputError, match="recorded under the definition"):
        evaluated([path], "1", "2")


def test_properties_over_several_entities_want_one_profile(tmp_path: Path) -> None:
    class System(Machine):
        """A system."""

    path = write(tmp_path / "t.jsonl", walk("3", "lease0", 3, 8))
    with pytest.raises(InputError, match="cannot be checked against several candidate profiles"):
        evaluated([path], *ALL, together=(System,))


def test_the_report_as_json_has_each_candidate_by_trace(tmp_path: Path) -> None:
    events = [e for i in range(3) for e in walk("3", f"lease{i}", i + 3, 8)]
    other = [dataclasses.replace(e, trace="other") for e in walk("1", "lease9", 2, 8)]
    data = as_json(evaluated([write(tmp_path / "t.jsonl", [*events, *other])], "2", "3"))
    lines = json.loads(json.dumps(data["candidates"]))
    assert [(c["trace"], c["candidate"], c["summary"]) for c in lines] == [
        ("other", "2", "explains 0 of 1 entity, refuses 1: first lease9"),
        ("other", "3", "explains it"),
        ("run", "2", "explains 0 of 3 entities, refuses 3: first lease0"),
        ("run", "3", "explains all 3 entities"),
    ]
