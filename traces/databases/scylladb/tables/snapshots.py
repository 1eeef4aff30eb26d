"""What dumps of ScyllaDB's system tables mean: each row of each snapshot is what was observed of an entity.

A row that is gone means something where rows are deleted as part of the state machine: of a view building
task that its work is done or needed no more (`dropped` stands for both: neither has a future), of a CDC
generation that it was cleared. It is believed only of snapshots that are complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stagewright.machines.scylladb.cdc.cdc_generation import Life
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_request import TopologyRequest
from stagewright.machines.scylladb.topology.topology_states import TransitionState
from stagewright.machines.scylladb.views.view_task import Life as TaskLife
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import (
    cdc,
    generation_order,
    tablets,
    topology,
    views,
)
from stagewright.traces.databases.scylladb.lines.generation_order import GenerationOrder
from stagewright.traces.databases.scylladb.log.interpreter import effects_of
from stagewright.traces.databases.scylladb.log.patterns import UUID
from stagewright.traces.databases.scylladb.tables.rows import TABLES, Row, is_true
from stagewright.traces.events.observability import ALL_HIDDEN, Recording

REQUEST = TopologyRequest.__name__
RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)
MACHINES = (
    tablets.MACHINE,
    topology.TRANSITION,
    topology.NODE,
    REQUEST,
    cdc.MACHINE,
    views.MACHINE,
)

_KEYS = {
    "topology": ("host_id",),
    "tablets": ("table_id", "last_token"),
    "topology_requests": ("id",),
    "view_building_tasks": ("id",),
    "group0_history": ("state_id",),
}
_HISTORY = "group0_history"
_SINCE_1582 = 122_192_928_000_000_000  # 100 ns from there to 1970


@dataclass
class Snapshot:
    """One dump of a table. `series`: what its file's name has in common with those of the same node.

    `empty`: it is said to have no rows, so that nothing in it says of which table it is.
    """

    series: str
    time: int | None
    place: int  # within its file
    table: str = ""
    complete: bool = True
    empty: bool = False
    rows: dict[tuple[str, ...], tuple[Row, int, int]] = field(
        default_factory=dict[tuple[str, ...], tuple[Row, int, int]]
    )  # by key: the row, its part and its line

    def holds(self, table: str, row: Row) -> bool:
        """Whether it has a row of that key: it would not have two."""
        return self.table == table and _key(table, row) in self.rows

    def add(self, table: str, row: Row, part: int, line: int, time: int | None) -> None:
        """One more row; `time`: when it was polled, if the row says so."""
        self.table = table
        self.time = self.time if time is None else time
        self.rows[_key(table, row)] = row, part, line

    def ends(self, count: int) -> None:
        """As many rows were dumped."""
        self.complete = self.complete and len(self.rows) == count
        self.empty = self.complete and not count
        if not self.table:
            self.table = next((t for t in sorted(TABLES, key=len)[::-1] if t in self.series), "")


def name_empty(dumps: Sequence[Snapshot]) -> None:
    """Empty dumps are of the table that all others of their series are of, if that is one."""
    tables: dict[str, set[str]] = {}
    for dump in dumps:
        tables.setdefault(dump.series, set()).update({dump.table} - {""})
    for dump in dumps:
        if dump.empty and not dump.table and len(tables[dump.series]) == 1:
            (dump.table,) = tables[dump.series]


def _key(table: str, row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name, "")) for name in _KEYS[table])


class Snapshots:
    """Follows the tables from snapshot to snapshot."""

    def __init__(self, profile: str) -> None:
        self.book = Book(profile)
        self._apart: set[str] = set()  # tables of which there are several series
        self._last: dict[tuple[str, str], Snapshot] = {}
        self._resizes: dict[tuple[str, str], tuple[object, int]] = {}  # tablet count, changes of it
        self._lives: dict[tuple[str, str], str] = {}  # of CDC generations
        self._orders: dict[str, GenerationOrder] = {}  # of these, by series
        self._untimed = 0
        self._unnamed = 0  # empty dumps
        self._common = 0  # of the names of all series: so many letters of folders

    def recordings(self) -> dict[str, Recording]:
        """Whatever happens between two snapshots is hidden."""
        return {
            **dict.fromkeys(MACHINES, RECORDING),
            generation_order.MACHINE: generation_order.RECORDING,
        }

    def notes(self) -> list[str]:
        """What was noticed and is worth a note."""
        notes = self.book.notes()
        if self._untimed:
            notes.append(
                f"{self._untimed} dumps have no time: their order is that of files and lines"
            )
        if self._unnamed:
            notes.append(
                f"{self._unnamed} dumps have no rows, and nothing says of which table they are: "
                "put the table's name into the file's"
            )
        for table in sorted(self._apart):
            notes.append(
                f"there are several series of dumps of {table}: each is checked apart, for nodes lag"
            )
        return notes

    def take(self, dumps: Sequence[Snapshot]) -> None:
        """Take all dumps, in the order of their times."""
        name_empty(dumps)
        self._unnamed = sum(d.empty and not d.table for d in dumps)
        of_tables = [d for d in dumps if d.table and d.table != "group0_history"]
        series: dict[str, set[str]] = {}
        for dump in of_tables:
            series.setdefault(dump.table, set()).add(dump.series)
        self._apart = {table for table, names in series.items() if len(names) > 1}
        self._common = _common([d.series for d in dumps])
        self._untimed = sum(d.time is None for d in of_tables)
        for dump in sorted(of_tables, key=lambda d: d.time or 0):
            self._snapshot(dump)
        self._history(d for d in dumps if d.table == "group0_history")

    def _snapshot(self, dump: Snapshot) -> None:
        last = self._last.get((dump.table, dump.series))
        if not dump.complete:
            self.book.counts[
                f"dumps of {dump.table} are not complete: what is gone is not known"
            ] += 1
        _OF_TABLES[dump.table](self, dump, last)
        if dump.complete or last is None:
            self._last[dump.table, dump.series] = dump

    def _add(
        self,
        dump: Snapshot,
        machine: str,
        key: str,
        observed: Mapping[str, object],
        place: tuple[int, int],
        action: str | None = None,
    ) -> None:
        entity = key
        if dump.table in self._apart:
            entity += f" in {dump.series[self._common :]}"
        source = Source(*place, time=dump.time)
        self.book.add(Effect(machine, entity, observed, source, action))

    # -- system.topology -------------------------------------------------------------------------------

    def _topology(self, dump: Snapshot, _: Snapshot | None) -> None:
        if not dump.rows:
            return
        working = None
        for (host,), (row, *place) in dump.rows.items():
            state = str(row.get("node_state", ""))
            if not host or not state:
                continue
            working = state if state in topology.IN_TRANSITION else working
            self._add(dump, topology.NODE, host, {topology.NODE_STATE: state}, _place(place))
        row, *place = next(iter(dump.rows.values()))
        state = topology.state_named(str(row.get("transition_state") or TransitionState.null.name))
        seen: dict[str, object] = {topology.TRANSITION_STATE: state}
        if dump.complete:
            seen[topology.IN_TRANSITION_IS] = working
        self._add(dump, topology.TRANSITION, "topology", seen, _place(place))
        self._generations(dump, row, _place(place))

    def _generations(self, dump: Snapshot, row: Row, place: tuple[int, int]) -> None:
        unpublished = _ids(row.get("unpublished_cdc_generations"))
        lives = dict.fromkeys(_ids(row.get("new_cdc_generation_data_uuid")), Life.written.name)
        lives |= dict.fromkeys(_ids(row.get("committed_cdc_generations")), Life.published.name)
        lives |= dict.fromkeys(unpublished, Life.committed.name)
        self._in_order(dump, row.get("committed_cdc_generations"), place)
        for generation, life in lives.items():
            self._lives[dump.series, generation] = life
            self._add(dump, cdc.MACHINE, generation, {cdc.LIFE: life}, place)
        for (series, generation), life in list(self._lives.items()):
            gone = series == dump.series and generation not in lives
            if gone and life in (Life.committed.name, Life.published.name):
                self._lives[series, generation] = Life.cleared.name
                self._add(
                    dump,
                    cdc.MACHINE,
                    generation,
                    {cdc.LIFE: Life.cleared.name},
                    place,
                )

    def _in_order(self, dump: Snapshot, committed: object, place: tuple[int, int]) -> None:
        """Whether generations that are new in the dump are to operate after those that were there."""
        order = self._orders.setdefault(dump.series, GenerationOrder())
        found = order.see(committed)
        for action in found.actions:
            self._add(dump, generation_order.MACHINE, generation_order.ENTITY, {}, place, action)
        self.book.counts[generation_order.UNREAD] += found.unread

    # -- the other tables ------------------------------------------------------------------------------

    def _tablets(self, dump: Snapshot, _: Snapshot | None) -> None:
        for (table, token), (row, *place) in dump.rows.items():
            if not token:
                continue
            count, changes = self._resizes.get((dump.series, table), (row.get("tablet_count"), 0))
            if count != row.get("tablet_count"):
                changes += 1
            self._resizes[dump.series, table] = row.get("tablet_count"), changes
            key = f"{table}:{token}" + (f"@{changes}" if changes else "")
            seen = {
                tablets.STAGE: row.get("stage") or Stage.none.name,
                tablets.KIND: row.get("transition"),
            }
            self._add(dump, tablets.MACHINE, key, seen, _place(place))

    def _requests(self, dump: Snapshot, _: Snapshot | None) -> None:
        for (request,), (row, *place) in dump.rows.items():
            seen = {
                TopologyRequest.asked.name: True,
                TopologyRequest.started.name: bool(row.get("start_time")),
                TopologyRequest.error.name: bool(row.get("error")),
                TopologyRequest.done.name: is_true(row.get("done")),
            }
            self._add(dump, REQUEST, request, seen, _place(place))

    def _tasks(self, dump: Snapshot, last: Snapshot | None) -> None:
        for (task,), (row, *place) in dump.rows.items():
            if not task:  # the row of the static columns
                continue
            aborted = is_true(row.get("aborted")) or row.get("state") == "ABORTED"
            life = (TaskLife.aborted if aborted else TaskLife.normal).name
            self._add(dump, views.MACHINE, task, {views.LIFE: life}, _place(place))
        if last is None or not dump.complete:
            return
        # Nothing is there any more to point at: the line is that where the row was seen last.
        for key, (_, *place) in last.rows.items():
            if key not in dump.rows and key[0]:
                self._add(
                    dump,
                    views.MACHINE,
                    key[0],
                    {views.LIFE: TaskLife.dropped.name},
                    _place(place),
                )

    # -- system.group0_history -------------------------------------------------------------------------

    def _history(self, dumps: Iterable[Snapshot]) -> None:
        commits: dict[str, tuple[str, tuple[int, int]]] = {}
        for dump in dumps:
            for (state,), (row, *place) in dump.rows.items():
                commits.setdefault(state, (str(row.get("description", "")), _place(place)))
        for state in sorted(commits, key=cdc.time_order):
            reason, where = commits[state]
            time = (cdc.time_order(state)[0] - _SINCE_1582) // 10
            for effect in effects_of(reason, "", Source(*where, time=time)):
                self._commit(effect)

    def _commit(self, effect: Effect) -> None:
        if not effect.key:
            return
        observed = dict(effect.observed)
        time = observed.pop(cdc.STARTS, None)
        if time is not None:
            order = self._orders.setdefault(_HISTORY, GenerationOrder())
            found = order.commit(effect.key, str(time))
            for action in found.actions:
                key = f"{generation_order.ENTITY} in {_HISTORY}"
                self.book.add(Effect(generation_order.MACHINE, key, {}, effect.source, action))
            self.book.counts[generation_order.UNREAD] += found.unread
        key = f"{effect.key} in {_HISTORY}"
        self.book.add(Effect(effect.machine, key, observed, effect.source))


_OF_TABLES: dict[str, Callable[[Snapshots, Snapshot, Snapshot | None], None]] = {
    "topology": Snapshots._topology,
    "tablets": Snapshots._tablets,
    "topology_requests": Snapshots._requests,
    "view_building_tasks": Snapshots._tasks,
}


def _common(names: Sequence[str]) -> int:
    """How many letters of the names are folders that all have in common."""
    folders = [name.split("/")[:-1] for name in names]
    count = 0
    for here in zip(*folders, strict=False):
        if len(set(here)) > 1:
            break
        count += len(here[0]) + 1
    return count


def _place(place: Sequence[int]) -> tuple[int, int]:
    part, line = place
    return part, line


def _ids(value: object) -> list[str]:
    """The ids in a value, however the sets and tuples around them are written."""
    return re.findall(UUID, value if isinstance(value, str) else json.dumps(value))
