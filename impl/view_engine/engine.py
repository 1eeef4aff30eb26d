"""The embedded view engine: persistent incremental map/reduce indexes over documents in a folder.

This is the set view server of the design document: it owns the design documents and hands every request
to the group server of one of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from stagewright.impl.view_engine.design.catalog import Catalog, Entry
from stagewright.impl.view_engine.design.design import DesignDocument, View
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.design.mapping import MapError
from stagewright.impl.view_engine.documents.store import DocumentStore
from stagewright.impl.view_engine.group.current import GroupClosedError, GroupSnapshot
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.group.triggers import Triggers, look_after
from stagewright.impl.view_engine.index.compactor import Compaction
from stagewright.impl.view_engine.index.files import remove_leftovers
from stagewright.impl.view_engine.index.updater import UpdaterLimits
from stagewright.impl.view_engine.log.log import NO_LOG, ServerLog
from stagewright.impl.view_engine.query.local import Answer, Row, Streamed, answer, rows, streamed
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.trace.files import TraceFiles
from stagewright.impl.view_engine.trace.trace import Trace


class ViewEngineError(ValueError):
    """A request that cannot be served; the text says what to change."""


class ViewEngine:
    """Documents and views in one folder, for one process at a time; any thread may call it."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        partitions: int | None = None,
        limits: UpdaterLimits | None = None,
        triggers: Triggers | None = None,
        log: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open or create. Raises ViewEngineError if another process has the folder open.

        `partitions` (1 … 1,024, usually 64) is fixed when the folder is created.
        With `triggers` a thread updates, cleans and compacts by these thresholds. `log` names a file to which
        records are added as Couchbase writes them to `couchdb.log`: `stagewright validate` checks it.
        `trace` names a folder for files of what the indexes do beside that, which `validate` checks, too.
        """
        self.folder = Path(folder)
        self._indexes = self.folder / "@indexes" / "default"
        self._indexes.mkdir(parents=True, exist_ok=True)
        self._lock_file = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock_file.close()
            raise ViewEngineError(f"{self.folder} is open in another process") from None
        self._limits = limits
        self._trace = None if trace is None else TraceFiles(trace, self.folder.name)
        self._log = NO_LOG
        if log is not None or self._trace is not None:
            write = None if log is None else partial(_append, Path(log))
            self._log = ServerLog(
                write, trace=Trace(None if self._trace is None else self._trace.take)
            )
        self._lock = threading.RLock()
        self.documents = DocumentStore(self.folder / "documents.sqlite", partitions)
        self._catalog = Catalog(self.folder / "designs.json")
        self._designs: dict[str, DesignDocument] = {}
        self._ever_defined: list[DesignDocument] = []  # queries on old indexes may still reduce
        self._closed = False
        self._groups: dict[bytes, Group] = {}
        remove_leftovers(self._indexes, (e.signature for e in self._catalog.entries.values()))
        for name, entry in self._catalog.entries.items():
            if entry.storable:
                self._keep(entry.document(name))
        self._closing = threading.Event()
        self._maintenance: threading.Thread | None = None
        if triggers is not None:
            work = threading.Thread(target=self._maintain_regularly, args=(triggers,), daemon=True)
            self._maintenance = work
            work.start()

    def put(self, doc_id: str, document: object) -> None:
        """Write one document: any JSON value."""
        self.put_many([(doc_id, document)])

    def put_many(self, documents: Mapping[str, object] | Iterable[tuple[str, object]]) -> int:
        """Write documents in one transaction; gives how many."""
        if isinstance(documents, Mapping):
            documents = cast("Mapping[str, object]", documents).items()
        pairs: Iterable[tuple[str, object]] = documents
        return self.documents.put((_id(doc_id), json_text(body)) for doc_id, body in pairs)

    def delete(self, *doc_ids: str) -> None:
        """Delete documents; ones that are not there are no error."""
        self.documents.put((_id(doc_id), None) for doc_id in doc_ids)

    def get(self, doc_id: str) -> Any:
        """A document, or None if there is none."""
        body = self.documents.get(_id(doc_id))
        return None if body is None else json.loads(body)

    def define(self, name: str, views: Mapping[str, View]) -> None:
        """Create a design document or change it.

        Equal definitions share an index. After a change queries that run end on the old index; it is
        deleted with the last of them. Python functions are not stored: define them again after opening.
        """
        design = DesignDocument(name, views)
        with self._lock:
            self._catalog.entries[name] = Entry.of(design)
            self._catalog.save()
            self._keep(design)
            self._retire_unused()

    def drop(self, name: str) -> None:
        """Delete a design document and, if no other has its definition, its index."""
        with self._lock:
            self._design(name)
            del self._catalog.entries[name]
            self._catalog.save()
            del self._designs[name]
            self._retire_unused()

    def designs(self) -> dict[str, list[str]]:
        """The names of all design documents and their views; ones to be defined again are there, too."""
        with self._lock:
            return {name: sorted(entry.definition) for name, entry in self._catalog.entries.items()}

    def definition(self, name: str) -> Mapping[str, Any]:
        """The views of a design document as they are stored; of Python functions their identity."""
        with self._lock:
            return self._catalog.entries[name].definition

    def definition_texts(self, name: str) -> dict[str, dict[str, str]]:
        """The views of a design document as text; none if its Python functions are to be defined again."""
        with self._lock:
            design = self._designs.get(name)
            return {} if design is None else {v: one.texts() for v, one in design.views.items()}

    def views_of(self, name: str) -> dict[str, View]:
        """The views of a design document; none if there is none of that name."""
        with self._lock:
            return dict(self._design(name).views) if name in self._catalog.entries else {}

    def query(
        self, design: str, view: str, query: Query | None = None, **parameters: Any
    ) -> Answer:
        """Rows of a view, or reductions; `parameters` are those of `Query`."""
        asked = query or Query(**parameters)
        with self._snapshot(design, asked) as snapshot:
            return answer(snapshot, view, asked)

    def stream(
        self, design: str, view: str, query: Query | None = None, **parameters: Any
    ) -> Iterator[Row]:
        """As `query`, row by row from one snapshot, however long that takes."""
        asked = query or Query(**parameters)
        with self._snapshot(design, asked) as snapshot:
            yield from rows(snapshot, view, asked)

    @contextmanager
    def streaming(self, design: str, view: str, query: Query) -> Iterator[Streamed]:
        """As `stream`, with what it is an answer about; rows can be read until the end of `with`."""
        with self._snapshot(design, query) as snapshot:
            yield streamed(snapshot, view, query)

    def compact(self, design: str) -> Compaction:
        """Rewrite the index of a design document without what is not used any more; queries go on."""
        return self.group(design).compact()

    def maintain(self, triggers: Triggers | None = None) -> dict[str, list[str]]:
        """Update, clean and compact what is due by the thresholds; gives what was done, by design."""
        with self._lock:
            names = [*self._designs]
        return {name: look_after(self.group(name), triggers or Triggers()) for name in names}

    def _maintain_regularly(self, triggers: Triggers) -> None:
        while not self._closing.wait(triggers.interval):
            with suppress(ViewEngineError, OSError):
                self.maintain(triggers)

    def map_errors(self, design: str) -> list[MapError]:
        """The last documents on which a map function failed: they have no rows in that view."""
        return self.group(design).map_errors

    def group(self, design: str) -> Group:
        """The group server of a design document."""
        with self._lock:
            document = self._design(design)
            group = self._groups.get(document.signature)
            if group is None:
                group = Group(
                    self._indexes,
                    document,
                    self.documents,
                    self.documents.partitions,
                    limits=self._limits,
                    log=self._log,
                )
                self._groups[document.signature] = group
            return group

    def close(self) -> None:
        """Stop all work; what was committed stays."""
        self._closing.set()
        if self._maintenance is not None:
            self._maintenance.join()
        with self._lock:
            self._closed = True
            for group in self._groups.values():
                group.close()
            self._groups = {}
            for design in self._ever_defined:
                design.close()
            self.documents.close()
            if self._trace is not None:
                self._trace.close()
            self._lock_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _snapshot(self, design: str, query: Query) -> Iterator[GroupSnapshot]:
        """What the query reads; where the design document changes meanwhile, the new one's."""
        with ExitStack() as held:
            yield self._held(design, query, held)
        if query.stale == "update_after":
            self.group(design).trigger()

    def _held(self, design: str, query: Query, held: ExitStack) -> GroupSnapshot:
        while True:
            group = self.group(design)
            try:
                return held.enter_context(group.reading(current=query.stale == "false"))
            except GroupClosedError:
                if self._closed:
                    raise

    def _keep(self, design: DesignDocument) -> None:
        self._designs[design.name] = design
        self._ever_defined.append(design)

    def _design(self, name: str) -> DesignDocument:
        design = self._designs.get(name)
        if design is not None:
            return design
        if name in self._catalog.entries:
            raise ViewEngineError(f"{name} has Python functions: define it again in this process")
        known = ", ".join(sorted(self._catalog.entries)) or "none"
        raise ViewEngineError(f"there is no design document {name}; there are {known}")

    def _retire_unused(self) -> None:
        """Close the groups that no design document has, and delete their files."""
        used = {entry.signature for entry in self._catalog.entries.values()}
        for signature in [*self._groups]:
            if signature not in used:
                self._groups.pop(signature).close()
        remove_leftovers(self._indexes, used)


def _append(path: Path, record: str) -> None:
    with path.open("a") as file:
        file.write(record)


def _id(doc_id: str) -> bytes:
    """As it stands in the store. Raises ViewEngineError for an id that does not fit into the index."""
    encoded = doc_id.encode()
    if not 1 <= len(encoded) <= 250:
        raise ViewEngineError(f"the id of a document has 1 to 250 bytes, not {len(encoded)}")
    return encoded
