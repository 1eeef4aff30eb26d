"""Serves the views of one engine: `/{db}/_design/{ddoc}/_view/{view}`, with answers that stream.

Rows are sent as they are read from one snapshot, as fast as the client takes them; the snapshot is
held as long as the client listens.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.engine import ViewEngine
from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.http.parameters import ParameterError, ViewRequest, read_request
from stagewright.impl.view_engine.query.local import QueryError, Row, Streamed
from stagewright.impl.view_engine.tree.reducers import ReduceError

LARGEST_BODY = 16 << 20  # bytes of a request
CHUNK = 32 << 10  # bytes that are sent together


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
        self, engine: ViewEngine, *, database: str = "db", host: str = "127.0.0.1", port: int = 0
    ) -> None:
        """Bind; port 0 takes a free one. Raises OSError where the address cannot be had."""
        self.engine = engine
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
        self._answer(None)

    def do_POST(self) -> None:
        try:
            body = self._body()
        except RequestError as error:
            self.close_connection = True
            self._error(error)
            return
        self._answer(body)

    def log_message(self, *_args: object, **_named: object) -> None:
        """Requests are not logged."""

    def _body(self) -> Mapping[str, Any]:
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > LARGEST_BODY:
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

    def _answer(self, body: Mapping[str, Any] | None) -> None:
        try:
            self._route(body)
        except RequestError as error:
            self._error(error)
        except ParameterError as error:
            self._error(RequestError(HTTPStatus.BAD_REQUEST, "query_parse_error", str(error)))
        except (IndexNotReadyError, ReduceError) as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            self._error(RequestError(status, "error", str(error)))
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # the client is gone

    def _route(self, body: Mapping[str, Any] | None) -> None:
        address = urlsplit(self.path)
        parts = [unquote(part) for part in address.path.split("/") if part]
        engine = self.views.engine
        if not parts:
            self._json({"couchdb": "Welcome", "vendor": {"name": "Stagewright"}})
            return
        if parts[0] != self.views.database:
            raise _missing("no_db_file")
        if len(parts) == 1:
            self._json({"db_name": self.views.database, "doc_count": engine.documents.count()})
            return
        if parts[1] != "_design" or len(parts) not in (3, 5):
            raise _missing()
        name = parts[2]
        if name not in engine.designs():
            raise _missing()
        if len(parts) == 3:
            self._json({"_id": f"_design/{name}", "views": engine.definition(name)})
            return
        if parts[3] != "_view" or parts[4] not in engine.designs()[name]:
            raise _missing("missing_named_view")
        pairs = parse_qsl(address.query, keep_blank_values=True)
        self._view(name, parts[4], read_request(pairs, body))

    def _view(self, design: str, view: str, request: ViewRequest) -> None:
        try:
            with self.views.engine.streaming(design, view, request.query) as found:
                first = [*_first(found)]  # what is wrong with a query shows before a byte is sent
                self._head(HTTPStatus.OK)
                self._send_chunks(self._texts(found, chain(first, found.rows), request))
        except QueryError as error:
            raise RequestError(HTTPStatus.BAD_REQUEST, "query_parse_error", str(error)) from None

    def _texts(self, found: Streamed, rows: Iterator[Row], request: ViewRequest) -> Iterator[bytes]:
        if found.total_rows is None:
            yield b'{"rows":[\r\n'
        else:
            yield b'{"total_rows":%d,"rows":[\r\n' % found.total_rows
        between = b""
        failure = b""
        try:
            for row in rows:
                yield between + self._row(row, request)
                between = b",\r\n"
        except (ReduceError, IndexNotReadyError, OSError) as error:
            said = json_text([{"from": "local", "reason": str(error)}])
            failure = b',\r\n"errors":' + said
        yield b"\r\n]" + failure + b"\r\n}\n"

    def _row(self, row: Row, request: ViewRequest) -> bytes:
        shown: dict[str, Any] = {} if row.id is None else {"id": row.id}
        shown |= {"key": row.key, "value": row.value}
        if request.include_docs and row.id is not None:
            shown["doc"] = self.views.engine.get(row.id)
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
        self.wfile.write(text)

    def _error(self, error: RequestError) -> None:
        self._json({"error": error.error, "reason": str(error)}, error.status)


def _first(found: Streamed) -> Iterator[Row]:
    """The first row, if there is one."""
    for row in found.rows:
        yield row
        return
