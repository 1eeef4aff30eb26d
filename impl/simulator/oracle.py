"""What clients were promised, and whether it was kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from stagewright.impl.cluster.messages import Row
from stagewright.impl.cluster.node_store import NodeStore
from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.cluster.view import View
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

REMEMBERED_STEPS = 20  # a tablet
REMEMBERED_WRITES = 6


class Promise(Enum):
    """What is promised; the value says it in words."""

    reads = "a read returns a value at least as new as the last write acknowledged before it began"
    writes = "after all faults, every acknowledged write is read, whichever replicas answer"
    rest = "no rows or storage at rest on a node that is not a replica"
    storage = "no request within the fence reaches a replica without storage"
    ends = "every migration ends"


@dataclass(frozen=True)
class Breach:
    """A broken promise: what happened, and the last events before it."""

    promise: Promise
    text: str
    story: tuple[str, ...]


_Event = tuple[int, int, str]  # when, a number that grows, and what


@dataclass
class Oracle:
    """Knows every write and read of the clients; timestamps are unique and grow with real time."""

    settings: Settings
    breaches: list[Breach] = field(default_factory=list)
    acknowledged: dict[str, Row] = field(default_factory=dict)  # the newest a key
    checked_reads: int = 0
    listener: Callable[[Row], None] = lambda _: None  # told of every acknowledged write
    known_from: int = 0  # writes with older timestamps were sent before this run
    _floors: dict[int, Row | None] = field(default_factory=dict)
    _written: dict[tuple[str, int], str] = field(default_factory=dict)
    _told: int = 0
    _steps: dict[str, deque[_Event]] = field(default_factory=dict)  # by tablet
    _writes: dict[str, deque[_Event]] = field(default_factory=dict)  # by key

    # -- what happens ------------------------------------------------------------------------------------

    def tell(self, now: int, text: str, tablet: str | None = None) -> None:
        """Remember an event, of one tablet or of all."""
        self._told += 1
        for name in self.settings.tablets if tablet is None else (tablet,):
            steps = self._steps.setdefault(name, deque(maxlen=REMEMBERED_STEPS))
            steps.append((now, self._told, text))

    def sent(self, row: Row) -> None:
        """A write was sent: its value may be read from now on."""
        self._written[row.key, row.timestamp] = row.value

    def acknowledge(self, now: int, row: Row, node: str) -> None:
        """A write was acknowledged by a node: nothing older may be read from now on."""
        self.listener(row)
        self._told += 1
        writes = self._writes.setdefault(row.key, deque(maxlen=REMEMBERED_WRITES))
        writes.append((now, self._told, f"{node} acknowledges {row.value}"))
        known = self.acknowledged.get(row.key)
        if known is None or row.timestamp > known.timestamp:
            self.acknowledged[row.key] = row

    def begin_read(self, number: int, key: str) -> None:
        """A read begins: what it must at least return is known now."""
        self._floors[number] = self.acknowledged.get(key)

    def end_read(self, number: int, key: str, row: Row | None, by: str) -> None:
        """A read returned."""
        self.checked_reads += 1
        floor = self._floors.pop(number)
        known = row is None or row.timestamp >= self.known_from
        if row is not None and known and self._written.get((key, row.timestamp)) != row.value:
            self._break(
                Promise.reads, key, f"a read of {key} by {by} returned {row}, never written"
            )
        if floor is not None and (row is None or row.timestamp < floor.timestamp):
            found = "nothing" if row is None else row.value
            text = f"a read of {key} by {by} returned {found}; {floor.value} had been acknowledged"
            self._break(Promise.reads, key, text)

    def reached_without_storage(self, key: str, replica: str, coordinator: str) -> None:
        """A request that was not fenced off reached a node without storage for its tablet."""
        tablet = self.settings.tablet_of(key)
        text = f"a request of {coordinator} for {tablet} reached {replica}, which has no storage for it"
        self._break(Promise.storage, key, text)

    def broken(self, promise: Promise, text: str) -> None:
        """A promise was broken that is about no single tablet."""
        self.breaches.append(Breach(promise, text, ()))

    def _break(self, promise: Promise, key: str, text: str) -> None:
        tablet = self.settings.tablet_of(key)
        self._add(promise, f"{tablet}: {text}", tablet, key)

    def _add(self, promise: Promise, text: str, tablet: str, key: str = "") -> None:
        events = sorted((*self._steps.get(tablet, ()), *self._writes.get(key, ())))
        story = tuple(f"{now / 1000:8.3f} s  {what}" for now, _, what in events)
        self.breaches.append(Breach(promise, text, story))

    # -- the end -----------------------------------------------------------------------------------------

    def check_the_end(self, view: View, stores: Mapping[str, NodeStore]) -> None:
        """All is healed and quiet: look at what lies on the disks of the nodes that are not given up."""
        live = {n: s for n, s in sorted(stores.items()) if n not in view.ignored}
        for tablet in view.tablets.values():
            if tablet.stage is not Stage.none:
                text = f"{tablet.name} is still in {tablet.stage.name}"
                self._add(Promise.ends, text, tablet.name)
        for key, row in sorted(self.acknowledged.items()):
            self._check_stored(key, row, view, live)
        for node, store in live.items():
            for name in sorted(store.tablets_at_rest()):
                tablet = view.tablets[name]
                if tablet.stage is Stage.none and node not in tablet.replicas:
                    text = f"{name}: rows or storage on {node}; its replicas are {', '.join(tablet.replicas)}"
                    self._add(Promise.rest, text, name)

    def _check_stored(self, key: str, row: Row, view: View, live: Mapping[str, NodeStore]) -> None:
        tablet = view.tablets[self.settings.tablet_of(key)]
        replicas = tablet.chosen(tablet.stage.reads)
        needed = 1
        if self.settings.consistency is Consistency.quorum:
            needed = len(replicas) // 2 + 1
        asked = [n for n in replicas if n in live]
        found = {n: live[n].row(tablet.name, key) for n in asked}
        without = [n for n, r in found.items() if r is None or r.timestamp < row.timestamp]
        if len(asked) < needed:
            text = f"{key} cannot be read: of {', '.join(replicas)} only {len(asked)} live"
            self._break(Promise.writes, key, text)
        elif len(without) >= needed:
            kept = ", ".join(f"{n} has {r.value if r else 'nothing'}" for n, r in found.items())
            text = f"the acknowledged write {row.value} of {key} can be missed: {kept}"
            self._break(Promise.writes, key, text)
