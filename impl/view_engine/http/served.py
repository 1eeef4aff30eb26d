"""What a server of views answers from: an engine in this process, or a cluster of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol

from stagewright.impl.view_engine.design.design import DesignDocument, View
from stagewright.impl.view_engine.engine import ViewEngine
from stagewright.impl.view_engine.http.parameters import ViewRequest
from stagewright.impl.view_engine.nodes.manager import ViewCluster
from stagewright.impl.view_engine.query.local import QueryError, Row


class NotOfferedError(Exception):
    """The server's source cannot do what was asked for; the text says why."""


class Answering(NamedTuple):
    """Rows that come one after the other; `errors`, by node, is complete when they have ended."""

    rows: Iterator[Row]
    total_rows: int | None
    errors: Mapping[str, str]


class Served(Protocol):
    """May be called by several threads."""

    def count(self) -> int | None:
        """How many documents there are; None if nobody counts them."""
        ...

    def designs(self) -> Mapping[str, Mapping[str, Any]]:
        """The views of each design document, as it shows them (`View.texts`); `{}` for one that cannot be used."""
        ...

    def define(self, name: str, views: Mapping[str, View]) -> None:
        """Create or change a design document. Raises ValueError, NotOfferedError."""
        ...

    def drop(self, name: str) -> None:
        """Delete a design document. Raises NotOfferedError."""
        ...

    def document(self, doc_id: str) -> Any:
        """A document, or None. Raises NotOfferedError."""
        ...

    def answering(
        self, design: str, view: str, request: ViewRequest
    ) -> AbstractContextManager[Answering]:
        """An answer, whose rows can be read until the end of `with`. Raises as queries do."""
        ...


class OfEngine:
    """One engine."""

    def __init__(self, engine: ViewEngine) -> None:
        self._engine = engine

    def count(self) -> int | None:
        return self._engine.documents.count()

    def designs(self) -> Mapping[str, Mapping[str, Any]]:
        engine = self._engine
        return {name: engine.definition_texts(name) for name in engine.designs()}

    def define(self, name: str, views: Mapping[str, View]) -> None:
        self._engine.define(name, views)

    def drop(self, name: str) -> None:
        self._engine.drop(name)

    def document(self, doc_id: str) -> Any:
        return self._engine.get(doc_id)

    @contextmanager
    def answering(self, design: str, view: str, request: ViewRequest) -> Iterator[Answering]:
        with self._engine.streaming(design, view, request.query) as found:
            yield Answering(found.rows, found.total_rows, {})


class OfCluster:
    """The nodes of a cluster, which all index one design document."""

    def __init__(self, cluster: ViewCluster) -> None:
        self._cluster = cluster
        self._design: DesignDocument = cluster.folder.design

    def count(self) -> int | None:
        return None

    def designs(self) -> Mapping[str, Mapping[str, Any]]:
        views = self._design.views.items()
        return {self._design.name: {name: view.texts() for name, view in views}}

    def define(self, name: str, views: Mapping[str, View]) -> None:  # noqa: ARG002
        raise NotOfferedError(f"{name}: the design document of a cluster is that of its folder")

    def drop(self, name: str) -> None:
        raise NotOfferedError(f"{name}: the design document of a cluster is that of its folder")

    def document(self, doc_id: str) -> Any:
        raise NotOfferedError(
            f"{doc_id}: a cluster answers queries; documents are not read from it"
        )

    @contextmanager
    def answering(self, design: str, view: str, request: ViewRequest) -> Iterator[Answering]:
        if design != self._design.name:
            raise QueryError(f"there is no design document {design}")
        if request.include_docs:
            raise NotOfferedError("include_docs: documents are not read from a cluster")
        with self._cluster.streaming(view, request.query, request.on_error) as found:
            yield Answering(found.rows, found.total_rows, found.errors)
