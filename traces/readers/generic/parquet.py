"""Reads traces in Parquet: the fields of a JSON line as columns, `params` and `observed` as JSON text.

Columns that are absent, and nulls in all but `entity` and `seq`, mean what an absent field means in JSON
lines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TRACE_VERSION
from stagewright.traces.events.event_block import NO_TIME, Block, Stream, coded_place
from stagewright.traces.events.string_pool import Names, names_of_arrow
from stagewright.traces.readers.generic.jsonl_line import (
    REQUIRED,
    SEQUENCE_MAX,
    Parsed,
    event_of,
    json_of,
)
from stagewright.traces.readers.protocol import Hole, Part, Tally

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[Any]

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
_READ = (*_SYMBOLS, "entity", "seq", "time", "v")  # a node is for people only
_ROW_GROUP_BYTES = 1 << 26  # row groups are put together until they have about as many bytes
_BATCH_ROWS = 1 << 20
_SLICE_ROWS = 1 << 17
_CODES_MAX = 1 << 20  # combinations of values that are counted by place


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


def read(
    part: Part, tally: Tally, wanted: Callable[[Names], Ints] | None = None
) -> Iterator[Block]:
    """The events of a part; a line is a row of it.

    With `wanted`, which says of each name whether it is wanted, rows of other entities are left out.
    """
    lost = {hole.group for hole in part.holes}
    file = _open_coded(Path(part.path))
    for group in range(part.start, part.stop):
        if group in lost:
            tally.lines += file.metadata.row_group(group).num_rows
            tally.lost += file.metadata.row_group(group).num_rows
            continue
        if wanted is not None and not _holds(file, part.path, group, wanted):
            tally.lines += file.metadata.row_group(group).num_rows
            continue
        constant = _constants(file, group)
        columns = [n for n in file.schema_arrow.names if n in _READ and n not in constant]
        for batch in _batches(file, part.path, group, columns):
            first = tally.lines + 1
            tally.lines += batch.num_rows
            lines = np.arange(first, first + batch.num_rows)
            if wanted is not None:
                rows = np.flatnonzero(_of_wanted(batch, wanted))
                batch, lines = batch.take(rows), lines[rows]
            yield from _blocks(batch, constant, part.number, lines, tally)


def _blocks(
    batch: pa.RecordBatch, constant: Mapping[str, str], source: int, lines: Ints, tally: Tally
) -> Iterator[Block]:
    """A batch in blocks: arrays of a megabyte are used again and again; larger ones are new memory each time."""
    named, said = _entities(batch), _said(batch, constant)
    for begin in range(0, batch.num_rows, _SLICE_ROWS):
        rows = slice(begin, begin + _SLICE_ROWS)
        piece = batch.slice(begin, _SLICE_ROWS)
        block = _block(piece, _Rows(named, said, rows, source, lines[rows]), tally)
        if block:
            tally.with_events += len(block)
            tally.events += len(block)
            yield block


def holes(part: Part) -> list[Hole]:
    """The row groups that cannot be read."""
    found: list[Hole] = []
    first = 1
    try:
        file = _open_coded(Path(part.path))
    except InputError as error:
        return [Hole(first, error.problem)]
    for group in range(part.start, part.stop):
        rows = file.metadata.row_group(group).num_rows
        try:
            for _ in _batches(file, part.path, group, _columns(file)):
                pass
        except InputError as error:
            found.append(Hole(first, error.problem, rows, group))
        first += rows
    return found


def rows(part: Part) -> int:
    """How many rows a part has."""
    metadata = _open(Path(part.path)).metadata
    return sum(metadata.row_group(group).num_rows for group in range(part.start, part.stop))


def _columns(file: Any) -> list[str]:
    return [name for name in file.schema_arrow.names if name in _READ]


def _batches(file: Any, path: str, group: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    batches = file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, error) from error
        if batch is None:
            return
        yield batch


def _constants(file: Any, group: int) -> dict[str, str]:
    """The texts that all rows of a row group have in common, by column, as its statistics say."""
    found: dict[str, str] = {}
    metadata = file.metadata.row_group(group)
    for number in range(metadata.num_columns):
        column = metadata.column(number)
        if column.path_in_schema not in _SYMBOLS or column.physical_type != "BYTE_ARRAY":
            continue
        said = column.statistics
        if said is not None and said.has_min_max and said.has_null_count and not said.null_count:
            with contextlib.suppress(UnicodeDecodeError):  # then the rows show what is wrong
                least, most = said.min, said.max
                # One that was cut short is below the least value, or above the greatest.
                if isinstance(least, str) and least == most:
                    found[column.path_in_schema] = least
    return found


def _holds(file: Any, path: str, group: int, wanted: Callable[[Names], Ints]) -> bool:
    return any(
        wanted(_entities(batch).names).any() for batch in _batches(file, path, group, ["entity"])
    )


def _of_wanted(batch: pa.RecordBatch, wanted: Callable[[Names], Ints]) -> Ints:
    """Which rows are of wanted entities; those without a name are not."""
    entities = _entities(batch)
    found: Ints = np.append(wanted(entities.names), False)[entities.entity]
    return found


def _open(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(str(path), error) from error


def _open_coded(path: Path) -> Any:
    """The file with its texts as dictionaries: a text is decoded once a row group, not once a row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = _open(path)
    texts = [
        field.name
        for field in plain.schema_arrow
        if field.name in TEXTS
        and (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
    ]
    return pq.ParquetFile(path, metadata=plain.metadata, read_dictionary=texts)


def _damaged(path: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(
        f"{path} cannot be read as Parquet: {reason}",
        help="the file is truncated or damaged, or of another form: take another copy, or leave it out",
    )


@dataclass(frozen=True)
class _Rows:
    """Some rows of a batch, and what the whole batch says."""

    named: _Entities
    said: _Said
    rows: slice
    source: int
    lines: Ints


def _block(batch: pa.RecordBatch, of: _Rows, tally: Tally) -> Block | None:
    said, lines = of.said, of.lines
    entity, meaning = of.named.entity[of.rows], said.meaning[of.rows]
    sequence, good, why = _sequences(batch)
    for reasons, column in ((of.named.refused, entity), (said.refused, meaning)):
        if reasons:
            wrong = np.isin(column, list(reasons)) & good
            why |= {row: reasons[int(column[row])] for row in np.flatnonzero(wrong).tolist()}
            good &= ~wrong
    for row in sorted(why):
        tally.refuse(int(lines[row]), why[row])
    if not good.any():
        return None
    rows = slice(None) if good.all() else np.flatnonzero(good)
    names, stream, entity = of.named.names, of.named.stream, entity[rows]
    meaning = meaning[rows]
    if len(said.streams) > 1:
        pairs, entity = np.unique(
            said.stream[meaning].astype(np.int64) * len(names) + entity, return_inverse=True
        )
        names, stream = names.take(pairs % len(names)), (pairs // len(names)).astype(np.int32)
    return Block(
        said.streams,
        names,
        stream,
        said.symbols,
        entity,
        sequence[rows],
        said.symbol[meaning],
        coded_place(of.source, lines[rows]),
        _times(batch)[rows],
    )


@dataclass(frozen=True)
class _Entities:
    """The names in a batch, and which of them cannot be one."""

    names: Names
    refused: dict[int, str]
    entity: Ints  # of each row; nulls have the number after the last
    stream: Ints  # of each name, where there is one stream


def _entities(batch: pa.RecordBatch) -> _Entities:
    import pyarrow as pa

    column = _dictionary(batch.column("entity"))
    texts, entity = column.dictionary, _indices(column)
    refused = {len(texts): "`entity` is null"} if column.null_count else {}
    names = names_of_arrow(texts)
    if (names.end == names.begin).any():
        refused |= dict.fromkeys(
            np.flatnonzero(names.end == names.begin).tolist(), "`entity` is empty"
        )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        coded = texts.cast(pa.large_binary()).to_pylist()
        bad = [i for i, text in enumerate(coded) if not isinstance(_text(text), str)]
        refused |= dict.fromkeys(bad, "`entity` is not UTF-8 text")
    return _Entities(names, refused, entity, np.zeros(len(names), np.int32))


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    """A column as the distinct values and which of them each row has."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode()


def _indices(column: pa.DictionaryArray) -> Ints:
    """Which value each row has; nulls have the number after the last."""
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(column.dictionary))
    found: Ints = indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return found


def _sequences(batch: pa.RecordBatch) -> tuple[Ints, Ints, dict[int, str]]:
    import pyarrow as pa

    column = batch.column("seq")
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    values = (column if null is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
    if pa.types.is_unsigned_integer(column.type):
        values = np.minimum(values, SEQUENCE_MAX)
    values = values.astype(np.int64, copy=False)
    good = np.ones(len(values), bool)
    why: dict[int, str] = {}
    if len(values) and (values.min() < 0 or values.max() >= SEQUENCE_MAX):
        outside = (values < 0) | (values >= SEQUENCE_MAX)
        why |= dict.fromkeys(np.flatnonzero(outside).tolist(), "`seq` is not in 0 .. 2**53 - 1")
        good &= ~outside
    if null is not None:
        why |= dict.fromkeys(np.flatnonzero(null).tolist(), "`seq` is null")
        good &= ~null
    if "v" in batch.schema.names:
        version = batch.column("v").fill_null(TRACE_VERSION).to_numpy(zero_copy_only=False)
        other = version != TRACE_VERSION
        reason = f"trace version is not {TRACE_VERSION}"
        why |= dict.fromkeys(np.flatnonzero(other).tolist(), reason)
        good &= ~other
    return values, good, why


def _times(batch: pa.RecordBatch) -> Ints:
    if "time" not in batch.schema.names:
        return np.broadcast_to(np.int64(NO_TIME), batch.num_rows)
    column = batch.column("time")
    if column.null_count:
        column = column.fill_null(NO_TIME)
    found: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found


@dataclass(frozen=True)
class _Said:
    """What the rows of a batch say beside whose they are and when; `meaning` is which of it each row says."""

    meaning: Ints
    refused: dict[int, str]  # what is wrong with a meaning
    streams: tuple[Stream, ...]
    symbols: tuple[str, ...]
    stream: Ints  # of each meaning, in `streams`; -1 where it is refused
    symbol: Ints


def _said(batch: pa.RecordBatch, constant: Mapping[str, str]) -> _Said:
    meanings, meaning = _meanings(batch, constant)
    parsed = [event for event in meanings if isinstance(event, Parsed)]
    streams = {stream: i for i, stream in enumerate(dict.fromkeys(e.stream for e in parsed))}
    symbols = {symbol: i for i, symbol in enumerate(dict.fromkeys(e.symbol for e in parsed))}
    pairs = [
        (-1, -1) if isinstance(m, str) else (streams[m.stream], symbols[m.symbol]) for m in meanings
    ]
    refused = {i: text for i, text in enumerate(meanings) if isinstance(text, str)}
    stream, symbol = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    return _Said(meaning, refused, tuple(streams), tuple(symbols), stream, symbol)


def _meanings(
    batch: pa.RecordBatch, constant: Mapping[str, str]
) -> tuple[list[Parsed | str], Ints]:
    """What the rows say, or what is wrong with it; and which row says what."""
    columns = {
        name: _dictionary(batch.column(name)) for name in _SYMBOLS if name in batch.schema.names
    }
    values = {name: _values(column) for name, column in columns.items()}
    code = np.zeros(batch.num_rows, np.int64)
    kept: list[Ints] = []  # what the codes stand for, column by column
    size = 1
    for name, column in columns.items():
        many = len(values[name])
        if many == 1:
            kept.append(np.zeros(size, np.int64))
            continue
        _combine(code, many, _indices(column))
        if size * many > _CODES_MAX:
            found, code = np.unique(code, return_inverse=True)
        else:
            found = _number_by_place(code, np.full(size * many, -1, np.int32))
        kept = [*(k[found // many] for k in kept), found % many]
        size = len(found)
    names = (*columns, *constant)
    texts = [[values[name][v] for v in k.tolist()] for name, k in zip(columns, kept, strict=True)]
    same = tuple(constant.values())
    several = zip(*texts, strict=True) if texts else [()]
    return [_meaning(names, (*one, *same)) for one in several], code


@compiled
def _combine(code: Ints, many: int, index: Ints) -> None:
    for i in range(len(code)):
        code[i] = code[i] * many + index[i]


@compiled
def _number_by_place(code: Ints, number: Ints) -> Ints:
    """Number the codes from 0 in the order in which they come; returns the code of each number."""
    found = np.empty(len(number), np.int64)
    count = 0
    for i in range(len(code)):
        one = code[i]
        if number[one] < 0:
            number[one] = count
            found[count] = one
            count += 1
        code[i] = number[one]
    return found[:count].copy()


def _values(column: pa.DictionaryArray) -> list[object]:
    """The values that indices stand for: bytes where they are not UTF-8, None at the end for nulls."""
    import pyarrow as pa

    texts = column.dictionary
    if not pa.types.is_boolean(texts.type):
        texts = texts.cast(pa.large_binary())
    nulls = [None] if column.null_count else []
    return [*(_text(value) for value in texts.to_pylist()), *nulls] or [None]


@lru_cache(maxsize=1 << 16)
def _meaning(names: tuple[str, ...], values: tuple[object, ...]) -> Parsed | str:
    fields: dict[str, object] = {"v": TRACE_VERSION, "entity": "-", "seq": 0}
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bytes):
            return f"`{name}` is not UTF-8 text"
        if value is None:
            continue
        if name in ("params", "observed"):
            try:
                value = json_of(str(value))
            except (ValueError, RecursionError) as error:
                return f"`{name}` is not JSON: {error}"
        fields[name] = value
    return event_of(fields)


def _text(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
