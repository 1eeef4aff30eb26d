"""Spoiled input: a clear verdict or a clear error, and nothing else is touched by it.

A thousand random corruptions of JSON lines (plain and compressed), Parquet and logs; a slow, obvious reader and
validator say what must come out of each.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.thorough import THOROUGH, by_turns, some_of
from tests.traces.parquet_rows import Row, rows_of
from tests.traces.pipeline.corruptions import (
    OF_BYTES,
    OF_LINES,
    Corruption,
    Expected,
    expected_of,
    expected_of_rows,
)

from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec.define import define
from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.explain.explainer import Explainer
from stagewright.traces.explain.explanation import Explanation
from stagewright.traces.replay.exact_verdicts import Finding
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

Mutated = Callable[[str, int], list[Event]]
Evaluator = Callable[[Sequence[Event]], tuple[TraceVerdict, int]]
ENTITIES, FILES, EXPLAINED_EVERY = 6, 2, 10
TOGETHER = 10  # corruptions of traces with names of their own that one run evaluates
OK = TraceVerdict.OK
CORRUPTIONS, FORMS = [*OF_BYTES, *OF_LINES], ["", ".gz", ".zst"]
IN_ONE_FORM = [(one, FORMS[number % 3]) for number, one in enumerate(CORRUPTIONS)]


@pytest.fixture(autouse=True)
def few_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """To explain a violation takes longer than to find it: one in ten is enough here."""
    explain, numbers = Explainer.explain, itertools.count()

    def sometimes(self: Explainer, finding: Finding, *, whole: bool = True) -> Explanation | None:
        return explain(self, finding, whole=whole) if next(numbers) % EXPLAINED_EVERY == 0 else None

    monkeypatch.setattr(Explainer, "explain", sometimes)


@pytest.fixture(scope="session")
def traces(lease: Any, mutated: Mutated) -> dict[str, list[Event]]:
    """Good traces and bad ones."""
    good = {f"lease{i}": lease.walk(f"lease{i}", i, 6) for i in range(ENTITIES // 2)}
    bad = {f"lease{i}": mutated(f"lease{i}", i) for i in range(ENTITIES // 2, ENTITIES)}
    return {**good, **bad}


@pytest.fixture(scope="session")
def evaluator(lease: Any) -> Evaluator:
    """The slow validator; it remembers what it has said of the same events, for most are not touched."""
    said: dict[tuple[object, ...], tuple[TraceVerdict, int]] = {}

    def remember(events: Sequence[Event]) -> tuple[TraceVerdict, int]:
        what = tuple(
            (e.sequence, e.action, repr(e.parameters), repr(e.observed), e.end) for e in events
        )
        if what not in said:
            said[what] = lease.evaluate(events)
        return said[what]

    return remember


def laid_out(
    rng: random.Random, traces: dict[str, list[Event]], trace: str = "run"
) -> list[list[Event]]:
    """The events in some files, those of an entity in order, all of one trace."""
    waiting = [[replace(event, trace=trace) for event in events] for events in traces.values()]
    files: list[list[Event]] = [[] for _ in range(FILES)]
    while waiting := [events for events in waiting if events]:
        rng.choice(files).append(rng.choice(waiting).pop(0))
    return files


def text_of(events: Sequence[Event]) -> bytes:
    return "".join(event.to_json() + "\n" for event in events).encode()


def evaluated(paths: Sequence[Path], lease: Any) -> TraceReport | InputError:
    """The report, or the error: any other exception is a fault."""
    try:
        return validate(paths, lease.definition, engine=Embedded(1))
    except InputError as error:
        wrong = error
    assert wrong.help, wrong
    return wrong


def known_to(lease: Any) -> set[tuple[str, str, str]]:
    """What events may name that the lease's definition evaluates: machine, profile, definition."""
    d = lease.definition
    return {(m, "", f) for m in ("", d.name) for f in ("", d.fingerprint())}


def agree(report: TraceReport, expected: Expected) -> None:
    """Every verdict and every count is that of the slow reader."""
    totals = report.totals
    assert (totals.lines, totals.blank, totals.unparsed) == (
        expected.lines,
        expected.blank,
        expected.unparsed,
    )
    assert {v: n for v, n in report.verdicts.items() if n} == expected.counted()
    found = {(*e.key.stream, e.key.entity): (e.verdict, e.sequence) for e in report.entities}
    assert found == {k: v for k, v in expected.verdicts.items() if v[0] is not OK}
    violated = any(v is TraceVerdict.VIOLATION for v, _ in expected.verdicts.values())
    assert totals.not_understood >= expected.foreign
    assert expected.foreign == 0 or any("not checked" in note for note in report.notes)
    wrong = bool(found) or totals.not_events
    assert report.exit_code == (1 if violated else 3 if wrong else 0)


