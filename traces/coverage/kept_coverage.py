"""Keeps in Parquet what the traces of earlier runs have exercised, so that coverage is that of all runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.automaton.step_code import State
from stagewright.traces.coverage.exercised import Exercised, Whose

Exercises = Mapping[Whose, Iterable[Exercised]]


def added(*some: Exercises) -> dict[Whose, list[Exercised]]:
    """What was exercised in several runs together."""
    counts: dict[Whose, Counter[tuple[tuple[State, ...], str]]] = {}
    for one in some:
        for key, pairs in one.items():
            counter = counts.setdefault(key, Counter())
            for states, symbol, count in pairs:
                counter[states, symbol] += count
    return {
        key: [(states, symbol, n) for (states, symbol), n in counter.items()]
        for key, counter in counts.items()
    }


def save_coverage(exercised: Exercises, path: Path) -> None:
    """Write what was exercised to a file.

    Raises:
        OSError: there is no room.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        (*key, candidate, json.dumps(states), symbol, count)
        for (key, candidate), pairs in exercised.items()
        for states, symbol, count in pairs
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 7
    text, number = pa.string(), pa.int64()
    kinds = [text, text, text, number, text, text, number]
    arrays = [pa.array(c, k) for c, k in zip(columns, kinds, strict=True)]
    names = ["machine", "profile", "definition", "candidate", "states", "symbol", "count"]
    pq.write_table(pa.table(arrays, names), path, compression="zstd")


def load_coverage(path: Path) -> dict[Whose, list[Exercised]]:
    """What a file says was exercised.

    Raises:
        InputError: the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[Whose, list[Exercised]] = {}
    known: dict[str, tuple[State, ...]] = {}
    try:
        columns = [c.to_pylist() for c in pq.read_table(path).columns]
        for machine, profile, definition, candidate, states, symbol, count in zip(
            *columns, strict=True
        ):
            if states not in known:
                known[states] = tuple(tuple(state) for state in json.loads(states))
            pairs = found.setdefault(((machine, profile, definition), candidate), [])
            pairs.append((known[states], symbol, count))
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", help="begin anew with an empty --state directory"
        ) from error
    return found
