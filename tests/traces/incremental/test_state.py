"""Runs that continue each other find what one run over everything finds; a state that does not fit is refused."""

import dataclasses
import gzip
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.thorough import some_of

from stagewright.commands.reports.of_traces import suite_of
from stagewright.spec.errors import InputError
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.spec.verdict import Outcome
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import ALL_HIDDEN
from stagewright.traces.incremental.state_dir import alone
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

VIOLATION = TraceVerdict.VIOLATION
Mutated = Callable[[str, int], list[Event]]


def evaluated(lease: Any, paths: list[Path], state: Path | None, **options: Any) -> TraceReport:
    found = Options(scope=lambda _: lease.scope, **options)
    return validate(paths, lease.definition, found, engine=Embedded(2), state=state)


def write(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


def in_runs(
    lease: Any, folder: Path, events: list[Event], runs: int, rng: random.Random
) -> Iterator[TraceReport]:
    """The reports of so many runs that continue each other, each with some more of the events."""
    cuts = [0, *sorted(rng.sample(range(1, len(events)), runs - 1)), len(events)]
    files = list[Path]()
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        files.append(write(folder / f"{number}.jsonl", events[begin:end]))
        report = evaluated(lease, files, folder / "state")
        assert report.totals.events == end - begin
        yield report


@pytest.mark.parametrize("seed", some_of(range(4)))
def test_many_runs_find_what_one_run_finds(
    lease: Any, mutated: Mutated, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    traces = [mutated(f"lease{i}", 500 * seed + i) for i in range(150)]
    # What a later run repeats cannot be compared any more: whether it contradicts is not known.
    traces = [t for t in traces if len({e.sequence for e in t}) == len(t)]
    events = [event for trace in traces for event in trace]
    if seed % 2:
        rng.shuffle(events)
    else:
        events.sort(key=lambda e: (e.sequence, e.entity))
    whole = evaluated(lease, [write(tmp_path / "whole.jsonl", events)], None)
    found = dict[str, tuple[object, ...]]()
    last = whole
    for last in in_runs(lease, tmp_path, events, 5, rng):
        found |= {
            e.key.entity: (e.verdict, e.sequence)
            for e in last.entities
            if e.verdict is not TraceVerdict.GAP
        }
    expected = {
        e.key.entity: (e.verdict, e.sequence)
        for e in whole.entities
        if e.verdict is not TraceVerdict.GAP
    }
    assert found == expected
    gaps = {e.key.entity for e in last.entities if e.verdict is TraceVerdict.GAP}
    missing = {e.key.entity for e in whole.entities if e.cause.name == "MISSING"}
    assert gaps == missing
    for verdict in (TraceVerdict.VIOLATION, TraceVerdict.UNPARSED):
        assert last.verdicts[verdict] == whole.verdicts[verdict]


@pytest.mark.parametrize("seed", some_of(range(2)))
def test_many_runs_exercise_what_one_run_exercises(
    lease: Any, mutated: Mutated, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    traces = [mutated(f"lease{i}", 500 * seed + i) for i in range(120)]
    traces = [t for t in traces if lease.evaluate(t)[0] is not TraceVerdict.GAP]
    events = sorted((e for t in traces for e in t), key=lambda e: (e.sequence, e.entity))
    whole = evaluated(lease, [write(tmp_path / "whole.jsonl", events)], None)
    *_, last = in_runs(lease, tmp_path, events, 4, rng)
    (one,), (other,) = last.coverage, whole.coverage
    assert one.events == other.events
    assert one.counts == other.counts


def test_what_earlier_runs_reported_is_not_looked_at_again(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    events[4] = replace(events[4], observed={**events[4].observed, "phase": "closed"})
    state = tmp_path / "state"
    files = [write(tmp_path / "a.jsonl", events[:8])]
    assert "read again" in "".join(evaluated(lease, files, state).plan)
    files.append(write(tmp_path / "b.jsonl", lease.walk("lease1", 4, 12)))
    assert "no second pass" in "".join(evaluated(lease, files, state).plan)
    files.append(write(tmp_path / "c.jsonl", events[8:]))
    last = evaluated(lease, files, state)
    assert last.coverage[0].events == 4 + 13  # the first event of each counts, end markers do not


def test_a_file_that_grows_is_read_on_from_its_last_whole_line(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    lines = [e.to_json() + "\n" for e in events]
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    path.write_text("".join(lines[:5]) + lines[5][:20])
    first = evaluated(lease, [path], state)
    assert (first.totals.events, first.totals.unparsed) == (5, 0)
    assert "1 trace without an end yet, which may go on" in first.notes
    path.write_text("".join(lines))
    second = evaluated(lease, [path], state)
    assert second.totals.events == len(lines) - 5
    assert second.exit_code == 0
    assert evaluated(lease, [path], state).totals.lines == 0


def test_places_count_from_the_first_line_of_the_file(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    bad = [e.to_json() + "\n" for e in events]
    bad[8] = bad[8].replace('"phase":"', '"phase":"no')
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    path.write_text("".join(bad[:6]))
    evaluated(lease, [path], state)
    path.write_text("".join(bad))
    (found,) = evaluated(lease, [path], state).entities
    assert found.where is not None
    assert (found.where.file, found.where.line) == (str(path), 9)
    assert found.last_good is not None
    assert found.last_good.line == 8


def test_what_was_found_is_reported_once_and_counted_on(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    lines = [e.to_json() for e in events]
    lines[4] = lines[-1].replace(f'"seq":{len(lines) - 1}', '"seq":4')  # the end, too early
    one, state = tmp_path / "a.jsonl", tmp_path / "state"
    one.write_text("\n".join(lines[:8]) + "\n")
    first = evaluated(lease, [one], state)
    other = tmp_path / "b.jsonl"
    other.write_text("\n".join(lines[8:]) + "\n")
    second = evaluated(lease, [one, other], state)
    assert len(first.entities) == 1
    assert second.entities == ()
    assert second.verdicts[TraceVerdict.VIOLATION] == 1
    assert second.exit_code == 1
    assert "1 entity found bad in an earlier run" in second.notes
    cases = {case.name: case for case in suite_of(second, "").cases}
    assert cases["no trace was found to be bad in an earlier run"].outcome is Outcome.VIOLATED


def test_a_first_event_that_is_wrong_is_counted_on(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 6)
    events[0] = replace(events[0], observed={**events[0].observed, "phase": "closed"})
    first, rest = write(tmp_path / "a.jsonl", events[:1]), tmp_path / "b.jsonl"
    evaluated(lease, [first], tmp_path / "state")
    second = evaluated(lease, [first, write(rest, events[1:])], tmp_path / "state")
    assert second.verdicts[TraceVerdict.VIOLATION] == sum(second.verdicts.values()) == 1
    assert second.totals.not_evaluated == len(events) - 1


def test_a_file_that_was_rotated_is_known_under_its_new_name(lease: Any, tmp_path: Path) -> None:
    lines = [e.to_json() + "\n" for i in range(4) for e in lease.walk(f"lease{i}", i, 9)]
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    path.write_text("".join(lines[:20]))
    evaluated(lease, [path], state)
    (tmp_path / "t.jsonl.1.gz").write_bytes(gzip.compress("".join(lines[:30]).encode()))
    path.write_text("".join(lines[30:]))
    second = evaluated(lease, [path, tmp_path / "t.jsonl.1.gz"], state)
    assert (second.totals.lines, second.totals.duplicates) == (len(lines) - 20, 0)
    assert second.exit_code == 0
    moved, replaced = (n for n in second.notes if "moved since" in n or "of the same name" in n)
    assert "t.jsonl.1.gz" in moved
    assert "t.jsonl" in replaced
    (tmp_path / "t.jsonl.1.gz").rename(tmp_path / "t.jsonl.2.gz")
    path.rename(tmp_path / "t.jsonl.1")
    third = evaluated(lease, [tmp_path / "t.jsonl.2.gz", tmp_path / "t.jsonl.1"], state)
    assert (third.totals.lines, third.exit_code) == (0, 0)


def test_a_state_among_the_traces_is_none_of_them(lease: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", lease.walk("lease0", 1, 5))
    for number in (1, 0):
        report = evaluated(lease, [tmp_path], tmp_path / "state")
        assert len(report.files) == number
        assert not any("passed over" in note or "empty" in note for note in report.notes)


def test_coverage_is_that_of_all_runs(lease: Any, tmp_path: Path) -> None:
    events = [e for i in range(9) for e in lease.walk(f"lease{i}", i, 12)]
    whole = evaluated(lease, [write(tmp_path / "whole.jsonl", events)], None)
    runs = [
        evaluated(lease, [write(tmp_path / f"{i}.jsonl", events[begin:end])], tmp_path / "state")
        for i, (begin, end) in enumerate(itertools.pairwise((0, 40, 70, len(events))))
    ]
    (all_runs,), (one_run,) = runs[-1].coverage, whole.coverage
    assert all_runs.counts == one_run.counts
    assert all_runs.events == one_run.events


def test_a_run_beside_another_is_refused(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    with alone(tmp_path / "state"), pytest.raises(InputError, match="another run uses"):
        evaluated(lease, [path], tmp_path / "state")


def test_another_size_is_refused(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    evaluated(lease, [path], tmp_path / "state")
    larger = dataclasses.replace(lease, scope=scope_of(lease.definition, {"Node": 3}))
    with pytest.raises(InputError, match="take the version and the sizes of then"):
        evaluated(larger, [path], tmp_path / "state")


def test_that_repetitions_of_earlier_events_are_not_compared_is_reported(
    lease: Any, tmp_path: Path
) -> None:
    events = lease.walk("lease0", 3, 12)
    evaluated(lease, [write(tmp_path / "a.jsonl", events[:8])], tmp_path / "state")
    other = replace(events[6], observed={**events[6].observed, "phase": "closed"})
    rest = write(tmp_path / "b.jsonl", [other, *events[7:]])
    report = evaluated(lease, [rest], tmp_path / "state")
    assert (report.exit_code, report.totals.duplicates) == (0, 2)
    note = "2 events repeated from earlier runs, which cannot be compared with the originals"
    assert note in report.notes


def test_a_state_of_other_options_is_refused(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    evaluated(lease, [path], tmp_path / "state")
    with pytest.raises(InputError, match="other options"):
        evaluated(lease, [path], tmp_path / "state", hidden=ALL_HIDDEN)


def test_a_state_of_another_definition_is_refused(lease: Any, tmp_path: Path) -> None:
    path, state = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12)), tmp_path / "state"
    evaluated(lease, [path], state)
    content = (state / "state.json").read_text()
    evaluated_by = f'"Lease": "{lease.definition.fingerprint()}'
    assert evaluated_by in content
    (state / "state.json").write_text(content.replace(evaluated_by, '"Lease": "' + "0" * 16))
    with pytest.raises(InputError, match="was made under the definition"):
        evaluated(lease, [path], state)


@pytest.mark.parametrize("damage", ["[]", "{", '{"version": 3}'])
def test_a_damaged_state_is_refused(lease: Any, tmp_path: Path, damage: str) -> None:
    path, state = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12)), tmp_path / "state"
    evaluated(lease, [path], state)
    (state / "state.json").write_text(damage)
    with pytest.raises(InputError, match="damaged"):
        evaluated(lease, [path], state)


def test_a_file_that_shrank_is_refused(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    path = write(tmp_path / "t.jsonl", events)
    evaluated(lease, [path], tmp_path / "state")
    write(path, events[:3])
    with pytest.raises(InputError, match="when it was read"):
        evaluated(lease, [path], tmp_path / "state")


def test_a_directory_of_other_things_is_no_state(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    with pytest.raises(InputError, match="of its own"):
        evaluated(lease, [path], tmp_path)


def test_a_run_with_nothing_new_says_so(lease: Any, mutated: Mutated, tmp_path: Path) -> None:
    path, state = write(tmp_path / "a.jsonl", mutated("a", 3)), tmp_path / "state"
    said: list[str] = []
    for _ in range(2):
        said.clear()
        options = Options(scope=lambda _: lease.scope)
        validate(
            [path], lease.definition, options, engine=Embedded(1), state=state, progress=said.append
        )
    assert said[0] == "there is nothing new to read"
    assert not [text for text in said if "more machines" in text]


def test_what_could_not_be_delivered_is_reported_by_the_next_run(
    lease: Any, mutated: Mutated, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", [e for i in range(40) for e in mutated(f"lease{i}", i)])
    state, found = tmp_path / "state", Options(scope=lambda _: lease.scope)

    def cut_off(_: TraceReport) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        validate([path], lease.definition, found, engine=Embedded(1), state=state, deliver=cut_off)
    next_run = evaluated(lease, [path], state)
    assert next_run.run == 1
    violations = [e.key for e in evaluated(lease, [path], None).entities if e.verdict is VIOLATION]
    assert [e.key for e in next_run.entities if e.verdict is VIOLATION] == violations
    again = evaluated(lease, [path], state).entities
    assert not [e for e in again if e.verdict is VIOLATION]
