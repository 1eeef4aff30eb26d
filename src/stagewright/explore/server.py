"""The walk as a page: served on the loopback by the standard library, with nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from urllib.parse import parse_qs, quote, urlsplit

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.explore.explorer import Explorer
from stagewright.spec.errors import StagewrightError

LOOPBACK = "127.0.0.1"
CHECK_SECONDS = 60.0
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
)

Query = Mapping[str, list[str]]


class ExploreServer(ThreadingHTTPServer):
    """Serves one machine; `port` 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer = explorer
        self.lock = Lock()  # the explorer remembers states: one request at a time
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def address_of(self, path: Sequence[str]) -> str:
        """Where a browser finds a place of a walk."""
        if tuple(path) == ("0",):
            return self.address
        return f"{self.address}#{quote(json.dumps(list(path)))}"

    def about(self, _: Query) -> object:
        """The machine, its initial states, its diagram."""
        source = self.explorer.source
        return {
            "name": source.name,
            "profile": source.profile,
            "doc": source.doc,
            "scope": str(self.explorer.scope),
            "initial": len(self.explorer.initial),
            "drawing": None if self.explorer.drawing is None else asdict(self.explorer.drawing),
        }

    def look(self, query: Query) -> object:
        """What is seen at `path`, a JSON list of strings."""
        path = json.loads(query.get("path", ["[]"])[0])
        if not isinstance(path, list) or not all(isinstance(p, str) for p in path):
            raise ValueError("path is not a list of strings")
        return asdict(self.explorer.look(path))

    def runs(self, _: Query) -> object:
        """The counterexamples that a check finds within a minute, each with its path."""
        limits = Limits(seconds=CHECK_SECONDS)
        report = check(self.explorer.source, self.explorer.scope, limits=limits, coverage=False)
        return [
            {"property": v.name, "note": v.note, "path": self.explorer.path_of(v.run)}
            for v in report.verdicts
            if v.run is not None
        ]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET: the page, and what the page asks for."""

    def do_GET(self) -> None:
        """The page or JSON; only to those who name the loopback, so that no other site's script gets an answer."""
        if self.headers.get("Host", "").partition(":")[0] not in (LOOPBACK, "localhost"):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "this page is served on the loopback")
            return
        asked = urlsplit(self.path)
        if asked.path == "/":
            self._answer(HTTPStatus.OK, "text/html", _page())
            return
        served = self.server
        assert isinstance(served, ExploreServer)
        found: dict[str, Callable[[Query], object]] = {
            "/api/about": served.about,
            "/api/look": served.look,
            "/api/runs": served.runs,
        }
        answer = found.get(asked.path)
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


def _page() -> str:
    return files("stagewright.explore").joinpath("page.html").read_text(encoding="utf-8")
