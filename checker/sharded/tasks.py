"""What a worker does: one shard's part of one level, and the search for parents.

A task is described by a few words and reads everything else from files. Run again, anywhere, it finds the
files that were made before, or makes the very same.

Schedulers send a task to whatever process is free, but the table of a shard lies in the process that had
the shard before. So a level's tasks are not bound to shards: each takes one that nobody has taken, if it
can one whose table it finds in its process. A shard whose taker died is offered again.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from stagewright.checker.explicit.exploration import Noted
from stagewright.checker.explicit.native.code.observed import Numbers, Observed, clear
from stagewright.checker.sharded import routing
from stagewright.checker.sharded.files import (
    Rows,
    Sent,
    claim_file,
    new_file,
    read_json,
    read_states,
    received,
    sending,
    sent_file,
    take,
    write_states,
)
from stagewright.checker.sharded.program import Compiled, Program
from stagewright.checker.sharded.tables import SHELF, NoRoomError, ShardTable

SEARCH_FILE = "search.json"
_SMALLEST_ROOM = 1 << 13  # states a buffer
_SMALLEST_FILTER, _LARGEST_FILTER = 1 << 10, 1 << 16  # successors
_EDGE_BYTES = 1 << 25


@dataclass(frozen=True)
class LevelTask:
    """One shard's part of one level; if several are offered, whichever it will be."""

    folder: str
    run: str
    number: int
    offered: tuple[int, ...]  # shards, of which one is to be taken; a single one is bound
    shards: int
    sources: tuple[int, ...]  # the shards that sent something to this level
    level: int
    keep: int  # tables that a process is to keep
    memory: int | None = None  # bytes that this process's tables may take
    look_only: bool = False  # do not send successors
    noted_states: tuple[int, ...] = ()  # promises of which no further violation is wanted
    noted_steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class LevelPart:
    """What came of it."""

    shard: int
    states: int  # new ones
    sent: int
    transitions: int
    observed: tuple[int, ...]  # the block that the generated code filled
    process: str
    held: int  # bytes of tables in that process
    again: int  # states that its table had to be given again
    refused: str = ""  # why nothing was done


@lru_cache(maxsize=1)
def compiled(folder: str, run: str) -> Compiled:
    """The program of a run."""
    document = read_json(Path(folder) / SEARCH_FILE)
    assert document["run"] == run, "the work directory belongs to another run"
    return Compiled(Program.from_json(document["program"]))


def search_level(task: LevelTask) -> LevelPart | None:
    """Take a shard, find its new states, expand them, and send their successors to their shards.

    None if every shard has been taken.
    """
    shard = _taken(task)
    if shard is None:
        return None
    code = compiled(task.folder, task.run)
    process = f"{platform.node()}:{os.getpid()}"
    try:
        states, again = _new_states(task, shard, code.program)
    except NoRoomError as error:
        return LevelPart(shard, 0, 0, 0, (), process, SHELF.bytes, 0, str(error))
    block = _block(task, code.program.observed)
    sent = transitions = 0
    if task.look_only:
        _look(code, states, block)
    else:
        with sending(sent_file(Path(task.folder), task.level, shard)) as file:
            router = Router(code, task.shards, states.shape[0], block)
            transitions = router.route(states, file)
            sent = file.states
    observed = tuple(block.tolist())
    count = states.shape[0]
    return LevelPart(shard, count, sent, transitions, observed, process, SHELF.bytes, again)


def _taken(task: LevelTask) -> int | None:
    """A shard that is now this task's, preferably one whose table is here."""
    if len(task.offered) == 1:
        return task.offered[0]
    here = [shard for shard in SHELF.shards(task.run) if shard in task.offered]
    turn = task.number % len(task.offered)
    rest = [s for s in task.offered[turn:] + task.offered[:turn] if s not in here]
    for shard in (*here, *rest):
        if take(claim_file(Path(task.folder), task.level, shard)):
            return shard
    return None


def _block(task: LevelTask, place: Observed) -> Numbers:
    """A block in which only what is still wanted will be noted."""
    block = place.block()
    for promise in task.noted_states:
        clear(block, place.live_states, promise)
    for promise in task.noted_steps:
        clear(block, place.live_steps, promise)
    return block


def _new_states(task: LevelTask, shard: int, program: Program) -> tuple[Rows, int]:
    """The shard's states of this level, and how many states its table had to be given again."""
    folder = Path(task.folder)
    path = new_file(folder, task.level, shard)
    if path.exists():
        return read_states(path, program.words), 0
    table = SHELF.take(task.run, shard)
    if table is None or table.filled >= task.level:
        table = ShardTable(program)
    before = table.again
    table.catch_up(folder, shard, task.level, SHELF, task.memory)
    known = table.count
    for source in task.sources:
        for piece in received(sent_file(folder, task.level - 1, source), shard, program.words):
            table.enter(piece, SHELF, task.memory)
    write_states(path, table.since(known))
    table.settle(task.level)
    SHELF.put(shard, table, task.keep)  # not before: a table that an error left half filled is lost
    return read_states(path, program.words), table.again - before


