"""Files that are no traces, or damaged ones: one clear error that names them all, or a report on the rest."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import junitparser
import pyarrow.parquet as pq
import pytest
from tests.traces.parquet_rows import rows_of
from tests.traces.pipeline.test_corrupt_input import write_table

from stagewright.commands import run_command_line
from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.inputs.discover import find_inputs
from stagewright.traces.options import Options
from stagewright.traces.replay.exact_verdicts import Cause
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SHIPPED_LOG = Path(__file__).parents[3] / "traces/samples/scylla-coordinator-debug.log"


def text(lease: Any) -> bytes:
    return "".join(e.to_json() + "\n" for e in lease.walk("lease0", 1, 8)).encode()


def walks(lease: Any, many: int) -> list[Event]:
    return [event for i in range(many) for event in lease.walk(f"lease{i}", i, 8)]


def skipping(lease: Any, *paths: Path, **more: Any) -> TraceReport:
    options = Options(skip_damaged=True)
    return validate(list(paths), lease.definition, options, engine=Embedded(2), **more)


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def test_all_damaged_files_are_named_at_once(lease: Any, tmp_path: Path) -> None:
    whole = gzip.compress(text(lease))
    for number in range(3):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(whole[: None if number == 1 else 60])
    with pytest.raises(InputError) as caught:
        validate([tmp_path], lease.definition, engine=Embedded(1))
    assert "0.jsonl.gz cannot be read to its end" in caught.value.problem
    assert "2.jsonl.gz cannot be read to its end" in caught.value.problem
    assert "1.jsonl.gz" not in caught.value.problem
    assert caught.value.help.count("take another copy") == 1


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"", "is empty"),
        ("a.jsonl.gz", b"", "is empty"),
        ("a.parquet", b"", "is empty"),
        ("a.parquet", b"PAR1", "cannot be read as Parquet"),
        ("a.parquet", b"no table", "cannot be read as Parquet"),
        ("a.bin", bytes(1000), "cannot tell what"),
        ("a.log", b"x\n" * 9, "cannot tell what"),
        ("a.jsonl", b"\n\n\n", "there is no event"),
    ],
)
def test_file_that_is_no_trace_is_named(
    name: str, content: bytes, problem: str, lease: Any, tmp_path: Path
) -> None:
    (tmp_path / "b.jsonl").write_bytes(text(lease) if problem != "there is no event" else b"\n")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        validate([tmp_path / name, tmp_path / "b.jsonl"], lease.definition, engine=Embedded(1))
    assert name in str(caught.value)
    assert caught.value.help


def test_what_stands_before_the_end_of_a_truncated_file_is_checked(
    lease: Any, tmp_path: Path
) -> None:
    events = walks(lease, 300)
    lines = [(e.to_json() + "\n").encode() for e in events]
    whole, cut = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    whole.write_bytes(b"".join(lines[:1000]))
    packed = gzip.compress(b"".join(lines[1000:]))
    cut.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match="cannot be read to its end") as caught:
        validate([tmp_path], lease.definition, engine=Embedded(1))
    assert "--skip-damaged" in caught.value.help
    report = skipping(lease, tmp_path)
    (damaged,) = report.damaged
    read = 1000 + damaged.line - 1
    assert (damaged.file, damaged.lines) == (str(cut), None)
    assert 1100 < read < len(lines)
    assert report.totals.lines == report.totals.events == read
    assert report.verdicts[TraceVerdict.OK] == sum(e.end for e in events[:read])
    gaps = [e.key.entity for e in report.entities if e.verdict is TraceVerdict.GAP]
    assert gaps == [e.entity for e in events[read - 1 : read] if not e.end]
    assert report.exit_code == 3


def test_of_a_file_whose_sum_is_wrong_nothing_is_believed(lease: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(text(lease))
    wrong = tmp_path / "b.jsonl.gz"
    wrong.write_bytes(gzip.compress(text(lease).replace(b"lease0", b"lease1")))
    flipped(wrong, wrong.stat().st_size - 6)
    report = skipping(lease, tmp_path)
    assert [(d.file, d.line, d.lines) for d in report.damaged] == [(str(wrong), 1, None)]
    assert "CRC" in report.damaged[0].reason
    assert sum(report.verdicts.values()) == report.verdicts[TraceVerdict.OK] == 1
    assert report.exit_code == 3


def test_only_damaged_row_groups_are_left_out(lease: Any, tmp_path: Path) -> None:
    events = walks(lease, 10)
    path = tmp_path / "a.parquet"
    write_table(path, rows_of(events))  # nine rows a group
    column = pq.ParquetFile(path).metadata.row_group(4).column(6)
    for at in range(column.data_page_offset, column.data_page_offset + 20):
        flipped(path, at)
    report = skipping(lease, path)
    assert [(d.line, d.lines) for d in report.damaged] == [(37, 9)]
    assert (report.totals.lines, report.totals.lost) == (len(events), 9)
    touched = {e.entity for e in events[36:45]}
    assert {e.key.entity for e in report.entities} == touched
    assert {e.verdict for e in report.entities} == {TraceVerdict.GAP}
    places = {e.where.line for e in report.entities if e.where}
    assert places == {46}  # the first event after the hole


def test_a_damaged_log_leaves_everything_it_tells_undecided(tmp_path: Path) -> None:
    log = Path(__file__).parents[3] / "traces/samples/scylla-coordinator-debug.log"
    good, half = tmp_path / "a.log", tmp_path / "b.log.gz"
    good.write_bytes(log.read_bytes())
    packed = gzip.compress(log.read_bytes())
    half.write_bytes(packed[:-20])
    out = tmp_path / "out"
    words = ["validate", str(good), str(half), "--engine", "embedded", "--skip-damaged"]
    assert run_command_line([*words, "--out", str(out), "--junit", str(out) + ".xml"]) == 3
    report = json.loads((out / "report.json").read_text())
    assert report["entities"]["ok"] == report["entities"]["violation"] == 0
    assert report["entities"]["undecided"] > 0
    assert {f["cause"] for f in report["findings"]} == {Cause.LEFT_OUT.value}
    assert report["damaged"][0]["file"] == str(half)
    for file in ("report.txt", "report.html"):
        assert f"{half}:" in (out / file).read_text()
    (suite,) = junitparser.JUnitXml.fromfile(str(out) + ".xml")
    (case,) = [case for case in suite if case.name == "every file can be read"]
    assert str(half) in str(case.result[0].text)


def test_files_that_cannot_be_opened_are_left_out_too(lease: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(text(lease))
    (tmp_path / "b.jsonl").write_bytes(b"")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "d.jsonl").symlink_to(tmp_path / "gone")
    report = skipping(lease, tmp_path)
    assert [Path(d.file).name for d in report.damaged] == ["b.jsonl", "c.parquet", "d.jsonl"]
    assert report.verdicts[TraceVerdict.OK] == 1
    assert report.exit_code == 3
    with pytest.raises(InputError, match=r"b.jsonl is empty"):
        skipping(lease, tmp_path / "b.jsonl")


def test_a_damaged_file_is_read_again_by_the_next_run(lease: Any, tmp_path: Path) -> None:
    packed = gzip.compress(text(lease))
    state = tmp_path / "state"
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.jsonl.gz"
    (tmp_path / "in" / "b.jsonl").write_bytes(text(lease).replace(b"lease0", b"lease1"))
    path.write_bytes(packed[:-9])
    first = skipping(lease, tmp_path / "in", state=state)
    assert len(first.damaged) == 1
    path.write_bytes(packed)
    second = skipping(lease, tmp_path / "in", state=state)
    assert second.damaged == ()
    assert second.verdicts[TraceVerdict.OK] == 2
    assert second.exit_code == 0


def test_a_log_that_has_just_been_rotated_is_empty_and_not_damaged(tmp_path: Path) -> None:
    (tmp_path / "scylla.log").touch()
    with pytest.raises(InputError, match="is empty"):
        find_inputs([tmp_path])
    (tmp_path / "scylla.log.1").write_bytes(SHIPPED_LOG.read_bytes())
    found = find_inputs([tmp_path])
    assert [file.path.name for file in found.files] == ["scylla.log.1"]
    assert found.notes() == ["1 file still empty"]


def test_an_archive_is_named_as_what_it_is(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(SHIPPED_LOG, "scylla.log")
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive_of_windows:
        archive_of_windows.write(SHIPPED_LOG, "scylla.log")
    for name, kind in (("logs.tar.gz", "tar"), ("logs.zip", "zip")):
        with pytest.raises(InputError, match=f"is a {kind} archive") as caught:
            find_inputs([tmp_path / name])
        assert caught.value.help.startswith("unpack it and name its folder")
