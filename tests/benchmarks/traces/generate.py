"""Generates large traces of the tablet migration with known faults in them.

Entities follow random legal runs of the definition, a few hundred at a time, mixed as a cluster's coordinator
would write them. Some are spoilt, each in one way, and what is to be found of each is written down.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.trace import observation
from stagewright.spec.values import plain
from stagewright.traces.options import unbounded_scope

Ints = NDArray[Any]

RUNS = 10_000  # different legal runs that entities follow
ORIGINAL_FILES = 20  # further ones repeat these, as traces of other names
SPECIAL_RUNS = 10  # more, each with a move within a node, of which a table may have one at a time
TABLES = 977
TRACE = "bench"
GIANT = -1  # the number of an entity with a large part of all events
STEPS = 36  # of a run
_SCALE = 5_000_000  # events that are mixed at once
_AT_ONCE = 500  # entities
ROW_GROUP = 1 << 20


class Fault(Enum):
    """How the trace of one entity is spoilt, and the verdict that it must get."""

    def __init__(self, _: str, verdict: str) -> None:
        self.verdict = verdict

    illegal_jump = "illegal_jump", "violation"  # an event of another run in place of its own
    wrong_value = "wrong_value", "violation"  # a stage that the step does not lead to
    # the step names a kind of transition that there is not
    unknown_entity = ("unknown_entity", "unparsed")
    missing = "missing", "gap"  # an event is left out
    no_beginning = "no_beginning", "gap"  # the entity appears from nowhere
    duplicate = "duplicate", "ok"  # an event is written twice
    out_of_order = "out_of_order", "ok"  # two events change places in the file
    contradiction = "contradiction", "violation"  # two different events have one number
    broken_together = "broken_together", "ok"  # legal, but not at the time of another of its table


@dataclass
class Truth:
    """What was generated, and what must be found."""

    events: int = 0
    entities: int = 0
    faults: dict[str, int] = field(default_factory=dict)  # by kind of fault
    verdicts: dict[str, str] = field(default_factory=dict)  # of each spoilt entity of a trace
    duplicates: int = 0
    broken_tables: list[str] = field(default_factory=list)  # break `table.Table`'s property

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self)))


def machine() -> Definition:
    """The machine whose traces are generated."""
    from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration

    return define(TabletMigration)


@dataclass
class Letters:
    """What events say: the columns `action`, `params`, `observed` and `end` of each different event."""

    action: list[str | None] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    end: list[bool] = field(default_factory=list)
    _numbers: dict[tuple[str | None, str, str, bool], int] = field(default_factory=dict)

    def number(self, action: str | None, params: object, observed: object, end: bool) -> int:
        """The number of an event's letter, which is a new one unless it is known."""
        said, seen = (json.dumps(v, separators=(",", ":")) for v in (params, observed))
        found = self._numbers.setdefault((action, said, seen, end), len(self._numbers))
        if found == len(self.action):
            self.action.append(action)
            self.params.append(said)
            self.observed.append(seen)
            self.end.append(end)
        return found


class Walk:
    """Random legal runs of the machine, as the numbers of letters."""

    def __init__(self, letters: Letters, seed: int) -> None:
        definition = machine()
        self._letters, self._rng = letters, random.Random(seed)
        self._interpreter = Interpreter(definition, unbounded_scope(definition))
        self._initial = list(self._interpreter.initial_states())
        self._known: dict[Any, list[tuple[int, Any]]] = {}
        self.end = letters.number(None, {}, {}, end=True)

    def run(self, steps: int) -> list[int]:
        """A run of so many steps, without its end."""
        state = self._rng.choice(self._initial)
        found = [self._letters.number(None, {}, observation(state), end=False)]
        for _ in range(steps):
            letter, state = self._rng.choice(self._steps(state))
            found.append(letter)
        return found

    def _steps(self, state: Any) -> list[tuple[int, Any]]:
        found = self._known.get(state)
        if found is None:
            found = self._known[state] = []
            for step, after in self._interpreter.successors(state):
                params = {name: plain(value) for name, value in step.arguments.items()}
                letter = self._letters.number(step.action, params, observation(after), end=False)
                found.append((letter, after))
        return found


def legal_runs(seed: int) -> tuple[Letters, list[list[int]]]:
    """Some random runs of the definition, as the numbers of letters; the special ones at the end."""
    letters = Letters()
    walk = Walk(letters, seed)
    runs: list[list[int]] = []
    special: list[list[int]] = []
    seen: list[dict[str, object]] = []
    while len(runs) < RUNS or len(special) < SPECIAL_RUNS:
        run = walk.run(STEPS)
        seen += [json.loads(text) for text in letters.observed[len(seen) :]]
        moves = [seen[n]["stage"] for n in run if seen[n]["kind"] == "intranode_migration"]
        at_rest = seen[run[-1]]["stage"] == "none"
        kept = special if "streaming" in moves and at_rest else None if moves else runs
        if kept is not None and len(kept) < (RUNS if kept is runs else SPECIAL_RUNS):
            kept.append([*run, walk.end])
    runs += special
    _unknown(letters)
    return letters, runs


