"""Disks that are full, files that change while they are read, and directories that hold strange things."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines import engine
from stagewright.traces.engines.engine import Embedded, Stage
from stagewright.traces.options import Options
from stagewright.traces.readers import text_lines
from stagewright.traces.report import assemble
from stagewright.traces.report.files import write_report
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

linux = pytest.mark.skipif(os.name != "posix", reason="the limits and files of POSIX")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes: to a program that is as if the disk were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def text(lease: Any, many: int) -> str:
    return "".join(e.to_json() + "\n" for i in range(many) for e in lease.walk(f"lease{i}", i, 8))


def evaluated(lease: Any, *paths: Path, **more: Any) -> TraceReport:
    return validate(list(paths), lease.definition, engine=Embedded(1), **more)


@linux
def test_a_full_disk_for_what_waits_is_reported(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text(text(lease, 200))
    evaluated(lease, tmp_path / "a.jsonl")  # what is compiled is kept on the disk, too
    monkeypatch.setattr(engine, "KEPT_MAX", -1)
    with pytest.raises(InputError, match="cannot hold what waits") as caught, room_for(2000):
        evaluated(lease, tmp_path / "a.jsonl")
    assert "TMPDIR" in caught.value.help
    assert evaluated(lease, tmp_path / "a.jsonl").verdicts[TraceVerdict.OK] == 200


@linux
def test_a_full_disk_for_the_state_leaves_it_as_it_was(lease: Any, tmp_path: Path) -> None:
    content = text(lease, 200).splitlines(keepends=True)
    half, whole, state = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "state"
    half.write_text("".join(content[:1005]))
    evaluated(lease, half)  # what is compiled is kept on the disk, too
    with pytest.raises(InputError, match=r"state.* cannot be written") as caught, room_for(500):
        evaluated(lease, half, state=state)
    assert caught.value.help
    assert evaluated(lease, half, state=state).totals.events == 1005  # as if that had not been
    whole.write_text("".join(content[1005:]))
    with pytest.raises(InputError, match="cannot be written"), room_for(500):
        evaluated(lease, half, whole, state=state)
    report = evaluated(lease, half, whole, state=state)
    assert report.totals.events == len(content) - 1005
    assert report.verdicts[TraceVerdict.OK] == 200


@linux
def test_a_full_disk_for_the_report_leaves_no_halves(lease: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text(lease, 5) + "junk\n")
    report = evaluated(lease, tmp_path / "a.jsonl")
    out = tmp_path / "out"
    with pytest.raises(InputError, match=f"cannot write to {out}") as caught, room_for(1000):
        write_report(report, out)
    assert "room" in caught.value.help
    assert [p.name for p in out.iterdir() if p.is_file()] == []


class Meanwhile(Embedded):
    """Does something to the files before each pass."""

    def __init__(self, *deeds: Any) -> None:
        super().__init__(1)
        self._deeds = list(deeds)

    def run(
        self,
        tasks: Sequence[Any],
        work: Callable[[Any], Iterable[tuple[int, Any]]],
        partitions: int,
        finish: Callable[[Iterable[Any]], Any],
        *then: Stage,
    ) -> list[Any]:
        """As `Engine.run`."""
        if self._deeds:
            self._deeds.pop(0)()
        return super().run(tasks, work, partitions, finish, *then)


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "PART_SIZE", 5_000)
    path, content = tmp_path / "a.jsonl", text(lease, 20)
    events = content.splitlines(keepends=True)
    path.write_text(content)
    os_size = sum(map(len, events[:47]))
    cut = Meanwhile(lambda: os.truncate(path, os_size))
    with pytest.raises(InputError, match=r"became .* bytes shorter since it was found"):
        validate([path], lease.definition, engine=cut)
    path.write_text(content)
    cut = Meanwhile(lambda: os.truncate(path, os_size))
    report = validate([path], lease.definition, Options(skip_damaged=True), engine=cut)
    assert report.totals.events == 47
    assert report.damaged[0].line == 48
    assert report.exit_code == 3


@pytest.mark.parametrize("goes", [0, 1], ids=["before it is read", "before it is read again"])
def test_a_file_that_disappears_is_named(lease: Any, tmp_path: Path, goes: int) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(text(lease, 3))  # twice: it is read again
    deeds: list[Any] = [lambda: None, lambda: None]
    deeds[goes] = (tmp_path / "b.jsonl").unlink
    with pytest.raises(InputError, match=r"b\.jsonl cannot be read.*No such file"):
        validate([tmp_path], lease.definition, engine=Meanwhile(*deeds))


@linux
def test_loops_pipes_and_broken_links_hold_nothing_up(lease: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text(lease, 3))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    report = evaluated(lease, tmp_path)
    assert report.verdicts[TraceVerdict.OK] == 3
    assert report.exit_code == 0
    assert [note.partition(": ")[2] for note in report.notes] == [
        "it is not a file",
        "links to directories are not followed",
    ]
    with pytest.raises(InputError, match="is not a file"):
        evaluated(lease, tmp_path / "pipe.jsonl")
    (tmp_path / "b.jsonl").symlink_to("b.jsonl")
    with pytest.raises(InputError, match=r"b\.jsonl cannot be read"):
        evaluated(lease, tmp_path)


@linux
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(lease: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text(lease, 3))
    secret = tmp_path / "secret"
    secret.mkdir(mode=0)
    with pytest.raises(InputError, match=f"{secret} cannot be read: Permission denied"):
        evaluated(lease, tmp_path)
    secret.rmdir()
    (tmp_path / "b.jsonl").touch(mode=0)
    with pytest.raises(InputError, match=r"b\.jsonl cannot be read: Permission denied"):
        evaluated(lease, tmp_path)


@linux
def test_names_that_are_no_text_and_a_huge_line_are_reported(lease: Any, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"na\xffme.jsonl")
    with path.open("wb") as file:
        file.write(text(lease, 2).encode())
        file.write(b'{"v":1,"entity":"' + b"x" * 100_000_000 + b'"}\n')
    report = evaluated(lease, tmp_path)
    write_report(report, tmp_path / "out")
    (line,) = report.unparsed
    assert (line.where.file, line.where.line) == (str(path), 21)
    assert "more than" in line.reason
    assert report.verdicts[TraceVerdict.OK] == 2


def test_of_very_many_bad_entities_the_counts_are_exact_and_parquet_has_all(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "LISTED_MAX", 30)
    events = [lease.walk(f"lease{i:03}", 1, 6) for i in range(200)]
    bad = [trace[:3] + trace[4:] for trace in events[:120]]  # gaps
    bad += [[*trace[:4], *trace[:1], trace[4]] for trace in events[120:150]]  # no end
    bad += [[trace[0], replace(trace[5], sequence=1)] for trace in events[150:]]
    (tmp_path / "a.jsonl").write_text("".join(e.to_json() + "\n" for t in bad for e in t))
    report = evaluated(lease, tmp_path)
    assert report.verdicts[TraceVerdict.GAP] == 150
    assert report.verdicts[TraceVerdict.VIOLATION] == 50
    assert (len(report.entities), report.entities_left_out) == (30, 170)
    assert {e.verdict for e in report.entities} == {TraceVerdict.VIOLATION}
    write_report(report, tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "violations.parquet")
    assert sorted(table["entity"].to_pylist()) == [f"lease{i:03}" for i in range(200)]
    assert table.schema.metadata[b"stagewright.left_out"] == b"0"
    page = (tmp_path / "out" / "report.html").read_text()
    assert '<td class="number">50</td>' in page
    assert "Entities that are not ok: 200" in page
