"""The walk as a page: served on the loopback, with nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from urllib.parse import quote

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.explore.explorer import Explorer
from stagewright.loopback import LoopbackServer, Query

CHECK_SECONDS = 60.0


class ExploreServer(LoopbackServer):
    """Serves one machine; `port` 0 takes any that is free."""

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer = explorer
        page = files("stagewright.explore").joinpath("page.html").read_text(encoding="utf-8")
        answers = {"/api/about": self.about, "/api/look": self.look, "/api/runs": self.runs}
        super().__init__(page, answers, port)

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
