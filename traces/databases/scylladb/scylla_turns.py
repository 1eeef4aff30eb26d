"""Which base table the view building coordinator works on: each selection of one is an entity by itself."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_turn import Turn
from stagewright.traces.databases.scylladb.scylla_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.scylla_views import TURN, WHOSE


class Turns:
    """Follows the coordinator's choice, on each node that is the coordinator."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._seen: set[str] = set()
        self._told: dict[
            str, tuple[int, str]
        ] = {}  # by node: its tenure, the base table told of last

    def select(self, base: str, source: Source) -> None:
        """A base table is selected: it is no other one's turn any more."""
        last = self._last(source.node)
        if last not in ("", base):
            self._add(last, Turn.other, source)
        self._begin(base, source)
        self._told[source.node] = self._book.tenure, base
        self._add(base, Turn.this, source)

    def finish(self, base: str, source: Source) -> None:
        """It has no more tasks."""
        if self._last(source.node) != base:
            self._begin(base, source)
        self._told[source.node] = self._book.tenure, base
        self._add(base, Turn.nobody, source)

    def doubt(self, node: str) -> None:
        """What the node said last may not have been committed."""
        self._told.pop(node, None)

    def _last(self, node: str) -> str:
        tenure, base = self._told.get(node, (0, ""))
        return base if tenure == self._book.tenure else ""

    def _begin(self, base: str, source: Source) -> None:
        if base in self._seen:
            self._book.forget(self._effect(base, Turn.this, source))
        self._seen.add(base)

    def _add(self, base: str, turn: Turn, source: Source) -> None:
        self._book.add(self._effect(base, turn, source))

    def _effect(self, base: str, turn: Turn, source: Source) -> Effect:
        return Effect(TURN, base, {WHOSE: turn.name}, source)
