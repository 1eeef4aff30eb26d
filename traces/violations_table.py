"""Every entity that is not ok as a row of Parquet, for whoever asks many traces at once."""

from __future__ import annotations

from pathlib import Path

from stagewright.traces.trace_report import EntityReport, TraceReport, Where

# Columns in order, with whether they hold numbers. What is not known is null.
COLUMNS = {
    "trace": False,
    "machine": False,
    "profile": False,
    "entity": False,
    "verdict": False,
    "cause": False,
    "sequence": True,
    "file": False,
    "line": True,
    "last_good_file": False,
    "last_good_line": True,
    "event": False,
    "requirement": False,
    "differs": False,
    "duplicates": True,
    "note": False,
}


def write_table(report: TraceReport, path: Path) -> None:
    """Write the rows, in the order of the other reports; the file is there whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(n, pa.int64() if number else pa.string()) for n, number in COLUMNS.items()]
    )
    left_out = {"stagewright.left_out": str(report.entities_left_out)}
    rows = [_row(entity) for entity in report.entities]
    table = pa.Table.from_pylist(rows, schema).replace_schema_metadata(left_out)
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial)
    partial.replace(path)


def _row(entity: EntityReport) -> dict[str, object]:
    stream, explanation = entity.key.stream, entity.explanation
    row: dict[str, object] = {
        "trace": stream.trace,
        "machine": stream.machine,
        "profile": stream.profile,
        "entity": entity.key.entity,
        "verdict": entity.verdict.value,
        "cause": entity.cause.value,
        "sequence": entity.sequence,
        "duplicates": entity.duplicates,
        "note": entity.note,
        **_place("", entity.where),
        **_place("last_good_", entity.last_good),
    }
    if explanation is not None:
        row["event"] = explanation.event
        row["requirement"] = "; ".join(name for name, _ in explanation.failed)
        row["differs"] = ", ".join(name for name, _ in explanation.observed)
    return {name: _text(value) for name, value in row.items()}


def _place(prefix: str, where: Where | None) -> dict[str, object]:
    return {} if where is None else {f"{prefix}file": where.file, f"{prefix}line": where.line}


def _text(value: object) -> object:
    """Parquet's texts are UTF-8: halves of characters, which JSON may hold, are written as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value