def _unknown(letters: Letters) -> int:
    """A letter that names what the machine does not have."""
    return letters.number("start", {"kind": "teleport"}, {}, end=False)


def generate(
    folder: Path, events: int, *, seed: int = 1, fault_rate: float = 1e-5, giant: float = 0.0
) -> Truth:
    """Write Parquet files with about so many events, and return what must be found in them.

    `fault_rate` is how many faults of every kind there are for each event; `giant`: which part of all events
    one entity has. More than `ORIGINAL_FILES` are generated by repeating those under other traces' names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    letters, runs = legal_runs(seed)
    truth = Truth()
    rng = np.random.default_rng(seed)
    giant_run = _giant(letters, seed, int(events * giant)) if giant else None
    files = max(1, -(-events // _SCALE))
    size = (events - (0 if giant_run is None else len(giant_run))) // (STEPS + 2) // files
    copies, rest = divmod(files, ORIGINAL_FILES)
    if copies > 1 and (rest or giant):
        raise ValueError(f"{ORIGINAL_FILES * _SCALE:,} events can only be repeated as a whole")
    originals = files // max(1, copies)
    for number in range(originals):
        columns = _file(rng, letters, runs, truth, number * size, size, fault_rate)
        if giant_run is not None:
            columns = _with_giant(rng, columns, giant_run, number, files)
        _write(_path(folder, number), columns, letters, number)
        truth.events += len(columns[0])
    truth.entities = originals * size + (giant_run is not None)
    for copy in range(1, copies):
        for number in range(originals):
            _repeat(_path(folder, number), _path(folder, copy * originals + number), copy)
    return truth if copies <= 1 else _times(truth, copies)


def _path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:04}.parquet"


def _repeat(original: Path, path: Path, copy: int) -> None:
    """The same events, of another trace."""
    texts = ["trace", "machine", "profile", "definition", "entity", "node"]
    file = pq.ParquetFile(original, read_dictionary=[*texts, "action", "params", "observed"])
    with pq.ParquetWriter(path, file.schema_arrow, store_schema=False) as writer:
        for number in range(file.num_row_groups):
            table = file.read_row_group(number)
            name = _coded([_trace(copy)], np.zeros(len(table), np.int32))
            table = table.set_column(table.schema.get_field_index("trace"), "trace", name)
            writer.write_table(table.cast(file.schema_arrow), row_group_size=ROW_GROUP)


def _times(truth: Truth, copies: int) -> Truth:
    """What must be found of so many traces."""
    names = [_trace(copy) for copy in range(copies)]

    def of(trace: str, entity: str) -> str:
        return trace + entity[len(TRACE) :]

    return Truth(
        truth.events * copies,
        truth.entities * copies,
        {fault: count * copies for fault, count in truth.faults.items()},
        {of(t, e): verdict for t in names for e, verdict in truth.verdicts.items()},
        truth.duplicates * copies,
        [of(t, e) for t in names for e in truth.broken_tables],
    )


def _trace(copy: int) -> str:
    return f"{TRACE}{copy or ''}"


def _giant(letters: Letters, seed: int, events: int) -> Ints:
    """One very long legal run."""
    walk = Walk(letters, seed)
    return np.array([*walk.run(events - 2), walk.end], np.int32)


def _file(
    rng: np.random.Generator,
    letters: Letters,
    runs: list[list[int]],
    truth: Truth,
    first: int,
    size: int,
    fault_rate: float,
) -> tuple[Ints, Ints, Ints]:
    """The columns entity, sequence and letter of one file."""
    table = np.array(runs, np.int32)
    length = table.shape[1]
    entity = np.repeat(np.arange(first, first + size, dtype=np.int64), length)
    sequence = np.tile(np.arange(length, dtype=np.int64), size)
    run, begin = rng.integers(0, RUNS, size), rng.random(size) * size
    many = max(1, round(len(entity) * fault_rate))
    run[:TABLES] = RUNS + rng.integers(0, SPECIAL_RUNS, min(TABLES, size))
    twice = rng.permutation(max(0, min(size - TABLES, TABLES)))[:many]
    run[twice + TABLES], begin[twice + TABLES] = run[twice], begin[twice]
    truth.broken_tables += [f"{TRACE}/{_table(first + t)}" for t in twice.tolist()]
    own = Fault.broken_together.name
    truth.faults[own] = truth.faults.get(own, 0) + len(twice)
    letter = table[run].ravel()
    at = np.repeat(begin, length) + sequence * (_AT_ONCE / length)
    at += rng.random(len(at)) * (_AT_ONCE / length / 2)
    others = max(0, size - 2 * TABLES)  # what breaks the property of a table is not spoilt itself
    spoilt = iter(
        (size - others + rng.choice(others, min(others, many * len(Fault)), replace=False)).tolist()
    )
    left_out: list[int] = []
    added: list[tuple[int, int, int, float]] = []
    unknown = _unknown(letters)  # it comes after all that runs have
    for fault in list(Fault)[:-1]:  # the last one is there already
        for one, _ in zip(spoilt, range(many), strict=False):
            row = one * length + int(rng.integers(2, length - 2))
            name = f"{TRACE}/{_name(first + one)}"
            truth.faults[fault.name] = truth.faults.get(fault.name, 0) + 1
            truth.verdicts[name] = fault.verdict
            match fault:
                case Fault.illegal_jump:
                    letter[row] = int(letter[one * length + length - 1])  # the end, too early
                case Fault.wrong_value:
                    letter[row] = _wrong(letters, int(letter[row]))
                case Fault.unknown_entity:
                    letter[row] = unknown
                case Fault.missing:
                    left_out.append(row)
                case Fault.no_beginning:
                    left_out.append(one * length)
                case Fault.duplicate:
                    added.append((first + one, int(sequence[row]), int(letter[row]), at[row] + 1))
                    truth.duplicates += 1
                case Fault.out_of_order:
                    at[row], at[row + 1] = at[row + 1], at[row]
                case Fault.contradiction:
                    other = (int(letter[row]) + 1) % unknown
                    added.append((first + one, int(sequence[row]), other, at[row] + 1))
    keep = np.ones(len(entity), bool)
    keep[left_out] = False
    more = np.array([row[:3] for row in added], np.int64).reshape(-1, 3)
    entity = np.concatenate([entity[keep], more[:, 0]])
    sequence = np.concatenate([sequence[keep], more[:, 1]])
    letter = np.concatenate([letter[keep], more[:, 2].astype(np.int32)])
    by = np.argsort(np.concatenate([at[keep], [row[3] for row in added]]), kind="stable")
    return entity[by], sequence[by], letter[by]


def _wrong(letters: Letters, letter: int) -> int:
    """A letter that says the same step, but observes another stage."""
    observed = json.loads(letters.observed[letter])
    observed["stage"] = "use_new" if observed["stage"] != "use_new" else "streaming"
    params = json.loads(letters.params[letter])
    return letters.number(letters.action[letter], params, observed, end=letters.end[letter])


def _with_giant(
    rng: np.random.Generator,
    columns: tuple[Ints, ...],
    run: Ints,
    number: int,
    files: int,
) -> tuple[Ints, Ints, Ints]:
    """The columns with this file's share of one entity's events, evenly mixed in."""
    begin, end = (len(run) * i // files for i in (number, number + 1))
    at = np.concatenate([rng.random(len(columns[0])), np.sort(rng.random(end - begin))])
    at[: len(columns[0])].sort()
    by = np.argsort(at, kind="stable")
    own = (np.full(end - begin, GIANT), np.arange(begin, end), run[begin:end])
    entity, sequence, letter = (
        np.concatenate([c, o])[by] for c, o in zip(columns, own, strict=True)
    )
    return entity, sequence, letter


def _name(entity: int) -> str:
    return f"{_table(entity)}:{entity}"


def _table(entity: int) -> str:
    number = TABLES if entity == GIANT else entity % TABLES  # the giant's table is its own
    return f"5a1f4c30-9d0e-11ef-8b4e-{number:012x}"


def _chunks(columns: tuple[Ints, ...]) -> Iterator[tuple[Ints, ...]]:
    for begin in range(0, len(columns[0]), ROW_GROUP):
        yield tuple(c[begin : begin + ROW_GROUP] for c in columns)


def _write(path: Path, columns: tuple[Ints, ...], letters: Letters, number: int) -> None:
    """One file, with the columns of a trace as plain texts."""
    definition = machine()
    writer = None
    time = number * _SCALE * 2
    for entity, sequence, letter in _chunks(columns):
        size = len(entity)
        names, code = np.unique(entity, return_inverse=True)

        def one(text: str, size: int = size) -> pa.Array:
            return _coded([text], np.zeros(size, np.int32))

        table = pa.table(
            {
                "trace": one(TRACE),
                "machine": one(definition.name),
                "profile": one(definition.profile),
                "definition": one(definition.fingerprint()),
                "entity": _coded([_name(e) for e in names.tolist()], code.astype(np.int32)),
                "seq": sequence,
                "time": np.arange(time, time + size),
                "node": _coded([f"node{i}" for i in range(9)], (entity % 9).astype(np.int32)),
                "action": _coded(letters.action, letter),
                "params": _coded(letters.params, letter),
                "observed": _coded(letters.observed, letter),
                "end": np.array(letters.end)[letter],
            }
        )
        time += size
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, store_schema=False)
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def _coded(texts: list[str] | list[str | None], codes: Ints) -> pa.Array:
    distinct = list(dict.fromkeys(t for t in texts if t is not None))
    number = {text: i for i, text in enumerate(distinct)}
    index = np.array([-1 if t is None else number[t] for t in texts], np.int32)[codes]
    indices = pa.array(index, mask=index < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, pa.string()))
