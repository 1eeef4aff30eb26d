"""Finds some entities in what was read, by their hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stagewright.traces.events.event_block import Block, EntityKey, Ints, Stream
from stagewright.traces.events.string_pool import Interner, Names, names_of
from stagewright.traces.replay.rows import Rows
from stagewright.traces.replay.segments import salt_of

_NO_SALT = np.zeros(1, np.uint64)


class Wanted:
    """Some entities, numbered in the order of their keys."""

    def __init__(self, keys: Sequence[EntityKey]) -> None:
        self._groups: dict[Stream, int] = {}
        for key in keys:
            self._groups.setdefault(key.stream, len(self._groups))
        self._salts = np.array([*(salt_of(s) for s in self._groups), 0], np.uint64)
        self._known = Interner()
        self._known.number(
            names_of(key.entity for key in keys),
            np.array([self._groups[key.stream] for key in keys], np.int32),
            self._salts,
        )
        self._names = Interner()
        every = names_of(dict.fromkeys(key.entity for key in keys))
        self._names.number(every, np.zeros(len(every), np.int32), _NO_SALT)

    def named(self, names: Names) -> Ints:
        """Which of the names are those of wanted entities, of whatever stream."""
        found: Ints = self._names.find(names, np.zeros(len(names), np.int32), _NO_SALT) >= 0
        return found

    def find(self, block: Block | Rows) -> Ints:
        """The number of each of the block's entities, or -1."""
        if not any(stream in self._groups for stream in block.streams):
            return np.full(len(block.names), -1, np.int32)
        others = len(self._groups)
        group = np.array([self._groups.get(s, others) for s in block.streams], np.int32)
        return self._known.find(block.names, group[block.stream], self._salts)