def compressed(form: str, data: bytes) -> bytes:
    match form:
        case ".gz":
            return gzip.compress(data, 1, mtime=0)
        case ".xz":
            return lzma.compress(data)
        case ".bz2":
            return bz2.compress(data)
        case _:
            pass
    return pa.Codec("zstd").compress(data, asbytes=True) if form == ".zst" else data


@pytest.mark.parametrize(
    ("corruption", "form"),
    by_turns(some_of(product(CORRUPTIONS, FORMS), quick=IN_ONE_FORM.__contains__)),
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_spoiled_lines_are_counted_and_leave_other_entities_alone(
    corruption: Corruption,
    form: str,
    lease: Any,
    evaluator: Evaluator,
    traces: dict[str, list[Event]],
    tmp_path: Path,
) -> None:
    few = 2 if corruption.__name__ == "huge_line" else TOGETHER
    for number in range(10 if THOROUGH else 1):
        rng = random.Random(f"{corruption.__name__} {form} {number}")
        contents = [b""]
        for trace in range(few):
            spoiled, whole = map(text_of, laid_out(rng, traces, f"run{trace}"))
            contents[0] += whole
            contents.append(corruption(rng, spoiled))
        paths = [tmp_path / f"{number}.jsonl{form}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(compressed(form, content))
        found = evaluated(paths, lease)
        assert isinstance(found, TraceReport), found
        agree(found, expected_of(contents, evaluator, known_to(lease)))


@pytest.mark.parametrize("form", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("corruption", OF_BYTES, ids=lambda c: c.__name__)
def test_damaged_compressed_files_are_an_error_or_change_nothing(
    corruption: Corruption,
    form: str,
    lease: Any,
    evaluator: Evaluator,
    traces: dict[str, list[Event]],
    tmp_path: Path,
) -> None:
    paths = [tmp_path / f"{number}.jsonl{form}" for number in range(FILES)]
    for seed in range(100 if THOROUGH else 5):
        rng = random.Random(f"{corruption.__name__} {form} {seed}")
        contents = [text_of(events) for events in laid_out(rng, traces)]
        coded = [compressed(form, content) for content in contents]
        spoiled = [corruption(rng, coded[0]), coded[1]]
        for path, content in zip(paths, spoiled, strict=True):
            path.write_bytes(content)
        found = evaluated(paths, lease)
        if isinstance(found, InputError):
            assert str(paths[0]) in str(found)
        else:
            assert found.totals.lines >= contents[1].count(b"\n")
            read = [_content(form, spoiled[0]), contents[1]]
            agree(found, expected_of(read, evaluator, known_to(lease)))


def _content(form: str, coded: bytes) -> bytes:
    """What a file decompresses to, which it must."""
    if form == ".gz" and coded[:2] == b"\x1f\x8b":
        return gzip.decompress(coded)
    if form == ".xz" and coded[:5] == b"\xfd7zXZ":
        return lzma.decompress(coded)
    if form == ".bz2" and coded[:3] == b"BZh":
        return bz2.decompress(coded)
    if form == ".zst" and coded[:2] == b"\x28\xb5":
        return bytes(pa.CompressedInputStream(pa.BufferReader(coded), "zstd").read())
    return coded


def write_table(path: Path, rows: list[Row]) -> None:
    kinds = {"seq": pa.int64(), "end": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in rows_of([EVENT])[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=9)


EVENT = Event("", "", "", "", "", 0)


def spoil(rng: random.Random, rows: list[Row]) -> None:
    """One random change of a row, or of the order of rows."""
    at = rng.randrange(len(rows))
    match rng.randrange(6):
        case 0:
            del rows[at]
        case 1:
            rows.insert(rng.randrange(len(rows)), rows[at])
        case 2:
            rng.shuffle(rows)
        case 3:
            name = rng.choice(list(rows[at]))
            rows[at] = {**rows[at], name: None}
        case 4:
            name = rng.choice(("params", "observed"))
            text = rng.choice(
                ("", "[]", "null", "{", '{"phase":7}', '{"node":"x"}', "7", '{"a":NaN}')
            )
            rows[at] = {**rows[at], name: text}
        case _:
            name, value = rng.choice(
                (("seq", -1), ("seq", 1 << 60), ("entity", ""), ("entity", "x"), ("action", "jump"))
            )
            rows[at] = {**rows[at], name: value}


def test_spoiled_rows_are_counted_and_leave_other_entities_alone(
    lease: Any, evaluator: Evaluator, traces: dict[str, list[Event]], tmp_path: Path
) -> None:
    for number in range(100 if THOROUGH else 3):
        rng, files = random.Random(number), [list[Row]()]
        for trace in range(TOGETHER):
            spoiled, whole = map(rows_of, laid_out(rng, traces, f"run{trace}"))
            for _ in range(rng.randrange(1, 4)):
                spoil(rng, spoiled)
            files[0] += whole
            files.append(spoiled)
        paths = [tmp_path / f"{number}.parquet" for number in range(len(files))]
        for path, rows in zip(paths, files, strict=True):
            write_table(path, rows)
        found = evaluated(paths, lease)
        assert isinstance(found, TraceReport), found
        every = [row for rows in files for row in rows]
        agree(found, expected_of_rows(every, evaluator, known_to(lease)))


@pytest.mark.parametrize("corruption", OF_BYTES, ids=lambda c: c.__name__)
def test_damaged_tables_are_an_error_or_leave_other_files_alone(
    corruption: Corruption, lease: Any, traces: dict[str, list[Event]], tmp_path: Path
) -> None:
    good, bad = (
        {n: t for n, t in traces.items() if (n < "lease3") is which} for which in (True, False)
    )
    damaged, whole = tmp_path / "damaged.parquet", tmp_path / "whole.parquet"
    write_table(damaged, rows_of([e for t in good.values() for e in t]))
    write_table(whole, rows_of([e for t in bad.values() for e in t]))
    content = damaged.read_bytes()
    expected = {name: lease.evaluate(trace)[0] for name, trace in bad.items()}
    for seed in range(100 if THOROUGH else 5):
        damaged.write_bytes(corruption(random.Random(f"{corruption.__name__} {seed}"), content))
        found = evaluated([damaged, whole], lease)
        if isinstance(found, InputError):
            assert str(damaged) in str(found), found
        else:
            verdicts = {e.key.entity: e.verdict for e in found.entities}
            assert {n: verdicts.get(n, OK) for n in bad} == expected


TABLES = [f"3a8d5a20-7c3e-11ef-8d6e-5a0f1c2b3d4{n}" for n in range(5)]
WAY = [
    "write_both_read_old",
    "streaming",
    "write_both_read_new",
    "use_new",
    "cleanup",
    "end_migration",
]
TABLETS = [f"{table}:{number}" for table in TABLES for number in range(9)]


def log_line(second: int, tablet: str, stage: str) -> bytes:
    clock = f"2024-09-27 22:{second // 60:02}:{second % 60:02},717"
    said = f"Will set tablet {tablet} stage to {stage}"
    return f"DEBUG {clock} [shard 0: gms] raft_topology - {said}\n".encode()


def test_spoiled_logs_leave_other_tablets_alone(tmp_path: Path) -> None:
    definition, path = define(TabletMigration), tmp_path / "node.log"
    for seed in range(30 if THOROUGH else 3):
        rng = random.Random(seed)
        waiting = {tablet: [*WAY] for tablet in TABLETS}
        wrong = set(rng.sample(TABLETS, 10))
        for tablet in wrong:
            waiting[tablet][1:2] = []  # no streaming
        lines: list[tuple[str, bytes]] = []
        while waiting := {t: stages for t, stages in waiting.items() if stages}:
            tablet = rng.choice(list(waiting))
            lines.append((tablet, log_line(len(lines), tablet, waiting[tablet].pop(0))))
        touched, content = _spoiled_log(rng, lines)
        path.write_bytes(content)
        report = validate([path], definition, engine=Embedded(1))
        found = {e.key.entity for e in report.entities if e.verdict is TraceVerdict.VIOLATION}
        assert found - touched == wrong - touched
        assert len(found - touched) >= 3
        assert report.totals.lines == content.count(b"\n")


def _spoiled_log(rng: random.Random, lines: list[tuple[str, bytes]]) -> tuple[set[str], bytes]:
    """The log with some random spoiled lines, and the tablets of the lines that were touched."""
    content, touched = [line for _, line in lines], set[str]()
    # The first line tells of which form the file is.
    for at in sorted(rng.sample(range(1, len(lines)), 20), reverse=True):
        tablet, line = lines[at]
        touched.add(tablet)
        message = line.index(b"Will")
        match rng.randrange(7):
            case 0:
                del content[at]
            case 1:
                content.insert(at, line)
            case 2:
                content[at] = line[: rng.randrange(message, len(line))] + b"\n"
            case 3:
                noise = rng.randbytes(20).replace(b"\n", b"")
                content[at] = line[:message] + noise + line[message:]
            case 4:
                content.insert(at, b"x" * (1 << 20) + b"x\n")
            case 5:
                content.insert(at, rng.choice((b"\n", b"Traceback\n", b"\xff\xfe\n", b'{"v":1}\n')))
            case _:
                content[at] = line.rstrip(b"\n").replace(b"stage to ", b"stage to un\xff") + b"\n"
    return touched, b"".join(content)
