"""Reads traces in Parquet: the fields of a JSON line as columns, `params` and `observed` as JSON text.

Columns that are absent, and nulls in all but `entity` and `seq`, mean what an absent field means in JSON
lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TRACE_VERSION
from stagewright.traces.blocks import NO_TIME, Block, coded_place
from stagewright.traces.readers.jsonl_line import SEQUENCE_MAX, Parsed, event_of
from stagewright.traces.readers.parts import Part, Tally
from stagewright.traces.replay.names import names_of

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[Any]

REQUIRED = ("entity", "seq")
TEXTS = (
    "trace",
    "machine",
    "profile",
    "definition",
    "entity",
    "node",
    "action",
    "params",
    "observed",
)
_SYMBOLS = ("trace", "machine", "profile", "definition", "action", "params", "observed", "end")
_ROW_GROUP_BYTES = 1 << 26  # row groups are put together until they have about as many bytes
_BATCH_ROWS = 1 << 18


def check(path: Path) -> None:
    """Raise an `InputError` if the file is no Parquet, or has other columns."""
    import pyarrow as pa

    schema = _open(path).schema_arrow
    expected = f"a trace has the columns {', '.join((*TEXTS, 'seq', 'time', 'end'))}"
    for name in REQUIRED:
        if name not in schema.names:
            raise InputError(f"{path} has no column `{name}`", help=expected)
    for name in set(schema.names):
        if schema.names.count(name) > 1:
            raise InputError(f"{path} has several columns `{name}`", help=expected)
    for field in schema:
        if pa.types.is_null(field.type) and field.name in (*TEXTS, "end"):
            good = field.name not in REQUIRED  # a column of nulls is as good as none
        elif field.name in TEXTS:
            inner = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            good = pa.types.is_string(inner) or pa.types.is_large_string(inner)
        elif field.name in ("seq", "v", "time"):
            good = pa.types.is_integer(field.type)
        elif field.name == "end":
            good = pa.types.is_boolean(field.type)
        else:
            raise InputError(f"{path} has a column `{field.name}` that no trace has", help=expected)
        if not good:
            raise InputError(
                f"{path}: column `{field.name}` holds {field.type}",
                help="texts are strings, `seq`, `time` and `v` integers, `end` boolean",
            )


def parts(path: Path) -> list[tuple[int, int]]:
    """Ranges of row groups."""
    metadata = _open(path).metadata
    cuts, size = [0], 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= _ROW_GROUP_BYTES:
            cuts.append(group + 1)
            size = 0
    if cuts[-1] != metadata.num_row_groups or len(cuts) == 1:
        cuts.append(metadata.num_row_groups)
    return list(pairwise(cuts))


def read(part: Part, tally: Tally) -> Iterator[Block]:
    """The events of a part; a line is a row of it."""
    import pyarrow as pa

    file = _open(Path(part.path))
    groups = list(range(part.start, part.stop))
    batches = file.iter_batches(_BATCH_ROWS, row_groups=groups) if groups else iter(())
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(part.path, error) from error
        if batch is None:
            return
        first = tally.lines + 1
        tally.lines += batch.num_rows
        if block := _block(batch, part.number, first, tally):
            tally.told += len(block)
            tally.events += len(block)
            yield block


def _open(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(str(path), error) from error


def _damaged(path: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"{path} cannot be read as Parquet: {reason}",
        help="the file is truncated or damaged, or of another form: take another copy, or leave it out",
    )


def _block(batch: pa.RecordBatch, source: int, first: int, tally: Tally) -> Block | None:
    size = batch.num_rows
    entities, entity = _coded(batch, "entity")
    sequence, good, why = _sequences(batch)
    meanings, meaning = _meanings(batch)
    for row in np.flatnonzero(~good).tolist():
        tally.refuse(first + row, why[row])
    for texts, column, name in ((entities, entity, "entity"), (meanings, meaning, "")):
        wrong = np.array([_wrong(text, name) is not None for text in texts], bool)[column] & good
        for row in np.flatnonzero(wrong).tolist():
            tally.refuse(first + row, str(_wrong(texts[column[row]], name)))
        good &= ~wrong
    rows = np.flatnonzero(good)
    if not len(rows):
        return None
    pairs, pair = np.unique(
        meaning[rows].astype(np.int64) * len(entities) + entity[rows], return_inverse=True
    )
    streams: dict[Any, int] = {}
    keys: dict[tuple[int, str], int] = {}
    symbols: dict[str, int] = {}
    key_of, symbol_of = [], []
    for code in pairs.tolist():
        event = meanings[code // len(entities)]
        stream = streams.setdefault(event.stream, len(streams))
        key_of.append(keys.setdefault((stream, str(entities[code % len(entities)])), len(keys)))
        symbol_of.append(symbols.setdefault(event.symbol, len(symbols)))
    assert size >= len(rows)
    return Block(
        tuple(streams),
        names_of(name for _, name in keys),
        np.array([stream for stream, _ in keys], np.int32),
        tuple(symbols),
        np.array(key_of, np.int64)[pair],
        sequence[rows],
        np.array(symbol_of, np.int64)[pair],
        coded_place(source, rows + first),
        _times(batch)[rows],
    )


def _wrong(text: object, name: str) -> str | None:
    """Why a row with this entity, or with this meaning, is no event."""
    if not name:
        return text if isinstance(text, str) else None
    if text is None:
        return f"`{name}` is null"
    if isinstance(text, bytes):
        return f"`{name}` is not UTF-8 text"
    return None if text else f"`{name}` is empty"


def _sequences(batch: pa.RecordBatch) -> tuple[Ints, Ints, dict[int, str]]:
    import pyarrow as pa

    column = batch.column("seq")
    if pa.types.is_unsigned_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        values = np.minimum(values, SEQUENCE_MAX).astype(np.int64)
    else:
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    null = column.is_null().to_numpy(zero_copy_only=False)
    outside = (values < 0) | (values >= SEQUENCE_MAX)
    why = dict.fromkeys(np.flatnonzero(outside).tolist(), "`seq` is not in 0 .. 2**53 - 1")
    why |= dict.fromkeys(np.flatnonzero(null).tolist(), "`seq` is null")
    good = ~(null | outside)
    if "v" in batch.schema.names:
        version = batch.column("v").fill_null(TRACE_VERSION).to_numpy(zero_copy_only=False)
        other = version != TRACE_VERSION
        reason = f"trace version is not {TRACE_VERSION}"
        why |= dict.fromkeys(np.flatnonzero(other).tolist(), reason)
        good &= ~other
    return values, good, why


def _times(batch: pa.RecordBatch) -> Ints:
    if "time" not in batch.schema.names:
        return np.full(batch.num_rows, NO_TIME)
    return batch.column("time").fill_null(NO_TIME).to_numpy(zero_copy_only=False).astype(np.int64)


def _meanings(batch: pa.RecordBatch) -> tuple[list[Any], Ints]:
    """What each row says beside whose it is and when: a `Parsed`, or what is wrong with it."""
    combined = np.zeros(batch.num_rows, np.int64)
    combinations: list[dict[str, object]] = [{}]
    for name in (*_SYMBOLS, "node"):
        if name not in batch.schema.names:
            continue
        values, code = _coded(batch, name)
        if name == "node":  # only its validity matters
            values, code = _nodes(values, code)
        found, combined = np.unique(combined * len(values) + code, return_inverse=True)
        combinations = [
            {**combinations[c // len(values)], name: values[c % len(values)]}
            for c in found.tolist()
        ]
    return [_meaning(c) for c in combinations], combined


def _nodes(values: list[Any], code: Ints) -> tuple[list[Any], Ints]:
    bad = np.array([isinstance(v, bytes) for v in values], np.int64)
    return ["", b"\xff"], bad[code]


def _meaning(columns: dict[str, object]) -> Parsed | str:
    fields: dict[str, object] = {"v": TRACE_VERSION, "entity": "-", "seq": 0}
    for name, value in columns.items():
        if isinstance(value, bytes):
            return f"`{name}` is not UTF-8 text"
        if value is None:
            continue
        if name in ("params", "observed"):
            try:
                value = json.loads(str(value))
            except (ValueError, RecursionError) as error:
                return f"`{name}` is not JSON: {error}"
        fields[name] = value
    return event_of(fields)


def _coded(batch: pa.RecordBatch, name: str) -> tuple[list[Any], Ints]:
    """The distinct values of a column and which each row has; bytes where they are not UTF-8."""
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_boolean(column.type):
        column = column.cast(pa.large_binary())
    coded = column.dictionary_encode(null_encoding="encode")
    return [_text(v) for v in coded.dictionary.to_pylist()], coded.indices.to_numpy()


def _text(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
