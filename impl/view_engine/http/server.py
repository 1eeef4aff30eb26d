"""Serves the views of an engine or a cluster: `/{db}/_design/{ddoc}/_view/{view}`, with answers that stream.

Rows are sent as they are read from one snapshot, as fast as the client takes them; the snapshot is
held as long as the client listens. Clients of CouchDB also look for the database and its design documents.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from stagewright import __version__
from stagewright.impl.view_engine.cluster.coordinator import ClusterQueryError
from stagewright.impl.view_engine.design.design import View
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.engine import ViewEngine
from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.http.parameters import ParameterError, ViewRequest, read_request
from stagewright.impl.view_engine.http.served import (
    Answering,
    NotOfferedError,
    OfCluster,
    OfEngine,
    Served,
)
from stagewright.impl.view_engine.nodes.manager import ViewCluster
from stagewright.impl.view_engine.query.local import QueryError, Row
from stagewright.impl.view_engine.tree.reducers import ReduceError

LARGEST_BODY = 16 << 20  # bytes of a request
CHUNK = 32 << 10  # bytes that are sent together
SPOKEN = "1.6.1"  # the version of CouchDB whose requests are understood: clients ask for it
_FAILURES = (ReduceError, IndexNotReadyError, ClusterQueryError)


class RequestError(Exception):
    """A request that is answered with a status, CouchDB's name of the error, and a reason."""

    def __init__(self, status: HTTPStatus, error: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = error


def _missing(reason: str = "missing") -> RequestError:
    return RequestError(HTTPStatus.NOT_FOUND, "not_found", reason)


class ViewServer:
    """An HTTP server in threads of its own. Use it with `with`; `url` is where its database is."""

    def __init__(
        self,
        source: ViewEngine | ViewCluster,
        *,
        database: str = "db",
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Bind; port 0 takes a free one. Raises OSError where the address cannot be had."""
        self.source: Served = (
            OfCluster(source) if isinstance(source, ViewCluster) else OfEngine(source)
        )
        self.database = database
        server = self

        class Handler(_Handler):
            views = server

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.host, self.port = host, self._server.server_address[1]
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/{self.database}"

    def serve(self) -> None:
        """Serve until `close`, in this thread."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        self._server.shutdown()
        if self._thread is not None:
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> ViewServer:
        self._thread = threading.Thread(target=self.serve, name="view-server", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "Stagewright"
    views: ViewServer
    timeout = 300  # seconds without a byte from a client, or a client that takes one

    def do_GET(self) -> None:
        self._answer(lambda: self._route(None))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self._answer(lambda: self._route(self._body()))

    def do_PUT(self) -> None:
        self._answer(lambda: self._define(self._body()))

    def do_DELETE(self) -> None:
        self._answer(self._drop)

    def log_message(self, *_args: object, **_named: object) -> None:
        """Requests are not logged."""

    def _body(self) -> Mapping[str, Any]:
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > LARGEST_BODY:
            self.close_connection = True  # what follows is not read
            raise RequestError(
                HTTPStatus.BAD_REQUEST, "bad_request", "a body has a length, of at most 16 MB"
            )
        try:
            body = json.loads(self.rfile.read(int(size)) or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise RequestError(
                HTTPStatus.BAD_REQUEST, "bad_request", "the body is a JSON object with parameters"
            )
        return body

    def _answer(self, work: Callable[[], None]) -> None:
        try:
            work()
        except RequestError as error:
            self._error(error)
        except ParameterError as error:
            self._error(RequestError(HTTPStatus.BAD_REQUEST, "query_parse_error", str(error)))
        except QueryError as error:
            self._error(RequestError(HTTPStatus.BAD_REQUEST, "query_parse_error", str(error)))
        except NotOfferedError as error:
            self._error(RequestError(HTTPStatus.NOT_IMPLEMENTED, "not_implemented", str(error)))
        except _FAILURES as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            self._error(RequestError(status, "error", str(error)))
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # the client is gone

    def _parts(self) -> list[str]:
        """The parts of the address, of which the first is the database; none is that of the server."""
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/") if part]
        if parts[1:2] and parts[1].startswith("_design/"):  # some clients quote the slash
            parts[1:2] = parts[1].split("/", 1)
        if parts and parts[0] not in (self.views.database, "_all_dbs"):
            raise _missing("no_db_file")
        return parts

    def _route(self, body: Mapping[str, Any] | None) -> None:
        source = self.views.source
        match self._parts():
            case []:
                vendor = {"name": "Stagewright", "version": __version__}
                self._json({"couchdb": "Welcome", "version": SPOKEN, "vendor": vendor})
            case ["_all_dbs"]:
                self._json([self.views.database])
            case [database]:
                self._json({"db_name": database, "doc_count": source.count()})
            case [_, "_design", name]:
                self._json(self._design(name))
            case [_, "_design", name, "_view", view]:
                if view not in self._design(name)["views"]:
                    raise _missing("missing_named_view")
                pairs = parse_qsl(urlsplit(self.path).query, keep_blank_values=True)
                self._view(name, view, read_request(pairs, body))
            case [_, doc_id] if doc_id[:1] != "_" and body is None:
                self._document(doc_id)
            case _:
                raise _missing()

    def _design(self, name: str) -> dict[str, Any]:
        designs = self.views.source.designs()
        if name not in designs:
            raise _missing()
        return {"_id": f"_design/{name}", "language": "javascript", "views": designs[name]}

    def _document(self, doc_id: str) -> None:
        found = self.views.source.document(doc_id)
        if found is None:
            raise _missing()
        self._json({"_id": doc_id, **found} if isinstance(found, dict) else found)

    def _define(self, body: Mapping[str, Any]) -> None:
        """Create or change a design document: `{"views": {name: {"map": text, "reduce": text}}}`."""
        match self._parts():
            case [_, "_design", name]:
                pass
            case _:
                raise NotOfferedError("documents are written by the engine's own process")
        try:
            views = {
                view: View.of_text(texts["map"], texts.get("reduce"))
                for view, texts in body["views"].items()
            }
            self.views.source.define(name, views)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise RequestError(HTTPStatus.BAD_REQUEST, "invalid_design_document", wrong) from None
        self._json({"ok": True, "id": f"_design/{name}"}, HTTPStatus.CREATED)

    def _drop(self) -> None:
        match self._parts():
            case [_, "_design", name]:
                self._design(name)
                self.views.source.drop(name)
                self._json({"ok": True, "id": f"_design/{name}"})
            case _:
                raise NotOfferedError("documents are written by the engine's own process")

    def _view(self, design: str, view: str, request: ViewRequest) -> None:
        with self.views.source.answering(design, view, request) as found:
            first = [*_first(found)]  # what is wrong with a query shows before a byte is sent
            self._head(HTTPStatus.OK)
            if self.command != "HEAD":
                self._send_chunks(self._texts(found, chain(first, found.rows), request))

    def _texts(
        self, found: Answering, rows: Iterator[Row], request: ViewRequest
    ) -> Iterator[bytes]:
        if found.total_rows is None:
            yield b'{"rows":[\r\n'
        else:
            yield b'{"total_rows":%d,"rows":[\r\n' % found.total_rows
        between = b""
        failures: list[dict[str, str]] = []
        try:
            for row in rows:
                yield between + self._row(row, request)
                between = b",\r\n"
        except (*_FAILURES, OSError) as error:
            failures.append({"from": "local", "reason": str(error)})
        failures += ({"from": node, "reason": why} for node, why in found.errors.items())
        said = b',\r\n"errors":' + json_text(failures) if failures else b""
        yield b"\r\n]" + said + b"\r\n}\n"

    def _row(self, row: Row, request: ViewRequest) -> bytes:
        shown: dict[str, Any] = {} if row.id is None else {"id": row.id}
        shown |= {"key": row.key, "value": row.value}
        if request.include_docs and row.id is not None:
            shown["doc"] = self.views.source.document(row.id)
        return json_text(shown)

    def _send_chunks(self, texts: Iterator[bytes]) -> None:
        gathered = bytearray()
        for text in texts:
            gathered += text
            if len(gathered) >= CHUNK:
                self._send_chunk(gathered)
                gathered.clear()
        if gathered:
            self._send_chunk(gathered)
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunk(self, data: bytearray) -> None:
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")

    def _head(self, status: HTTPStatus, size: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "must-revalidate")
        if size is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(size))
        self.end_headers()

    def _json(self, value: object, status: HTTPStatus = HTTPStatus.OK) -> None:
        text = json_text(value) + b"\n"
        self._head(status, len(text))
        if self.command != "HEAD":
            self.wfile.write(text)

    def _error(self, error: RequestError) -> None:
        self._json({"error": error.error, "reason": str(error)}, error.status)


def _first(found: Answering) -> Iterator[Row]:
    """The first row, if there is one."""
    for row in found.rows:
        yield row
        return
