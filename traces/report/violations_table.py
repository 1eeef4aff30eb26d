"""Every entity that is not ok as a row of Parquet, for whoever asks many traces at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.traces.events.where import Where
from stagewright.traces.report.results import EntityReport, TraceReport

if TYPE_CHECKING:
    import pyarrow as pa

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
    import pyarrow.parquet as pq

    left_out = {"stagewright.left_out": str(report.entities_unknown)}
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, _schema().with_metadata(left_out)) as writer:
        writer.write_table(_table(report.entities).replace_schema_metadata(left_out))
        for table in report.overflow.tables() if report.overflow is not None else ():
            writer.write_table(table.replace_schema_metadata(left_out))
    partial.replace(path)


def packed(entities: Sequence[EntityReport]) -> bytes:
    """The rows of some entities in little room."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, _schema(), options=options) as writer:
        writer.write_table(_table(entities))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(content: bytes) -> pa.Table:
    """The rows that were packed."""
    import pyarrow as pa

    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(n, pa.int64() if number else pa.string()) for n, number in COLUMNS.items()])


def _table(entities: Sequence[EntityReport]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist([_row(entity) for entity in entities], _schema())


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
