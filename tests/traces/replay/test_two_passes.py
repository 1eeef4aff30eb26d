"""Replaying where events lie and glueing what is left gives what a slow validator says, however they lie."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.thorough import examples, some_of

from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import HiddenSteps
from stagewright.traces.options import Options
from stagewright.traces.readers import text_lines
from stagewright.traces.replay import segments, transition_table
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

Mutated = Callable[[str, int], list[Event]]

EVERY = frozenset(TraceVerdict)


def evaluated(paths: list[Path], lease: Any, workers: int = 2, **options: Any) -> TraceReport:
    found = Options(scope=lambda _: lease.scope, **options)
    return validate(paths, lease.definition, found, engine=Embedded(workers))


def outcome(report: TraceReport) -> object:
    """All that must not depend on where events lie."""
    entities = {
        (e.key.entity, e.verdict, e.cause, e.sequence, e.duplicates) for e in report.entities
    }
    return report.verdicts, entities, report.totals


def write(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


@pytest.mark.parametrize("seed", range(examples(6)))
def test_mutated_traces_get_the_verdicts_of_the_interpreter(
    lease: Any, mutated: Mutated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    traces = {f"lease{i}": mutated(f"lease{i}", 1000 * seed + i) for i in range(150)}
    events = [event for trace in traces.values() for event in trace]
    if seed % 3:
        events = interleaved(rng, list(traces.values()))
    if seed % 3 == 2:
        rng.shuffle(events)
    monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([500, 5_000, 50_000]))
    monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([3, 50, 1 << 20]))
    half = len(events) // 2
    paths = [write(tmp_path / "a.jsonl", events[:half]), write(tmp_path / "b.jsonl", events[half:])]
    report = evaluated(paths, lease)
    expected = {entity: lease.evaluate(trace) for entity, trace in traces.items()}
    found = {e.key.entity: (e.verdict, e.sequence) for e in report.entities}
    bad = {entity: what for entity, what in expected.items() if what[0] is not TraceVerdict.OK}
    assert found == bad
    assert report.verdicts[TraceVerdict.OK] == len(traces) - len(bad)
    assert len(Counter(verdict for verdict, _ in expected.values())) >= 4


def interleaved(rng: random.Random, traces: list[list[Event]]) -> list[Event]:
    """The events of all traces mixed, each trace in its own order."""
    waiting = [list(reversed(trace)) for trace in traces if trace]
    mixed: list[Event] = []
    while waiting:
        number = rng.randrange(len(waiting))
        mixed.append(waiting[number].pop())
        if not waiting[number]:
            waiting.pop(number)
    return mixed


def test_parts_order_and_number_of_files_change_nothing(
    lease: Any, mutated: Mutated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    traces = [mutated(f"lease{i}", i) for i in range(120)]
    events = [event for trace in traces for event in trace]
    once = outcome(evaluated([write(tmp_path / "one.jsonl", events)], lease))
    for number in range(8):
        monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([300, 4_000, 1 << 25]))
        monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([1, 20, 1 << 20]))
        mixed = interleaved(rng, traces) if number % 2 else rng.sample(events, len(events))
        folder = tmp_path / str(number)
        folder.mkdir()
        cuts = sorted(rng.sample(range(len(mixed)), 3))
        pieces = [mixed[a:b] for a, b in zip([0, *cuts], [*cuts, len(mixed)], strict=True)]
        paths = [write(folder / f"{i}.jsonl", piece) for i, piece in enumerate(pieces) if piece]
        assert outcome(evaluated(paths, lease)) == once


def half_seen(rng: random.Random, events: list[Event]) -> list[Event]:
    """The events as a recorder has them that sees only the phase, and sometimes not what happened."""
    return [
        replace(
            e,
            action=None if rng.random() < 0.1 else e.action,
            parameters={},
            observed={n: v for n, v in e.observed.items() if n == "phase"},
        )
        for e in events
    ]


@pytest.mark.parametrize("most", some_of([12, 8]))
def test_whether_an_entity_is_undecided_depends_on_its_own_events_alone(
    lease: Any, mutated: Mutated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    rng, options = random.Random(3), {"max_states": most}
    traces = [mutated(f"lease{i}", i) for i in range(40)]
    traces = [half_seen(rng, trace) if i % 2 else trace for i, trace in enumerate(traces)]
    alone = Counter[TraceVerdict]()
    for i, trace in enumerate(traces[:20]):
        alone += Counter(
            evaluated([write(tmp_path / f"{i}.jsonl", trace)], lease, **options).verdicts
        )
    assert 0 < alone[TraceVerdict.UNDECIDED] < 10
    few = [event for trace in traces[:20] for event in trace]
    together = evaluated([write(tmp_path / "few.jsonl", few)], lease, 1, **options)
    assert +Counter(together.verdicts) == alone
    events = [event for trace in traces for event in trace]
    once = evaluated([write(tmp_path / "one.jsonl", events)], lease, 1, **options)
    for number, workers in enumerate((1, 2, 7, 2)):
        monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([300, 4_000, 1 << 25]))
        monkeypatch.setattr(transition_table, "KEPT_MAX", [1, 1 << 22, 300, 900][number])
        monkeypatch.setattr(transition_table, "_KEPT_A_STATE", 0)
        mixed = interleaved(rng, traces) if number % 2 else rng.sample(events, len(events))
        half = len(mixed) // 2
        folder = tmp_path / str(number)
        folder.mkdir()
        names = rng.sample(["a.jsonl", "b.jsonl"], 2)
        paths = [write(folder / names[0], mixed[:half]), write(folder / names[1], mixed[half:])]
        found = evaluated(paths, lease, workers, **options)
        assert outcome(found) == outcome(once)


def test_what_a_full_table_has_counted_is_not_forgotten(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = interleaved(random.Random(1), [lease.walk(f"lease{i}", i, 12) for i in range(40)])
    path = write(tmp_path / "a.jsonl", events)
    whole = evaluated([path], lease, hidden=HiddenSteps(frozenset({"look"})))
    monkeypatch.setattr(transition_table, "KEPT_MAX", 500)
    monkeypatch.setattr(transition_table, "_KEPT_A_STATE", 0)
    small = evaluated([path], lease, hidden=HiddenSteps(frozenset({"look"})))
    assert small.coverage == whole.coverage
    assert outcome(small) == outcome(whole)


def test_a_file_given_twice_is_all_duplicates(lease: Any, tmp_path: Path) -> None:
    events = [event for i in range(20) for event in lease.walk(f"lease{i}", i, 12)]
    one, other = write(tmp_path / "a.jsonl", events), write(tmp_path / "b.jsonl", events)
    report = evaluated([one, other], lease)
    assert report.verdicts[TraceVerdict.OK] == 20
    assert report.totals.duplicates == len(events)
    assert report.exit_code == 0


def test_a_whole_trace_is_one_row_and_nothing_is_read_again(lease: Any, tmp_path: Path) -> None:
    events = interleaved(random.Random(1), [lease.walk(f"lease{i}", i, 12) for i in range(20)])
    plan = evaluated([write(tmp_path / "a.jsonl", events)], lease).plan
    assert any("20 rows, left of 280 events" in line for line in plan)
    assert any("no second pass" in line for line in plan)
