"""Watches sets of streams: how they begin, how they end, and whether a node lacks one that it needs.

A set is a generation of the token ring, or the streams of a table of tablets. What is right is looked up in the tables
as group0 has them, not as the node that acts knows them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.catalog.stream_rows import STREAMS
from stagewright.impl.group0 import Entry
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.recording.recording import Recording
from stagewright.impl.simulator.database.hosts import EPOCH

GENERATIONS = "generations"  # of the token ring
_MICROSECONDS = 1_000
_Starts = tuple[int, ...]


class SetWatcher:
    """The sets of streams of one run, by the times (microseconds since 1970) at which they begin to operate.

    `leeway`: that of timestamps, in milliseconds.
    """

    def __init__(self, recording: Recording, catalog: Callable[[], Catalog], leeway: int) -> None:
        self._leeway = _MICROSECONDS * leeway
        self._take = recording.take
        self._catalog = catalog
        self._known: dict[str, _Starts] = {}  # to nodes
        self._readable: dict[str, _Starts] = {}  # to readers
        self._ever: dict[str, set[int]] = {}

    def committed(self, entry: Entry, now: int) -> None:
        """An entry is committed (at `now`, in milliseconds): sets of streams may begin or end; tablets may be others."""
        catalog = self._catalog()
        if not catalog.begun or not catalog.view.logs:
            return
        tablets, present = catalog.view.tablets, (EPOCH + now) * _MICROSECONDS
        for table in catalog.view.logs:
            name = table if table in tablets else GENERATIONS
            before, found = self._known.get(name, ()), catalog.streams_of(table).generations
            self._known[name] = starts = tuple(start for start, _ in found)
            self._ever.setdefault(name, set()).update(starts)
            self._begin(name, table, before, starts, present)
            self._end(name, {*before} - {*starts}, present - self._leeway)
            self._forget(name, table, present)
            resized = [m for m in entry.command.mutations if m.key == (table,) and m.columns]
            if table in tablets and before and any("tablets" in (m.columns or {}) for m in resized):
                added = any(m.table == STREAMS for m in entry.command.mutations)
                self._take("streams", name, "", "change_places", followed=added)

    def lacks(self, node: DatabaseNode, table: str, timestamp: int) -> None:
        """A node refuses a write for want of streams: there were none, or they are over for every node."""
        name = table if table in self._catalog().view.tablets else GENERATIONS
        known = sorted(self._ever.get(name, ()))
        place = bisect_right(known, timestamp)
        recent = node.context.around.now() - _MICROSECONDS * node.context.timing.leeway
        due = place == 0 or any(start <= recent for start in known[place : place + 1])
        self._take("streams", name, node.name, "lack", due=due)

    def _begin(self, name: str, table: str, before: _Starts, after: _Starts, present: int) -> None:
        for start in sorted({*after} - {*before}):
            self._take(
                "streams",
                name,
                "",
                "begin_set",
                later=all(start > b for b in before),
                ahead=start > present,
                fitting=self._fits(table),
            )

    def _end(self, name: str, removed: Iterable[int], since: int) -> None:
        """Sets are removed for nodes: others have operated long enough since then."""
        for start in sorted(removed):
            over = any(start < other <= since for other in self._ever[name])
            self._take("streams", name, "", "clear", over=over)

    def _forget(self, name: str, table: str, present: int) -> None:
        """Sets are removed for readers: of the time in which they operated no log has changes."""
        catalog = self._catalog()
        view, before = catalog.view, self._readable.get(name, ())
        self._readable[name] = after = tuple(start for start, _ in catalog.readable(table))
        alike = [
            t for t in view.logs if t == table or (name == GENERATIONS and t not in view.tablets)
        ]
        kept = [view.kept.get(t, 0) for t in alike]
        since = 0 if 0 in kept else present - _MICROSECONDS * max(kept)
        self._end(name, {*before} - {*after}, since)

    def _fits(self, table: str) -> bool:
        """Whether each tablet, or vnode to come, has its streams in the newest set."""
        catalog = self._catalog()
        _, newest = catalog.streams_of(table).generations[-1]
        rows = catalog.view.tablets.get(table)
        if rows is not None:
            return [r.end for r in newest.ranges] == [row.range[1] for row in rows]
        members = catalog.view.nodes.values()
        ends = {t: m.shards for m in members if m.state.will_own for t in m.tokens}
        static = catalog.tables[TOPOLOGY][ALL]
        if static["new_cdc_generation_data_uuid"] is None and {*newest.ends} != {*ends}:
            return {*newest.ends} >= {*ends}  # of a node that joins: its tokens come with it
        return all(len(r.streams) == ends.get(r.end, len(r.streams)) for r in newest.ranges)
