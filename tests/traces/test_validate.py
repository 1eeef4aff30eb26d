"""Files of traces: verdicts, explanations and counts, whatever the form, order and number of files."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.traces.parquet_rows import rows_of

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event, TraceVerdict, TraceWriter
from stagewright.spec.verdict import Step
from stagewright.traces.events.observability import HiddenSteps
from stagewright.traces.explain.explanation import AccountingError
from stagewright.traces.options import Options
from stagewright.traces.replay.exact_verdicts import Cause
from stagewright.traces.report.results import Totals, TraceReport
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Mutated = Callable[[str, int], list[Event]]


def write(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


def write_parquet(path: Path, events: list[Event]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows_of(events)), path, row_group_size=7)
    return path


def outcome(report: TraceReport) -> tuple[object, ...]:
    """What must not depend on how the input is laid out."""
    entities = {(e.key.entity, e.cause, e.sequence, e.duplicates) for e in report.entities}
    lines = report.totals
    return report.verdicts, entities, lines.evaluated, lines.not_evaluated, lines.duplicates


def test_recorded_runs_are_ok(spark: "SparkSession", lease: Any, tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "run.jsonl", lease.definition, "run") as writer:
        from stagewright.spec.interpreter import Interpreter
        from stagewright.spec.trace import observation
        from stagewright.spec.values import State

        interpreter = Interpreter(lease.definition, lease.scope)
        state: State = next(interpreter.initial_states())
        writer.start("lease0", state)
        for _ in range(20):
            step: Step
            step, state = next(iter(interpreter.successors(state)))
            writer.record("lease0", step, observation(state))
    report = validate([tmp_path], lease.definition, spark=spark)
    assert report.verdicts[TraceVerdict.OK] == 1
    assert report.exit_code == 0
    assert report.totals == Totals(lines=22, with_events=22, events=22, evaluated=22)


def test_form_order_and_number_of_files_change_nothing(
    spark: "SparkSession", lease: Any, mutated: Mutated, tmp_path: Path
) -> None:
    events = [e for i in range(60) for e in mutated(f"lease{i}", i)]
    one = write(tmp_path / "one.jsonl", events)
    expected = outcome(validate([one], lease.definition, spark=spark))
    assert len(expected[1]) > 20  # type: ignore[arg-type]
    random.Random(7).shuffle(events)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(5):
        write(many / f"{number}.jsonl", events[number::5])
    assert outcome(validate([many], lease.definition, spark=spark)) == expected
    table = write_parquet(tmp_path / "one.parquet", events)
    assert outcome(validate([table], lease.definition, spark=spark)) == expected


def test_garbage_is_reported_with_file_and_line_and_touches_no_other_entity(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    texts = [e.to_json().encode() for i in range(6) for e in lease.walk(f"lease{i}", i, 8)]
    # Each walk has ten lines: these are of lease1, of nobody, of nobody, and of lease3.
    texts[12] = texts[12][:-30]
    texts[33] = texts[33].replace(b'"action":"', b'"action":"x_')
    texts[25:25] = [b"", b"\xff\xfe"]
    path.write_bytes(b"\n".join(texts))
    report = validate([path], lease.definition, spark=spark)
    causes = {e.key.entity: e.cause for e in report.entities}
    assert causes == {"lease1": Cause.MISSING, "lease3": Cause.NOT_UNDERSTOOD}
    assert [u.where.line for u in report.unparsed] == [13, 27, 36]
    assert all(u.where.file == str(path) for u in report.unparsed)
    assert (report.totals.not_events, report.totals.blank) == (3, 1)
    assert report.exit_code == 3


def test_a_violation_names_the_requirement_and_what_was_enabled(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    free: dict[str, object] = {"phase": "free", "owner": None, "watchers": [], "strict": True}
    events = [
        lease.event("lease0", 0, None, {}, free),
        lease.event("lease0", 1, "watch", {"node": "node1"}, {"watchers": ["node1"]}),
        lease.event("lease0", 2, "take", {"node": "node0"}, {"phase": "held"}),
        lease.event("lease1", 0, None, {}, free),
        lease.event("lease1", 1, "watch", {"node": "node1"}, {"watchers": ["node0"]}),
    ]
    path = write(tmp_path / "t.jsonl", events)
    report = validate([path], lease.definition, spark=spark)
    refused, differs = report.entities
    assert refused.explanation is not None
    assert [name for name, _ in refused.explanation.failed] == [
        "a strict lease is taken by watchers only"
    ]
    assert "conftest.py:" in refused.explanation.failed[0][1]
    assert "take(node1)" in refused.explanation.enabled
    assert "take(node0)" not in refused.explanation.enabled
    assert (str(refused.where), str(refused.last_good)) == (f"{path}:3", f"{path}:2")
    assert differs.explanation is not None
    assert differs.explanation.expected == (("watchers", "{node1}"),)
    assert differs.explanation.observed == (("watchers", "{node0}"),)
    assert report.exit_code == 1


def test_hidden_steps_are_searched_for(spark: "SparkSession", lease: Any, tmp_path: Path) -> None:
    whole = [
        lease.event("lease0", 0, None, {}, {"phase": "free"}),
        lease.event("lease0", 1, "take", {"node": "node0"}, {"strict": True}),
        lease.event("lease0", 2, "close", {}, {}),
        lease.event("lease0", 3, None, {}, {}, end=True),
    ]
    path = write(tmp_path / "t.jsonl", whole)
    actions = {"watch", "give_back"}
    for hidden, exit_code in ((actions, 0), ({"watch"}, 1), ({"give_back"}, 1)):
        options = Options(hidden=HiddenSteps(frozenset(hidden)))
        report = validate([path], lease.definition, options, spark=spark)
        assert (hidden, report.exit_code) == (hidden, exit_code)


def test_the_tablet_logs_are_checked(spark: "SparkSession") -> None:
    from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
    from stagewright.spec.define import define

    samples = Path(__file__).parent / "samples"
    shipped = Path(__file__).parents[2] / "traces" / "samples" / "scylla-coordinator-debug.log"
    definition = define(TabletMigration)

    def evaluated(path: Path) -> TraceReport:
        return validate([path], definition, spark=spark)

    debug, info = evaluated(shipped), evaluated(samples / "coordinator-info.log")
    assert debug.verdicts[TraceVerdict.OK] == sum(debug.verdicts.values()) == 4
    assert "2 changes were cancelled by a race" in debug.notes
    assert info.verdicts[TraceVerdict.OK] == sum(info.verdicts.values()) == 4
    jump = evaluated(samples / "impossible-jump.log")
    (violation,) = jump.entities
    assert jump.verdicts[TraceVerdict.OK] == 1
    assert violation.where is not None
    text = Path(violation.where.file).read_text().splitlines()[violation.where.line - 1]
    assert text.endswith(":7 stage to write_both_read_new")


def test_another_definition_is_refused_unless_told(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    import dataclasses

    events = [dataclasses.replace(e, definition="0123") for e in lease.walk("lease0", 1, 5)]
    path = write(tmp_path / "t.jsonl", events)
    with pytest.raises(InputError, match="recorded under the definition 0123"):
        validate([path], lease.definition, spark=spark)
    options = Options(ignore_fingerprint=True)
    report = validate([path], lease.definition, options, spark=spark)
    assert report.verdicts[TraceVerdict.OK] == 1
    assert "0123" in report.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", None, "there is no file or directory"),
        ("a.jsonl", b"", "is empty"),
        ("a.txt", b"hello", "cannot tell what"),
        ("a.parquet", b"PAR1 and no more", "cannot be read as Parquet"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00 damaged", "cannot be read to its end"),
        ("a.log", b"hello", "cannot tell what"),
    ],
)
def test_input_that_cannot_be_used_is_one_clear_error(
    spark: "SparkSession",
    lease: Any,
    tmp_path: Path,
    name: str,
    content: bytes | None,
    problem: str,
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as error:
        validate([path], lease.definition, spark=spark)
    assert str(path) in str(error.value)
    assert "help:" in str(error.value)


def test_a_directory_without_traces_is_refused(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(InputError, match="has no traces"):
        validate([tmp_path], lease.definition, spark=spark)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"seq": [1]}, "has no column `entity`"),
        ({"entity": ["a"], "seq": ["1"]}, "column `seq` holds"),
        ({"entity": ["a"], "seq": [1], "colour": ["red"]}, "a column `colour`"),
    ],
)
def test_parquet_of_another_schema_is_refused(
    spark: "SparkSession", lease: Any, tmp_path: Path, columns: dict[str, list[Any]], problem: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=problem):
        validate([tmp_path], lease.definition, spark=spark)


def test_bad_rows_of_parquet_are_reported_one_by_one(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    d = lease.definition
    good = {
        "machine": d.name,
        "entity": "e",
        "seq": 0,
        "action": None,
        "observed": "{}",
        "end": False,
    }
    rows = [good, {**good, "entity": None}, {**good, "seq": None}, {**good, "seq": -1}]
    rows += [{**good, "observed": "{"}, {**good, "seq": 1, "observed": '{"phase":7}'}]
    rows += [{**good, "seq": 2, "end": True}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    report = validate([tmp_path], d, spark=spark)
    assert [u.where.line for u in report.unparsed] == [2, 3, 4, 5, 6]
    assert report.totals.not_events == 5
    assert report.verdicts[TraceVerdict.UNPARSED] == 1


def test_counts_that_do_not_add_up_are_a_fault_of_the_program() -> None:
    with pytest.raises(AccountingError):
        Totals(lines=3, with_events=2, events=2, evaluated=2).check()
    with pytest.raises(AccountingError):
        Totals(lines=3, with_events=3, events=3, evaluated=2).check()
