"""What is recorded of one answer: from what nodes are asked for and what the client gets."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.query.local import Row
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.trace.trace import Trace

Place = tuple[bytes, bytes]


class AnswerTrace:
    """Of one attempt at a query."""

    def __init__(self, trace: Trace, name: str, query: Query) -> None:
        self._trace = trace
        self._entity = name
        self._query = query

    def asked(self, of_node: Query) -> None:
        """A node is asked for its part."""
        last = None if self._query.limit is None else self._query.skip + self._query.limit
        all_rows = of_node.limit is None or (last is not None and of_node.limit >= last)
        self._record("ask", enough=of_node.skip == 0 and all_rows)

    def lacks_node(self) -> None:
        """A node does not answer, or not to the end."""
        self._record("lack_node")

    def given(self, rows: Iterator[Row], errors: Sized, *, reduced: bool) -> Iterator[Row]:
        """The rows as the client takes them, and the end; `errors` are what it learns of nodes."""
        if not self._trace.is_kept:
            return rows
        return self._given(rows, errors, reduced=reduced)

    def _given(self, rows: Iterator[Row], errors: Sized, *, reduced: bool) -> Iterator[Row]:
        before: Place | None = None
        for row in rows:
            place = sort_bytes(json_text(row.key)), (row.id or "").encode()
            self._record("give_row", follows=self._follows(before, place, reduced=reduced))
            before = place
            yield row
        self._record("end", named=len(errors) > 0)

    def _follows(self, before: Place | None, place: Place, *, reduced: bool) -> bool:
        """Rows of several keys come in the order in which the keys are asked for."""
        if before is None or self._query.keys is not None:
            return True
        if before == place:
            return not reduced  # a document may emit several values with one key
        return (before < place) != self._query.descending

    def _record(self, action: str, **arguments: bool) -> None:
        self._trace.record("engine-answers", self._entity, action, **arguments)
