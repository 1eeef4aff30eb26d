"""What is carried from one run to the next: the rows of all entities, in Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.errors import InputError
from stagewright.traces.automaton.possible_states import OfCandidate, PossibleStates
from stagewright.traces.automaton.step_code import State
from stagewright.traces.events.event_block import Stream
from stagewright.traces.events.string_pool import Names, names_of_arrow
from stagewright.traces.replay.rows import (
    ENTITY,
    ENTRY,
    EXIT,
    KIND,
    LENGTH,
    PLACE,
    SEQUENCE,
    SYMBOL,
    TIME,
    WIDTH,
    Rows,
)
from stagewright.traces.replay.segments import salt_of

Ints = NDArray[Any]

_NUMBERS = {"sequence": SEQUENCE, "length": LENGTH, "kind": KIND, "place": PLACE, "time": TIME}


def save(rows: Rows, path: Path) -> None:
    """Write rows to a file.

    Raises:
        OSError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = rows.table
    stream = rows.stream[table[:, ENTITY]]
    columns: dict[str, Any] = {
        name: _coded([s[i] for s in rows.streams], stream) for i, name in enumerate(Stream._fields)
    }
    columns["entity"] = _texts(rows.names.take(table[:, ENTITY]))
    columns["symbol"] = _coded(list(rows.symbols), table[:, SYMBOL])
    sets = [json.dumps([s.number, s.states, s.candidates]) for s in rows.sets]
    columns["entry"] = _coded(sets, table[:, ENTRY])
    columns["exit"] = _coded(sets, table[:, EXIT])
    columns |= {name: table[:, column] for name, column in _NUMBERS.items()}
    pq.write_table(pa.table(columns), path, compression="zstd")


def load(path: Path) -> Rows:
    """The rows of a file that `save` wrote.

    Raises:
        InputError: the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(path).combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", help="begin anew with an empty --state directory"
        ) from error
    size = found.num_rows
    fields = [_decoded(found, name) for name in Stream._fields]
    code = np.zeros(size, np.int64)
    for values, index in fields:
        code = code * max(len(values), 1) + index
    first, stream = np.unique(code, return_index=True, return_inverse=True)[1:]
    streams = tuple(
        Stream(*(values[index[row]] for values, index in fields)) for row in first.tolist()
    )
    texts, symbol = _decoded(found, "symbol")
    table = np.full((size, WIDTH), -1, np.int64)
    table[:, ENTITY] = np.arange(size)
    table[:, SYMBOL] = symbol
    for name, column in _NUMBERS.items():
        table[:, column] = found[name].to_numpy()
    sets: dict[PossibleStates, int] = {}
    for name, column in (("entry", ENTRY), ("exit", EXIT)):
        values, index = _decoded(found, name)
        pairs, which = np.unique(np.stack([stream, index], axis=1), axis=0, return_inverse=True)
        numbers = [
            -1 if i < 0 else sets.setdefault(_set(streams[s], values[i]), len(sets))
            for s, i in pairs.tolist()
        ]
        table[:, column] = np.array(numbers, np.int64)[which.ravel()] if size else -1
    names = names_of_arrow(_one(found["entity"]))
    return Rows(
        streams,
        stream.astype(np.int32),
        names,
        hashes_of(streams, stream.astype(np.int32), names),
        tuple(texts),
        tuple(sets),
        table,
    )


def hashes_of(streams: tuple[Stream, ...], stream: Ints, names: Names) -> Ints:
    """The hashes of entities, as an `Interner` has them."""
    from stagewright.traces.events.string_pool import Interner

    salts = np.array([*(salt_of(s) for s in streams), 0], np.uint64)
    interner = Interner()
    number = interner.number(names, stream, salts)
    return interner.hashes[number]


def _set(stream: Stream, text: str) -> PossibleStates:
    number, states, *more = json.loads(text)
    candidates = [OfCandidate(n, _states(s)) for n, s in (more[0] if more else ())]
    return PossibleStates(stream[1:], number, _states(states), tuple(candidates))


def _states(listed: list[list[int]]) -> tuple[State, ...]:
    return tuple(tuple(state) for state in listed)


def _coded(texts: list[str], codes: Ints) -> Any:
    import pyarrow as pa

    distinct = list(dict.fromkeys(texts))
    number = {text: i for i, text in enumerate(distinct)}
    index = np.array([*(number[t] for t in texts), -1], np.int32)[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(index, mask=index < 0), pa.array(distinct, pa.string())
    )


def _texts(names: Names) -> Any:
    import pyarrow as pa

    ends = np.append(names.begin, names.end[-1:]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(
        len(names), pa.py_buffer(ends.tobytes()), pa.py_buffer(names.data.tobytes())
    )


def _one(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks else column.type.wrap_array([])


def _decoded(table: Any, name: str) -> tuple[list[str], Ints]:
    """The distinct values of a column, and which each row has; -1 for none."""
    import pyarrow as pa

    column = _one(table[name])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return column.dictionary.to_pylist(), indices
