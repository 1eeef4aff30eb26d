"""Which generations and sets of streams nobody needs any more: no write, and no reader of what logs still keep.

003, "Streams description table": an expired generation "was superseded by some new generation and will soon be
removed". Nodes need a generation as long as they may get a write for it (`cdc_generations.py`, `clear`); clients, as
long as a log keeps changes of the time in which it operated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, GENERATIONS, TIMESTAMPS, TOPOLOGY, microseconds_in
from stagewright.impl.catalog.stream_rows import STREAMS
from stagewright.impl.group0 import Mutation

Key = tuple[str, ...]
_MILLISECOND = 1_000  # microseconds


@dataclass(frozen=True)
class Obsolete:
    """What can be removed at a time: ids of generations, and rows of tables."""

    generations: tuple[str, ...] = ()  # for which no write comes any more
    rows: tuple[tuple[str, Key], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.generations or self.rows)

    def mutations(self, catalog: Catalog) -> Iterator[Mutation]:
        """What removes it."""
        if self.generations:
            column = "committed_cdc_generations"
            committed = catalog.tables[TOPOLOGY][ALL][column]
            kept = [one for one in committed if one[1] not in self.generations]
            yield Mutation(TOPOLOGY, ALL, {column: kept})
        for table, key in self.rows:
            yield Mutation(table, key, None)


def obsolete(catalog: Catalog, now: int, late: int, clocks: int) -> Obsolete:
    """What can be removed now (microseconds).

    `late`: microseconds after which no node takes a write for a generation that has ended, whatever its clock shows;
    `clocks`: by how many microseconds clocks may differ.
    """
    static = catalog.tables[TOPOLOGY][ALL]
    waiting = [microseconds_in(t) for t, _ in static["unpublished_cdc_generations"]]
    committed = [(microseconds_in(t), g) for t, g in static["committed_cdc_generations"]]
    since = min([now - late, *(w - 1 for w in waiting)])
    ended = tuple(g for _, g in _ended(committed, since))
    kept = {g for _, g in committed if g not in ended} | {static["new_cdc_generation_data_uuid"]}
    return Obsolete(ended, (*_unread(catalog, now - clocks, kept), *_sets(catalog, now - clocks)))


def _ended(starts: Iterable[tuple[int, str]], since: int) -> list[tuple[int, str]]:
    """All before the last one that has begun by a time."""
    known = sorted(starts)
    place = sum(start <= since for start, _ in known) - 1
    return known[: max(place, 0)]


def _unread(catalog: Catalog, now: int, kept: set[str]) -> Iterator[tuple[str, Key]]:
    """Descriptions of generations whose changes have expired in each log, and data that nobody refers to."""
    view = catalog.view
    logged = [view.kept.get(table, 0) for table in view.logs if table not in view.tablets]
    published = [(microseconds_in(k[0]), k[0]) for k in catalog.tables[TIMESTAMPS]]
    rows = catalog.tables[TIMESTAMPS]
    expired = [t for _, t in _ended(published, _expired(logged, now))]
    expired = [t for t in expired if rows[t,]["generation"] not in kept]
    yield from ((TIMESTAMPS, (t,)) for t in expired)
    needed = kept | {row["generation"] for (t,), row in rows.items() if t not in expired}
    yield from ((GENERATIONS, key) for key in catalog.tables[GENERATIONS] if key[0] not in needed)


def _sets(catalog: Catalog, now: int) -> Iterator[tuple[str, Key]]:
    """Sets of streams of tables of tablets whose changes have expired."""
    for table in catalog.view.logs.keys() & catalog.view.tablets.keys():
        starts = [(microseconds_in(k[1]), k[1]) for k in catalog.tables[STREAMS] if k[0] == table]
        found = _ended(starts, _expired([catalog.view.kept.get(table, 0)], now))
        yield from ((STREAMS, (table, text)) for _, text in found)


def _expired(milliseconds: Sequence[int], now: int) -> int:
    """Before which time all changes have expired in logs that keep them for so long (0: for ever)."""
    if 0 in milliseconds:
        return 0
    return now - _MILLISECOND * max(milliseconds, default=0)
