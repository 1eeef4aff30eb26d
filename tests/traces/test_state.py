"""Runs that continue each other find what one run over everything finds; a state that does not fit is refused."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines import Embedded
from stagewright.traces.options import Options
from stagewright.traces.recording import ALL_HIDDEN
from stagewright.traces.trace_report import TraceReport
from stagewright.traces.validate import validate

Mutated = Callable[[str, int], list[Event]]


def judged(lease: Any, paths: list[Path], state: Path | None, **options: Any) -> TraceReport:
    found = Options(scope=lambda _: lease.scope, **options)
    return validate(paths, lease.definition, found, engine=Embedded(2), state=state)


def write(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


@pytest.mark.parametrize("seed", range(4))
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
    whole = judged(lease, [write(tmp_path / "whole.jsonl", events)], None)
    cuts = [0, *sorted(rng.sample(range(1, len(events)), 4)), len(events)]
    files, found = list[Path](), dict[str, tuple[object, ...]]()
    last = whole
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        files.append(write(tmp_path / f"{number}.jsonl", events[begin:end]))
        last = judged(lease, files, tmp_path / "state")
        assert last.totals.events == end - begin
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


def test_a_file_that_grows_is_read_on_from_its_last_whole_line(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    lines = [e.to_json() + "\n" for e in events]
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    path.write_text("".join(lines[:5]) + lines[5][:20])
    first = judged(lease, [path], state)
    assert (first.totals.events, first.totals.unparsed) == (5, 0)
    assert "1 traces have no end yet, and may go on" in first.notes
    path.write_text("".join(lines))
    second = judged(lease, [path], state)
    assert second.totals.events == len(lines) - 5
    assert second.exit_code == 0
    assert judged(lease, [path], state).totals.lines == 0


def test_places_count_from_the_first_line_of_the_file(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    bad = [e.to_json() + "\n" for e in events]
    bad[8] = bad[8].replace('"phase":"', '"phase":"no')
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    path.write_text("".join(bad[:6]))
    judged(lease, [path], state)
    path.write_text("".join(bad))
    (found,) = judged(lease, [path], state).entities
    assert found.where is not None
    assert (found.where.file, found.where.line) == (str(path), 9)
    assert found.last_good is not None
    assert found.last_good.line == 8


def test_what_was_found_is_told_once_and_counted_on(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    lines = [e.to_json() for e in events]
    lines[4] = lines[-1].replace(f'"seq":{len(lines) - 1}', '"seq":4')  # the end, too early
    one, state = tmp_path / "a.jsonl", tmp_path / "state"
    one.write_text("\n".join(lines[:8]) + "\n")
    first = judged(lease, [one], state)
    other = tmp_path / "b.jsonl"
    other.write_text("\n".join(lines[8:]) + "\n")
    second = judged(lease, [one, other], state)
    assert len(first.entities) == 1
    assert second.entities == ()
    assert second.verdicts[TraceVerdict.VIOLATION] == 1
    assert second.exit_code == 1
    assert "1 entities were found to be bad in an earlier run" in second.notes


def test_a_state_of_other_options_is_refused(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    judged(lease, [path], tmp_path / "state")
    with pytest.raises(InputError, match="other options"):
        judged(lease, [path], tmp_path / "state", hidden=ALL_HIDDEN)


def test_a_state_of_another_definition_is_refused(lease: Any, tmp_path: Path) -> None:
    path, state = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12)), tmp_path / "state"
    judged(lease, [path], state)
    content = (state / "state.json").read_text()
    (state / "state.json").write_text(content.replace(lease.definition.fingerprint(), "0" * 16))
    with pytest.raises(InputError, match="was made under the definition"):
        judged(lease, [path], state)


@pytest.mark.parametrize("damage", ["[]", "{", '{"version": 1}'])
def test_a_damaged_state_is_refused(lease: Any, tmp_path: Path, damage: str) -> None:
    path, state = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12)), tmp_path / "state"
    judged(lease, [path], state)
    (state / "state.json").write_text(damage)
    with pytest.raises(InputError, match="damaged"):
        judged(lease, [path], state)


def test_a_file_that_shrank_is_refused(lease: Any, tmp_path: Path) -> None:
    events = lease.walk("lease0", 3, 12)
    path = write(tmp_path / "t.jsonl", events)
    judged(lease, [path], tmp_path / "state")
    write(path, events[:3])
    with pytest.raises(InputError, match="when it was read"):
        judged(lease, [path], tmp_path / "state")


def test_a_directory_of_other_things_is_no_state(lease: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", lease.walk("lease0", 3, 12))
    with pytest.raises(InputError, match="of its own"):
        judged(lease, [path], tmp_path)


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