def _look(code: Compiled, states: Rows, block: Numbers) -> None:
    """Look at states without going on from them."""
    program = code.program
    for piece in _batches(states, program):
        out = np.empty((program.most_successors(piece.shape[0]) + 1, program.words), np.uint64)
        at = [array.ctypes.data for array in (out, block)]
        code.expand(piece.ctypes.data, piece.shape[0], *at, None, None, None)


def _batches(states: Rows, program: Program) -> list[Rows]:
    """The states, so many at a time that their successors fit into a few megabytes."""
    size = max(1, _EDGE_BYTES // (8 * (program.words + 1) * (program.steps + 1)))
    return [states[first : first + size] for first in range(0, states.shape[0], size)]


class Router:
    """Buffers for successors, one a shard, and the job that generated code works on."""

    def __init__(self, code: Compiled, shards: int, states: int, block: Numbers) -> None:
        self._code, self._shards = code, shards
        words = code.program.words
        self.most = max(1, code.program.most_successors(routing.BLOCK))
        room = max(_SMALLEST_ROOM, 2 * self.most)
        slots = _SMALLEST_FILTER
        while slots < min(4 * states, _LARGEST_FILTER):
            slots *= 2
        self._out = np.empty((self.most + 1, words), dtype=np.uint64)
        self._buffers = np.empty((shards, room, words), dtype=np.uint64)
        self._counts = np.zeros(shards, dtype=np.int64)
        self._filter = np.full((slots, words), (1 << 64) - 1, dtype=np.uint64)
        self._block = block  # kept alive here: the job holds only its address
        self._job = np.zeros(routing.JOB_SIZE, dtype=np.int64)
        for place, array in (
            (routing.OUT, self._out),
            (routing.OBSERVED, block),
            (routing.BUFFERS, self._buffers),
            (routing.COUNTS, self._counts),
            (routing.FILTER, self._filter),
        ):
            self._job[place] = array.ctypes.data
        self._job[routing.EXPAND] = code.expand_address
        self._job[routing.FILTER_MASK] = slots - 1
        self._job[routing.SHARDS] = shards
        self._job[routing.ROOM] = room
        self._job[routing.ENOUGH] = room - self.most - 1

    def route(self, states: Rows, sent: Sent) -> int:
        """Send all successors of the states; returns how many steps there are."""
        job, count = self._job, states.shape[0]
        while job[routing.NEXT] < count:
            self._code.route(states.ctypes.data, count, job.ctypes.data)
            self._empty(sent)
        return int(job[routing.TRANSITIONS])

    def send(self, states: Rows, sent: Sent) -> None:
        """Send the states themselves."""
        for first in range(0, states.shape[0], self.most):
            some = states[first : first + self.most]
            self._code.send(some.ctypes.data, some.shape[0], self._job.ctypes.data)
            if self._job[routing.FULL]:
                self._empty(sent)
        self._empty(sent)

    def _empty(self, sent: Sent) -> None:
        for shard in np.flatnonzero(self._counts).tolist():
            sent.append(shard, self._buffers[shard, : self._counts[shard]])
        self._counts[:] = 0
        self._job[routing.FULL] = 0


@dataclass(frozen=True)
class ParentsTask:
    """Look among one shard's states of a level for those that lead to the wanted ones."""

    folder: str
    run: str
    shard: int
    level: int
    wanted: tuple[tuple[int, ...], ...]


def least_parents(task: ParentsTask) -> tuple[Noted | None, ...]:
    """For each wanted state the shard's least state, and its first step, that leads there."""
    code = compiled(task.folder, task.run)
    program = code.program
    states = read_states(new_file(Path(task.folder), task.level, task.shard), program.words)
    least: list[Noted | None] = [None] * len(task.wanted)
    for piece in _batches(states, program):
        successors, steps, ends = _edges(code, piece)
        for i, wanted in enumerate(task.wanted):
            matches = (successors == np.array(wanted, dtype=np.uint64)).all(axis=1)
            for edge in np.flatnonzero(matches).tolist():
                source = piece[np.searchsorted(ends, edge, side="right")]
                found = Noted(tuple(source.tolist()), int(steps[edge]))
                best = least[i]
                least[i] = found if best is None else min(best, found)
    return tuple(least)


def _edges(code: Compiled, states: Rows) -> tuple[Rows, Numbers, Numbers]:
    """All successors, their steps, and for each state where its successors end."""
    program, count = code.program, states.shape[0]
    most = program.most_successors(count) + 1
    out = np.empty((most, program.words), dtype=np.uint64)
    steps = np.empty(most, dtype=np.int32)
    ends = np.zeros(count, dtype=np.int64)
    overflows = np.zeros(1 + 2 * count * program.overflowing_steps, dtype=np.int64)
    block = np.zeros(program.observed.size, dtype=np.int64)  # larger than what nobody watches for
    arrays = (out, block, steps, ends, overflows)
    at = [array.ctypes.data for array in arrays]
    found = code.edges(states.ctypes.data, count, *at)
    if code.canonical is not None:
        code.canonical(out.ctypes.data, found)
    return out[:found], steps[:found].astype(np.int64), ends
