"""Serves a page and what it asks for, on the loopback alone, with nothing from elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from stagewright.spec.errors import StagewrightError

LOOPBACK = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
)

Query = Mapping[str, list[str]]


class LoopbackServer(ThreadingHTTPServer):
    """Serves `page` at / and a JSON document for each path of `answers`; `port` 0 takes any that is free.

    One question is answered at a time. A `ValueError` or `StagewrightError` becomes the page's error text.
    """

    daemon_threads = True

    def __init__(
        self, page: str, answers: Mapping[str, Callable[[Query], object]], port: int = 0
    ) -> None:
        self.page = page
        self.answers = answers
        self.lock = Lock()
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Who has hung up, or says nothing, is no error of the page's."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET: the page, and what the page asks for."""

    timeout = 10  # seconds that it waits for a request, or for who does not read the answer

    def do_GET(self) -> None:
        """The page or JSON; only to those who name the loopback, so that no other site's script gets an answer."""
        if self.headers.get("Host", "").partition(":")[0] not in (LOOPBACK, "localhost"):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "this page is served on the loopback")
            return
        served = self.server
        assert isinstance(served, LoopbackServer)
        try:
            asked = urlsplit(self.path)
        except ValueError as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
            return
        if asked.path == "/":
            self._answer(HTTPStatus.OK, "text/html", served.page)
            return
        answer = served.answers.get(asked.path)
        if answer is None:
            self._json(HTTPStatus.NOT_FOUND, {"error": f"there is no {asked.path}"})
            return
        try:
            with served.lock:
                self._json(HTTPStatus.OK, answer(parse_qs(asked.query)))
        except (StagewrightError, ValueError) as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: a terminal with a line for each click helps nobody."""

    def _json(self, status: HTTPStatus, document: object) -> None:
        self._answer(status, "application/json", json.dumps(document, ensure_ascii=False))

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
