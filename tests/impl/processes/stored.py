"""What the stopped nodes of a cluster hold of a table and its view: each replica by itself, whatever reads would mend."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing

from tests.patience import PATIENCE

from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.impl.simulator.database.checks.view_oracle import Expected, stored_row
from stagewright.impl.storage.port import live
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.views.maintenance.hints import stored_hints
from stagewright.impl.views.maintenance.staged import staging_of


class Held:
    """The rows of all nodes, each with the number of nodes that have it, and what still is on its way to views."""

    def __init__(self, layout: Layout, base: str, views: dict[str, Expected]) -> None:
        self.base = Counter[tuple[bytes, bytes]]()
        self.views = {view: Counter[bytes]() for view in views}
        self.waits = 0
        self._expected = views
        for name in (n for n in layout.names() if not layout.stopped(n)):
            with closing(RocksRows(layout.node(name) / "rows")) as rows:
                snapshot = rows.snapshot()
                for version in live(snapshot, base):
                    self.base[version.key, version.value or b""] += 1
                for view, held in self.views.items():
                    held.update(version.key for version in live(snapshot, view))
                self.waits += sum(1 for _ in snapshot.versions(staging_of(base), b"", None))
                snapshot.close()
                self.waits += sum(1 for _ in stored_hints(rows, base))

    def problems(self, replicas: int) -> list[str]:
        """Where a row is at fewer replicas than there are, or more, or a view is not what its table says."""
        found = [f"{r} is at {n} replicas" for r, n in self.base.items() if n != replicas]
        for view, held in self.views.items():
            expected = self._expected[view]
            keys = {
                stored_row(k, key): key
                for key, v in self.base
                if (k := expected.key(v)) is not None
            }
            found += [
                f"{view} lacks {key!r} at {replicas - held[row]} replicas"
                for row, key in keys.items()
                if held[row] != replicas
            ]
            found += [f"{view} has {row!r}, the table has not" for row in held if row not in keys]
        return found


def at_rest(supervisor: Supervisor, base: str, views: dict[str, Expected]) -> Held:
    """Stop all nodes when nothing is on its way any more, and look."""
    supervisor.stop()
    held = Held(supervisor.layout, base, views)
    until = time.monotonic() + PATIENCE
    while held.waits:
        assert time.monotonic() < until, f"{held.waits} updates of views never arrive"
        supervisor.start()
        time.sleep(2)
        supervisor.stop()
        held = Held(supervisor.layout, base, views)
    return held
