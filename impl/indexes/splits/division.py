"""How a tablet splits at its leader: it fills two stores, then it takes no more, and says so.

While they are filled it is served (`copying.py`). From then on it only says that it has split. What it was told of before is in
the stores of its children: all versions of their rows or entries, intents that are pending, which transactions have ended, of the
table its schema, of an index whether its backfill is over, and a time that it has not passed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    Answer,
    Applied,
    Apply,
    AskSchema,
    BackfillBatch,
    Divide,
    Divided,
    Fate,
    Finish,
    Message,
    Prepare,
    Prepared,
    ReadIndex,
    ReadRows,
    StoreEntries,
    TabletHasSplit,
    Write,
    Written,
)
from stagewright.impl.indexes.records.notes import TabletDivided
from stagewright.impl.indexes.splits.copying import Copying
from stagewright.impl.indexes.splits.tablet_map import TABLE, Split, TabletMap
from stagewright.impl.indexes.tablet import META
from stagewright.impl.storage.port import Put, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.splits.divisible import DivisibleTablet

_MASTER = "master"
_SPLIT = b"split"
_TAKEN = {  # by wrong builds
    Defect.parents_take_writes: (Write, Prepared, Apply, Fate),
    Defect.parents_take_entries: (Prepare, StoreEntries, BackfillBatch, Apply, Fate),
}


class Division:
    """Of one tablet. `split` is there from when on it has split."""

    def __init__(self, tablet: DivisibleTablet) -> None:
        self._tablet = tablet
        stored = tablet.store.get(META, _SPLIT)
        self.split = None if stored is None else Split(*json.loads(stored.value or b"[]"))
        self._is_made = False
        self._copying: Copying | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether its children are being filled."""
        return self._copying is not None

    def keep(self, puts: Iterable[Put]) -> None:
        """The tablet has written this."""
        if self._copying is not None:
            self._copying.keep(puts)

    def count(self, key: bytes, more: int) -> None:
        """What it is about to write makes its rows more, or fewer."""
        if self._copying is not None and more:
            self._copying.count(key, more)

    def close(self) -> None:
        """Give up what is under way."""
        if self._copying is not None:
            self._copying.close()
            self._copying = None

    def answer(self, sender: str, message: Message) -> bool:
        """What a tablet says that has split; False if it takes the message as others do."""
        assert self.split is not None
        port, of_table = self._tablet.port, self.split.table == TABLE
        wrong = Defect.parents_take_writes if of_table else Defect.parents_take_entries
        if wrong in self._tablet.settings.defects and isinstance(message, _TAKEN[wrong]):
            return False
        match message:
            case Divide(split, tablets):
                self.begin(split, tablets)
            case Write(transaction, statement) | Finish(transaction, statement):
                port.send(sender, Written(transaction, statement, Answer.tablet_has_split))
            case ReadRows(request) | AskSchema(request) | ReadIndex(request):
                port.send(sender, TabletHasSplit(request))
            case Prepare() | StoreEntries() | BackfillBatch():
                port.send(sender, TabletHasSplit())
            case Apply(transaction):
                port.send(sender, Applied(transaction, self.split.places))
            case _:
                pass
        return True

    def begin(self, split: Split, tablets: TabletMap) -> None:
        """Fill the children, unless they are there."""
        if self._is_made:
            self._tablet.port.send(_MASTER, Divided(self._tablet.port.address))
        elif self._copying is None and self._tablet.is_at_rest():  # else the master asks again
            self._copying = Copying(self._tablet, split, tablets)
            self._fill(self._copying)

    def _fill(self, copying: Copying) -> None:
        if copying.is_short:
            self._finish(copying)
        else:
            work = partial(copying.fill, copying.written())
            self._tablet.port.aside(work, self._fill, copying)

    def _finish(self, copying: Copying) -> None:
        """Take no more, and give them what is left."""
        tablet, split = self._tablet, copying.split
        if self.split is None:
            tablet.put([Put(META, Version(_SPLIT, 1, json.dumps(astuple(split)).encode()))])
            self.split = split
            tablet.freeze()
        tablet.port.aside(partial(copying.finish, tablet.clock.now()), self._made, copying)

    def _made(self, copying: Copying) -> None:
        self.close()
        self._is_made = True
        tablet, (lower, upper) = self._tablet, copying.children
        versions, intents = (lower.versions, upper.versions), (lower.intents, upper.intents)
        rows = lower.rows, upper.rows
        tablet.port.note(TabletDivided(copying.split, versions, intents, rows))
        tablet.port.send(_MASTER, Divided(tablet.port.address))
