"""The machine of the view building coordinator at what a node has learned: its choices are its enabled steps.

A `Tablet` of the machine is one tablet replica, as tasks are of replicas; a `Shard` is one of a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.catalog.view import View
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.runtime import Instance
from stagewright.impl.views.building.tasks import (
    BUILD,
    Place,
    coordinator_program,
    processed_in,
    status_in,
    tasks_in,
)
from stagewright.machines.scylladb.views import view_coordinator as machine
from stagewright.spec.values import FrozenMap

INSTANCE = "view building"


@dataclass(frozen=True)
class Sent:
    """The tasks that a shard was sent, as far as the coordinator of now knows."""

    place: Place
    views: frozenset[str]  # empty: staging sstables are processed
    ids: tuple[str, ...] = ()
    number: int = 0  # of the call
    finished: frozenset[str] = field(default_factory=frozenset[str])
    answered: bool = False


def tablet_entity(place: Place) -> machine.Tablet:
    """The entity of a tablet replica."""
    replica = place.replica
    return machine.Tablet(f"{place.base}:{place.last_token}@{replica.host}/{replica.shard}")


def shard_entity(replica: TabletReplica) -> machine.Shard:
    """The entity of its shard."""
    return machine.Shard(f"{replica.host}/{replica.shard}")


def places_of(view: View, base: str) -> list[Place]:
    """The replicas of a table's tablets."""
    rows = view.tablets.get(base, ())
    return [Place(base, row.range[1], r) for row in rows for r in row.tablet.replicas]


def choices(
    tables: Mapping[str, Rows],
    view: View,
    sent: Mapping[TabletReplica, Sent] | None = None,
    bases: Iterable[str] | None = None,
    coming: str = "",
    place: Place | None = None,
) -> Instance:
    """The machine with what is stored and with what was sent; of some bases alone if they are named.

    `coming` is a view that is about to be created on the one base, `place` a replica that may be still to come.
    """
    tasks = [*tasks_in(tables).values()]
    processed = processed_in(tables)
    known = {v.base for v in view.views.values()} | {t.place.base for t in tasks}
    known |= {processed} - {""}  # it is left, though its last view be dropped
    meant = known if bases is None else {*bases}
    views = {name: v for name, v in view.views.items() if v.base in meant}
    tasks = [t for t in tasks if t.place.base in meant and (t.type != BUILD or t.view in views)]
    some = {*(p for b in meant for p in places_of(view, b)), *(t.place for t in tasks)}
    some |= {place} if place is not None else set()
    places = sorted(some, key=lambda p: (p.base, p.last_token, p.replica))
    table = {machine.View(name): machine.Base(v.base) for name, v in views.items()}
    status = {machine.View(name): status_in(tables, name) for name in views}
    if coming:
        table[machine.View(coming)] = machine.Base(*meant)
        status[machine.View(coming)] = machine.ViewStatus.none
    building: dict[machine.View, set[machine.Tablet]] = {v: set() for v in table}
    staging: dict[machine.Base, set[machine.Tablet]] = {
        machine.Base(b): set() for b in sorted(meant)
    }
    for task in tasks:
        found = (
            building[machine.View(task.view)]
            if task.type == BUILD
            else staging[machine.Base(task.place.base)]
        )
        found.add(tablet_entity(task.place))
    batches = {shard_entity(r): _batch(one) for r, one in (sent or {}).items()}
    shards = sorted({shard_entity(p.replica) for p in places} | {*batches}, key=lambda s: s.name)
    state: dict[str, Any] = {
        "table": FrozenMap(table),
        "shard": FrozenMap({tablet_entity(p): shard_entity(p.replica) for p in places}),
        "building": FrozenMap({v: frozenset(found) for v, found in building.items()}),
        "staging": FrozenMap({b: frozenset(found) for b, found in staging.items()}),
        "processed": machine.Base(processed) if processed in meant else None,
        "status": FrozenMap(status),
        "called": frozenset(batches),
        "batch": FrozenMap({s: batches.get(s, NO_BATCH) for s in shards}),
        "scanned": FrozenMap({v: frozenset[machine.Tablet]() for v in table}),
        "staged": FrozenMap({b: frozenset[machine.Tablet]() for b in staging}),
        "dropped_tables": frozenset[machine.Base](),
    }
    return Instance(coordinator_program(), state, name=INSTANCE)


NO_BATCH: FrozenMap[str, Any] = FrozenMap(
    {"base": None, "tablet": None, "views": frozenset(), "done": False}
)


def _batch(sent: Sent) -> FrozenMap[str, Any]:
    return FrozenMap(
        {
            "base": machine.Base(sent.place.base),
            "tablet": tablet_entity(sent.place),
            "views": frozenset(machine.View(name) for name in sent.views),
            "done": sent.answered,
        }
    )
