"""Logs that are validated night after night: at each one the verdicts of one run over all that was read till then."""

import gzip
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.models.lease import LeaseTable
from tests.traces.databases.scylladb.test_scylla_tables import HOSTS, as_cqlsh, node
from tests.traces.readers.reading import shipped
from tests.traces.readers.test_mapped import GOOD, TEXT
from tests.traces.readers.test_otlp import RUN, request, steps

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.incremental import incremental_run
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
Place = tuple[str, str, int]
Evaluator = Callable[..., TraceReport]


def evaluated(*paths: Path, state: Path | None = None, mapping: Path | None = None) -> TraceReport:
    options = Options(mapping=mapping)
    return validate(paths, resolve, options, engine=Embedded(2), state=state)


def resolve(machine: str, profile: str) -> Definition:
    return define(LeaseTable) if machine == "LeaseTable" else shipped(machine, profile)


def found(report: TraceReport) -> set[Place]:
    """Where which entities are bad, for good."""
    return {
        (str(e.key), Path(e.where.file).name, e.where.line)
        for e in report.entities
        if e.where is not None and e.verdict is not TraceVerdict.GAP
    }


def as_whole_lines(folder: Path, paths: list[Path]) -> list[Path]:
    """Copies of the same names that end with their last whole lines."""
    folder.mkdir(exist_ok=True)
    copies: list[Path] = []
    for path in paths:
        copies.append(folder / path.name)
        copies[-1].write_text(path.read_text()[: path.read_text().rfind("\n") + 1])
    return copies


def gone_on(folder: Path, *sizes: int | None) -> list[Path]:
    """The first lines of a log in which something is wrong on line 3, in one file or in several."""
    runs = {"c": ("acquire", "go_silent", "acquire"), "a": RUN, "b": RUN}
    lines = [json.dumps(request(one)) + "\n" for name in runs for one in steps(name, *runs[name])]
    folder.mkdir(exist_ok=True)
    paths: list[Path] = []
    begin = 0
    for number, size in enumerate(sizes):
        paths.append(folder / f"node1.log.{len(sizes) - number}")
        paths[-1].write_text("".join(lines[begin:size]))
        begin = size or 0
    return paths


def of_samples(rng: random.Random, *names: str) -> dict[str, str]:
    """Some samples without a few of their lines, so that some entities cannot be explained."""
    texts = {Path(name).name: (SAMPLES / name).read_text() for name in names}
    return {
        name: "".join(line for line in text.splitlines(keepends=True) if rng.random() > 0.04)
        for name, text in texts.items()
    }


def of_leases(rng: random.Random) -> dict[str, str]:
    """Export requests of several entities, with a step that is not one among them."""
    wrong = ("acquire", "go_silent", "acquire", "expire")
    records = [one for name in "abcd" for one in steps(name, *(wrong if name == "c" else RUN))]
    rng.shuffle(records)
    lines = [json.dumps(request(one)) + "\n" for one in records]
    return {"a.jsonl": "".join(lines[::2]), "b.jsonl": "".join(lines[1::2])}


def of_polls(rng: random.Random) -> dict[str, str]:
    """A table that is polled again and again, which jumps once."""
    states = ["none", "bootstrapping", "normal", "none", "normal"]
    at = rng.randrange(10, 50)
    polls = [
        as_cqlsh([node(HOSTS[0], s)], f"2025-03-01T10:{at}:0{n}") for n, s in enumerate(states)
    ]
    return {"topology.json": "".join(polls)}


