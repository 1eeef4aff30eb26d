"""How a tablet of the table splits at its leader: it fills two stores, then it takes no more, and says so.

While they are filled it is served (`copying.py`). From then on it only says that it has split. What it was told of before is in
the stores of its children: all versions of their rows, intents that are pending, which transactions have ended, its schema,
and a time that it has not passed.
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
    Divide,
    Divided,
    Fate,
    Finish,
    Message,
    Prepared,
    ReadRows,
    TabletHasSplit,
    Write,
    Written,
)
from stagewright.impl.indexes.records.notes import TabletDivided
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.copying import Copying
from stagewright.impl.indexes.splits.tablet_map import Split, TabletMap
from stagewright.impl.indexes.tablet import META
from stagewright.impl.storage.port import Put, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.table_tablet import TableTablet

_MASTER = "master"
_SPLIT = b"split"


class Division:
    """Of one tablet. `split` is there from when on it has split."""

    def __init__(self, tablet: TableTablet) -> None:
        self._tablet = tablet
        stored = tablet.store.get(META, _SPLIT)
        self.split = None if stored is None else Split(*json.loads(stored.value or b"[]"))
        self._is_made = False
        self._copying: Copying | None = None

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
        port, defects = self._tablet.port, self._tablet.settings.defects
        if Defect.parents_take_writes in defects and isinstance(
            message, Write | Prepared | Apply | Fate
        ):
            return False
        match message:
            case Divide(split, tablets):
                self.begin(split, tablets)
            case Write(transaction, statement) | Finish(transaction, statement):
                port.send(sender, Written(transaction, statement, Answer.tablet_has_split))
            case ReadRows(request) | AskSchema(request):
                port.send(sender, TabletHasSplit(request))
            case Apply(transaction):
                places = tuple(map(table_tablet, self.split.children))
                port.send(sender, Applied(transaction, places))
            case _:
                pass
        return True

    def begin(self, split: Split, tablets: TabletMap) -> None:
        """Fill the children, unless they are there."""
        if self._is_made:
            self._tablet.port.send(_MASTER, Divided(self._tablet.number))
        elif self._copying is None:
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
        tablet.port.note(TabletDivided(copying.split, versions, intents))
        tablet.port.send(_MASTER, Divided(tablet.number))
