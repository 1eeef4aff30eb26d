"""How a tablet of the table splits at its leader: it takes no more, two stores get what it has, then it says so.

From then on it only says that it has split. What it was told of before is in the stores of its children: all versions
of their rows, intents that are pending, which transactions have ended, its schema, and a time that it has not passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from functools import partial
from itertools import islice
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
from stagewright.impl.indexes.splits.tablet_map import Split, TabletMap
from stagewright.impl.indexes.tablet import ENDED, INTENTS, META, NEWEST, ROWS
from stagewright.impl.storage.port import Put, RowStore, Snapshot, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.table_tablet import TableTablet

COUNT, SCHEMA = b"rows", b"schema"
_MASTER = "master"
_SPLIT = b"split"
_AT_ONCE = 1_000


@dataclass
class _Child:
    """One of the two, and what it got."""

    number: int
    has: Callable[[bytes], bool]
    rows: int = 0
    versions: int = 0
    intents: int = 0
    puts: list[Put] = field(default_factory=list[Put])


class Division:
    """Of one tablet. `split` is there from when on it has split."""

    def __init__(self, tablet: TableTablet) -> None:
        self._tablet = tablet
        stored = tablet.store.get(META, _SPLIT)
        self.split = None if stored is None else Split(*json.loads(stored.value or b"[]"))
        self._is_made = False
        self._is_under_way = False

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
        """Take no more; make the children, unless they are there."""
        tablet = self._tablet
        if self.split is None:
            tablet.put([Put(META, Version(_SPLIT, 1, json.dumps(astuple(split)).encode()))])
            self.split = split
            tablet.freeze()
        if self._is_made:
            tablet.port.send(_MASTER, Divided(tablet.number))
        elif not self._is_under_way:
            self._is_under_way = True
            self._make(split, tablets)

    def _make(self, split: Split, tablets: TabletMap) -> None:
        tablet, snapshot = self._tablet, self._tablet.store.snapshot()
        until = tablet.clock.now()
        lower = _Child(split.lower, lambda k: tablets.hash_of(k) < split.at)
        upper = _Child(split.upper, lambda k: tablets.hash_of(k) >= split.at)

        def make() -> None:
            for child in (lower, upper):
                place = table_tablet(child.number)
                tablet.port.make_tablet(place, partial(self._fill, child, snapshot, until))

        def made() -> None:
            snapshot.close()
            self._is_made = True
            versions, intents = (lower.versions, upper.versions), (lower.intents, upper.intents)
            tablet.port.note(TabletDivided(split, versions, intents))
            tablet.port.send(_MASTER, Divided(tablet.number))

        tablet.port.aside(make, made)

    def _fill(self, child: _Child, snapshot: Snapshot, until: int, store: RowStore) -> None:
        """Put what is a child's into its store. May run in any thread."""
        defects = self._tablet.settings.defects
        last, all_rows = b"", Defect.children_have_all_rows in defects
        for version in snapshot.versions(ROWS, b"", None):
            if not (all_rows or child.has(version.key)):
                continue
            is_newest = version.key != last
            last = version.key
            child.rows += is_newest and version.value is not None
            if is_newest or Defect.children_have_no_history not in defects:
                child.versions += 1
                child.puts.append(Put(ROWS, version))
            if len(child.puts) >= _AT_ONCE:
                _write(store, child)
        if Defect.intents_stay_with_the_parent not in defects:
            for key, intent in self._tablet.intents.items():
                if child.has(key):
                    child.intents += 1
                    child.puts.append(Put(INTENTS, Version(key, 1, intent.encoded())))
        child.puts += (Put(ENDED, v) for v in snapshot.versions(ENDED, b"", None))
        schema = snapshot.get(META, SCHEMA)
        child.puts += [] if schema is None else [Put(META, schema)]
        child.puts.append(Put(META, Version(NEWEST, 1, str(until).encode())))
        child.puts.append(Put(META, Version(COUNT, 1, str(child.rows).encode())))
        while child.puts:
            _write(store, child)


def _write(store: RowStore, child: _Child) -> None:
    store.write(islice(child.puts, _AT_ONCE))
    del child.puts[:_AT_ONCE]