KINDS: Mapping[str, Callable[[random.Random], dict[str, str]]] = {
    "scylla": lambda rng: of_samples(rng, "topology.log"),
    "couchbase": lambda rng: of_samples(rng, "couchbase/couchdb-2017.log"),
    "yugabyte": lambda rng: of_samples(
        rng, *(f"yugabyte/{p.name}" for p in sorted((SAMPLES / "yugabyte").iterdir()))
    ),
    "otlp": of_leases,
    "tables": of_polls,
    "mapped": lambda rng: {f"{n}.log": GOOD.replace("lost", "lost " * n) for n in range(2)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_night_has_the_verdicts_of_one_run_over_all(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    texts = KINDS[kind](rng)
    mapping = tmp_path / "lease.toml" if kind == "mapped" else None
    (tmp_path / "lease.toml").write_text(TEXT)
    (tmp_path / "logs").mkdir()
    reported, lines = set[Place](), 0
    for share in (rng.uniform(0.3, 0.9), 1.0):
        paths: list[Path] = []
        for name, text in texts.items():
            paths.append(tmp_path / "logs" / name)
            paths[-1].write_text(text[: round(len(text) * share)])
        night = evaluated(*paths, state=tmp_path / "state", mapping=mapping)
        whole = evaluated(*as_whole_lines(tmp_path / "copies", paths), mapping=mapping)
        assert night.verdicts == whole.verdicts
        assert night.coverage == whole.coverage
        assert not found(night) & reported
        reported |= found(night)
        assert found(whole) <= reported
        lines += night.totals.lines
        again = "lines of last records that may go on" in "".join(night.notes)
        assert again == (kind == "couchbase")
        if share == 1.0 and kind not in ("couchbase", "tables"):  # there some are read again
            assert lines == whole.totals.lines
    assert reported or kind == "scylla"


def test_what_was_reported_is_not_reported_again_and_is_counted_on(tmp_path: Path) -> None:
    state, reports = tmp_path / "state", list[TraceReport]()
    for size in (4, 6, None):
        reports.append(evaluated(*gone_on(tmp_path / "logs", size), state=state))
    assert [len(r.entities) for r in reports] == [1, 0, 0]
    assert [r.verdicts[TraceVerdict.VIOLATION] for r in reports] == [1, 1, 1]
    assert [r.exit_code for r in reports] == [1, 1, 1]
    (one,) = reports[0].entities
    assert one.explanation is not None
    assert len(one.explanation.steps) == 3  # what went before is at hand
    last = reports[-1].totals
    assert last.earlier == reports[0].totals.events + reports[1].totals.events
    assert last.evaluated + last.not_evaluated == last.events + last.earlier


def test_logs_that_were_rotated_and_compressed_are_read_on(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "logs"
    (path,) = gone_on(folder, 5)
    path.rename(folder / "node1.log")
    evaluated(folder / "node1.log", state=state)
    old, new = gone_on(folder, 7, None)
    packed = folder / "node1.log.2.gz"
    packed.write_bytes(gzip.compress(old.read_bytes()))
    old.unlink()
    new.rename(folder / "node1.log")
    second = evaluated(folder, state=state)
    (whole,) = gone_on(tmp_path / "whole", None)
    at_once = evaluated(whole)
    assert second.verdicts == at_once.verdicts
    assert second.totals.lines == at_once.totals.lines - 5
    assert "1 file moved since the last run: " + str(packed) in second.notes
    assert not second.entities
    third = evaluated(folder, state=state)
    assert (third.totals.lines, third.verdicts) == (0, at_once.verdicts)


def test_a_log_that_was_changed_is_read_again_as_a_whole(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "logs"
    (path,) = gone_on(folder, None)
    first = evaluated(path, state=state)
    assert first.verdicts[TraceVerdict.VIOLATION] == 1
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    second = evaluated(path, state=state)
    assert second.totals.lines == 2
    assert second.verdicts[TraceVerdict.VIOLATION] == 0
    assert any("read again as a whole" in note for note in second.notes)
    (back,) = (note for note in second.notes if "now that more is known" in note)
    assert str(first.entities[0].key) in back


def test_records_of_another_version_of_a_reader_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    paths = gone_on(tmp_path / "logs", 9)
    evaluated(*paths, state=state)
    (kept,) = state.glob("run-*/records.parquet")
    table = pq.read_table(kept)
    classes = table.schema.metadata[b"classes"].replace(b'"entity"', b'"whose"')
    pq.write_table(table.replace_schema_metadata({b"classes": classes}), kept)
    with pytest.raises(InputError, match="written by another version of a reader"):
        evaluated(*paths, state=state)
    kept.write_bytes(kept.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"records.parquet cannot be read"):
        evaluated(*paths, state=state)


def test_a_log_that_tells_nothing_yet_may_tell_something_later(tmp_path: Path) -> None:
    state, other = tmp_path / "state", json.dumps({"resourceLogs": []}) + "\n"
    path, empty = tmp_path / "a.log", tmp_path / "b.log"
    path.write_text(other)
    empty.touch()
    first = evaluated(tmp_path, state=state)
    assert (first.totals.lines, first.totals.other, first.exit_code) == (1, 1, 0)
    assert "1 file still empty" in first.notes
    assert "there is no event yet" in first.notes
    empty.write_text(gone_on(tmp_path / "x", 4)[0].read_text())
    assert evaluated(path, empty, state=state).exit_code == 1


def test_records_of_many_runs_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental_run, "_RECORD_FILES_MAX", 3)
    state = tmp_path / "state"
    runs = [evaluated(*gone_on(tmp_path / "logs", n), state=state) for n in range(1, 7)]
    assert runs[-1].verdicts == evaluated(*gone_on(tmp_path / "logs", 6)).verdicts
    assert len(list(state.glob("run-*/records.parquet"))) == 3
