"""Which base table the view building coordinator works on: each selection of one is an entity by itself."""

from __future__ import annotations

from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines.views import (
    ANOTHER,
    ITSELF,
    PROCESSED,
    WHICH,
)


class Turns:
    """Follows the coordinator's choice, on each node that is the coordinator."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._seen: set[str] = set()
        self._logged: dict[
            str, tuple[int, str]
        ] = {}  # by node: its tenure, the base table logged last

    def select(self, base: str, source: Source) -> None:
        """A base table is selected: for the one before it, another one is."""
        last = self._last(source.node)
        if last not in ("", base):
            self._add(last, ANOTHER, source)
        self._begin(base, source)
        self._logged[source.node] = self._book.tenure, base
        self._add(base, ITSELF, source)

    def finish(self, base: str, source: Source) -> None:
        """It has no more tasks."""
        if self._last(source.node) != base:
            self._begin(base, source)
        self._logged[source.node] = self._book.tenure, base
        self._add(base, None, source)

    def doubt(self, node: str) -> None:
        """What the node said last may not have been committed."""
        self._logged.pop(node, None)

    def _last(self, node: str) -> str:
        tenure, base = self._logged.get(node, (0, ""))
        return base if tenure == self._book.tenure else ""

    def _begin(self, base: str, source: Source) -> None:
        if base in self._seen:
            self._book.forget(self._effect(base, ITSELF, source))
        self._seen.add(base)

    def _add(self, base: str, processed: str | None, source: Source) -> None:
        self._book.add(self._effect(base, processed, source))

    def _effect(self, base: str, processed: str | None, source: Source) -> Effect:
        return Effect(PROCESSED, base, {WHICH: processed}, source)
