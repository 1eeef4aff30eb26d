"""The tables of visited states that this process keeps between tasks, and how much memory they may take.

A table is only a memory of files: whoever has none makes it again from the states of earlier levels. So
a process keeps the few tables that it used last, and fewer of them when there is no room.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from stagewright.checker.explicit.native.visited_set.visited import Visited
from stagewright.checker.explicit.packing import Layout, Place
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.sharded.files import Rows, new_file, pieces, read_states
from stagewright.checker.sharded.program import Program

_TOO_WIDE = 31  # bits of a state


class NoRoomError(Exception):
    """A table cannot grow within the memory limit; the text says which."""


class ShardTable:
    """The states of one shard up to and including the level `filled`."""

    def __init__(self, program: Program) -> None:
        self._visited = Visited(_wide(program.layout))
        self.filled = -1
        self.again = 0  # states that were entered from files

    @property
    def bytes(self) -> int:
        """Memory held."""
        return self._visited.bytes

    @property
    def count(self) -> int:
        """How many states there are."""
        return self._visited.count

    def enter(self, states: Rows, shelf: Shelf, limit: int | None) -> None:
        """Enter states, which may repeat.

        Raises:
            NoRoomError: there is no memory for them.
        """
        visited = self._visited
        while visited.capacity < visited.count + states.shape[0]:
            shelf.make_room(self, visited.table_bytes, limit)
            visited.grow()
        visited.add(states.T)

    def since(self, first: int) -> Rows:
        """A view of all states but the first so many, in the order in which they were entered."""
        return self._visited.states(first, self.count).T

    def settle(self, level: int) -> None:
        """All states of a level are known."""
        self.filled = level
        if not self._visited.kind.knows_places:  # such a table needs no list of its states
            self._visited.release(self.count)

    def catch_up(
        self, folder: Path, shard: int, level: int, shelf: Shelf, limit: int | None
    ) -> None:
        """Enter what files say of all levels before this one.

        Raises:
            NoRoomError: there is no memory for them.
        """
        for missing in range(self.filled + 1, level):
            states = read_states(new_file(folder, missing, shard), self._visited.kind.words)
            for piece in pieces(states):
                self.enter(piece, shelf, limit)
            self.again += states.shape[0]
            self.settle(missing)


def _wide(layout: Layout) -> Layout:
    """A layout that looks too wide for a bitmap, which would take as much for a shard as for all."""
    bits = sum(place.bits for place in layout.places)
    spare = Place(layout.words - 1, 0, max(0, _TOO_WIDE - bits))
    return Layout(layout.cells, (*layout.places, spare), layout.words)


class Shelf:
    """The tables of one run that no task is using now, the one used last at the end."""

    def __init__(self) -> None:
        self._run = ""
        self._tables: OrderedDict[int, ShardTable] = OrderedDict()

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(table.bytes for table in self._tables.values())

    def shards(self, run: str) -> list[int]:
        """Whose tables are here, the one used last at the end; tables of other runs are forgotten."""
        if run != self._run:
            self._run = run
            self._tables.clear()
        return list(self._tables)

    def take(self, run: str, shard: int) -> ShardTable | None:
        """A shard's table, which is no longer on the shelf."""
        return self._tables.pop(shard, None) if run == self._run else None

    def put(self, shard: int, table: ShardTable, keep: int) -> None:
        """Keep a table for the next level, and of all at most so many."""
        self._tables[shard] = table
        while len(self._tables) > keep:
            self._tables.popitem(last=False)

    def clear(self) -> None:
        """Forget all tables."""
        self._tables.clear()

    def make_room(self, table: ShardTable, more: int, limit: int | None) -> None:
        """Forget tables until one in use may grow by so many bytes.

        Raises:
            NoRoomError: it may not even when it is alone.
        """
        while True:
            # Without a limit, what other processes leave free decides.
            held = more if limit is None else more + table.bytes + self.bytes
            reason = Stop(Limits(memory=limit)).reason(memory=held)
            if not reason:
                return
            if not self._tables:
                raise NoRoomError(reason)
            self._tables.popitem(last=False)


SHELF = Shelf()
"""This process's."""
