"""Checks what the view building coordinator chooses, and the batches of shards, of one base table.

A call takes no time in that machine, so a batch is sent when it starts. A `Tablet` of it is a tablet replica.
"""

from __future__ import annotations

from typing import Any

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.runtime import Instance
from stagewright.impl.views.building.choices import NO_BATCH, places_of, shard_entity, tablet_entity
from stagewright.impl.views.building.records import Record, What
from stagewright.impl.views.building.tasks import BUILD, Task, coordinator_program, tasks_in
from stagewright.machines.scylladb.views import view_coordinator as machine
from stagewright.spec.entities import Entity
from stagewright.spec.errors import RefusedError
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap, State, Value
from stagewright.spec.verdict import Step

_KINDS = {"v": machine.View, "b": machine.Base, "t": machine.Tablet, "s": machine.Shard}


class ChoiceCheck:
    """One base table, from its first view until one of its tablets moves."""

    def __init__(self, base: str, catalog: Catalog, problems: list[str]) -> None:
        self.views: list[str] = []
        self._base = base
        self._catalog = catalog
        self._problems = problems
        self._places = places_of(catalog.view, base)
        self._instance: Instance | None = None
        self._over = False
        self._term = 0
        self._restarts: set[machine.Shard] = set()  # after an answer that is on its way
        self._given_up: set[machine.Shard] = set()  # of which the coordinator has heard nothing
        self._answered: set[machine.Shard] = set()  # whose tasks are still to be removed
        # Tablets with ranges to build, as a shard was called last.
        self._ranges: dict[machine.Shard, frozenset[machine.Tablet]] = {}
        self._events: list[tuple[Step, State, int]] = []

    def end(self) -> None:
        """A tablet moves: the machine has none that do."""
        self._over = True

    def _fire(self, action: str, now: int, **arguments: Entity) -> None:
        if self._over or self._instance is None:
            return
        step = Step(action, FrozenMap[str, Value](arguments))
        try:
            self._instance.fire(step)
        except RefusedError as error:
            self._problems.append(f"view building of {self._base}: {error.problem}")
            self._over = True
        self._events.append((step, self._instance.state, now))

    def reign(self, term: int, now: int) -> None:
        """An entry of a term is committed."""
        if term > self._term:
            if self._term:
                self._fire("change_leader", now)
                self._answered.clear()
                for shard in sorted(self._restarts, key=str):
                    self._restart_late(shard, now)
            self._term = term

    def choose(self, action: str, arguments: dict[str, str], now: int) -> None:
        """A step that is in the log."""
        if action == "create_view":
            self._add(arguments["v"])
        if action == "register_staging" and arguments["t"] not in self._names():
            self._over = True  # a tablet moves: its new replica has no name there
            return
        if action == "remove_finished":
            self._restarts.discard(machine.Shard(arguments["s"]))
            self._given_up.discard(machine.Shard(arguments["s"]))
            self._answered.discard(machine.Shard(arguments["s"]))
        self._fire(action, now, **{n: _KINDS[n](v) for n, v in arguments.items()})

    def _names(self) -> set[str]:
        return {str(tablet_entity(p)) for p in self._places}

    def _add(self, view: str) -> None:
        """A view that was not there when the machine began."""
        if {*places_of(self._catalog.view, self._base)} != {*self._places}:
            self._over = True
        self.views.append(view)
        state = self._start([view]) if self._instance is None else dict(self._instance.state)
        if self._instance is not None:
            fresh = self._start([view])
            for name in ("table", "building", "status", "scanned"):
                known: Any = state[name]
                state[name] = FrozenMap({**known, **fresh[name]})
        self._instance = Instance(coordinator_program(), state, name=self._base)

    def _start(self, views: list[str]) -> dict[str, Any]:
        """The state in which the machine starts, with views that are not created yet."""
        base, found = machine.Base(self._base), [machine.View(v) for v in views]
        shards = {shard_entity(p.replica): NO_BATCH for p in self._places}
        tablets = {tablet_entity(p): shard_entity(p.replica) for p in self._places}
        nothing: frozenset[machine.Tablet] = frozenset()
        return {
            "table": FrozenMap(dict.fromkeys(found, base)),
            "shard": FrozenMap(tablets),
            "building": FrozenMap(dict.fromkeys(found, nothing)),
            "staging": FrozenMap({base: nothing}),
            "processed": None,
            "status": FrozenMap(dict.fromkeys(found, machine.ViewStatus.none)),
            "called": frozenset[machine.Shard](),
            "batch": FrozenMap(shards),
            "scanned": FrozenMap(dict.fromkeys(found, nothing)),
            "staged": FrozenMap({base: nothing}),
            "dropped_tables": frozenset[machine.Base](),
        }

    # -- what nodes say ------------------------------------------------------------------------------------

    def observe(self, record: Record, now: int) -> None:
        """A node has recorded something about a place of this table."""
        place = record.place
        if self._over or self._instance is None or place is None:
            return
        if place not in self._places:
            self._over = True
            return
        if record.what in (What.start, What.attach) and record.term < self._term:
            # A worker that has not learned of the term since: in the machine calls end with their coordinator.
            self._over = record.what is What.start
            return
        shard, tablet = shard_entity(place.replica), tablet_entity(place)
        where = {"s": shard, "t": tablet, "b": machine.Base(self._base)}
        held = self._batch(shard)
        if record.what is What.give_up and shard in self._answered:
            return  # what the answer did not speak of is asked for again
        if record.what is What.give_up and record.term == self._term:
            self._given_up.add(shard)
        elif record.what is What.attach:
            self._given_up.discard(shard)
        match record.what:
            case What.send:
                self._ranges[shard] = self._to_build()
            case What.answer if record.term == self._term:
                self._answered.add(shard)
            case What.start:
                self._begin(record, where, now)
            case What.attach if not self._stored(record):
                self._over = True  # their view was dropped while the call was on its way
            case What.attach if held["tablet"] is tablet and shard not in self._called():
                self._fire("attach", now, **where)
            case What.finish if held["tablet"] is tablet and not held["done"]:
                self._fire("finish_batch", now, **where)
            case What.give_up:
                self._restart_late(shard, now)
            case _:
                pass

    def _begin(self, record: Record, where: dict[str, Any], now: int) -> None:
        """A batch starts: one that is for nothing any more has been given up before."""
        shard = where["s"]
        if shard in self._answered:
            self._over = True  # the machine's coordinator removes them first
        self._restart_late(shard, now)
        held = self._batch(shard)
        if held["done"] and (shard not in self._called() or shard in self._given_up):
            # The machine's shard keeps what it completed until it is asked for that; a coordinator of a later term,
            # or one that has not heard of it, may ask for other tasks first.
            self._over = True
        self._given_up.discard(shard)
        if held["tablet"] is not None:
            self._fire("observe_deletion", now, s=shard, t=held["tablet"], b=where["b"])
        tasks = self._stored(record)
        if not tasks:
            self._over = True  # their view was dropped, which the worker has not learned yet
        builds = any(t.type == BUILD for t in tasks)
        if not builds and where["t"] in self._to_build() - self._ranges.get(shard, frozenset()):
            self._over = True  # a view was started since the call was sent
        self._fire("send_build_range" if builds else "send_process_staging", now, **where)
        meant = {machine.View(t.view) for t in tasks if t.type == BUILD}
        if not self._over and self._batch(shard)["views"] != meant:
            self._over = True  # a view was started since the call was sent

    def _stored(self, record: Record) -> list[Task]:
        """The tasks of a record that are in group0."""
        stored = tasks_in(self._catalog.tables)
        return [stored[i] for i in record.tasks if i in stored]

    def _batch(self, shard: machine.Shard) -> Any:
        assert self._instance is not None
        batches: Any = self._instance.state["batch"]
        return batches[shard]

    def _to_build(self) -> frozenset[machine.Tablet]:
        """The tablets that have ranges to build, for views that are started."""
        assert self._instance is not None
        building: Any = self._instance.state["building"]
        status: Any = self._instance.state["status"]
        started = [v for v, now in status.items() if now is machine.ViewStatus.started]
        return frozenset(t for v in started for t in building[v])

    def _called(self) -> frozenset[machine.Shard]:
        assert self._instance is not None
        called: Any = self._instance.state["called"]
        return frozenset(called)

    def ends(self, node: str, now: int) -> None:
        """A node has crashed: its batches are lost, but for an answer that is on its way."""
        if self._over or self._instance is None:
            return
        for shard in sorted({shard_entity(p.replica) for p in self._places}, key=str):
            held = self._batch(shard)
            if str(shard).partition("/")[0] != node or held["tablet"] is None:
                continue
            self._restarts.add(shard)
            if not (held["done"] and shard in self._called()):
                self._restart_late(shard, now)

    def _restart_late(self, shard: machine.Shard, now: int) -> None:
        """No answer of the life before comes any more."""
        if shard in self._restarts:
            self._restarts.discard(shard)
            self._fire("restart", now, s=shard)

    # -- the trace -----------------------------------------------------------------------------------------

    def write(self, writer: TraceWriter) -> None:
        """What happened; entities are numbered as they came."""
        if self._instance is None:
            return
        names: dict[Entity, Entity] = {machine.Base(self._base): machine.Base(0)}
        names |= {machine.View(v): machine.View(i) for i, v in enumerate(self.views)}
        names |= {tablet_entity(p): machine.Tablet(i) for i, p in enumerate(self._places)}
        shards = sorted({shard_entity(p.replica) for p in self._places}, key=str)
        names |= {s: machine.Shard(i) for i, s in enumerate(shards)}
        start: Any = _renamed(FrozenMap(self._start(self.views)), names)
        writer.start(self._base, start, time=0)
        for step, state, now in self._events:
            arguments: Any = _renamed(step.arguments, names)
            seen: Any = _renamed(state, names)
            writer.record(self._base, Step(step.action, arguments), observation(seen), time=now)


def _renamed(value: Any, names: dict[Entity, Entity]) -> Any:
    match value:
        case Entity():
            return names[value]
        case frozenset():
            return frozenset(_renamed(v, names) for v in value)
        case FrozenMap():
            return FrozenMap({_renamed(k, names): _renamed(v, names) for k, v in value.items()})
        case _:
            return value
