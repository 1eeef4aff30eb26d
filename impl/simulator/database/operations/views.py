"""Views in a script: created, awaited and dropped, and compared with their base tables when all has come to rest."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.names import new_id
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.node.messages import (
    Cell,
    ClientScan,
    Level,
    Message,
    ScanReply,
)
from stagewright.impl.node.messages.tables import CreateView, DropView, ViewStatus
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.staging_watcher import StagingWatcher
from stagewright.impl.simulator.database.checks.view_check import ViewCheck
from stagewright.impl.simulator.database.checks.view_oracle import Expected, ViewOracle
from stagewright.impl.simulator.database.checks.work.statement_oracle import StatementOracle
from stagewright.impl.simulator.database.clients import Clients
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.impl.simulator.database.operations.asks import OPERATION_MS, UNFINISHED, Asks
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.simulator.database.world import World
from stagewright.impl.views.building.progress import remaining_ms, statuses
from stagewright.impl.views.maintenance.staged import staged_rows
from stagewright.spec.errors import InputError

PAGE = 50
QUIET_MS = 30_000  # for updates to arrive when nothing goes wrong any more


def _said(status: ViewStatus) -> str:
    """How far a view is built, as the report of a run has it."""
    if status.status == "SUCCESS":
        return f"{status.view} SUCCESS"
    done = status.places - status.tasks
    left = remaining_ms(done / status.places, status.age_ms) if status.places else None
    estimate = "" if left is None or status.status == "CREATED" else f", about {left} ms to go"
    return f"{status.view} {status.status}, {done} of {status.places} tasks done{estimate}"


class ViewOperations:
    """The views of a run."""

    def __init__(
        self,
        world: World,
        catalog: Catalog,
        oracle: Oracle,
        clients: Clients,
        asks: Asks,
        statements: StatementOracle,
        problems: list[str],
    ) -> None:
        self.world = world
        self._catalog = catalog
        self._clients = clients
        self._asks = asks
        self._of_rows = oracle
        self._statements = statements
        self.oracle = ViewOracle(world, catalog, oracle)
        self.check = ViewCheck(catalog, problems)

    def committed(self, entry: Entry, before: View) -> None:
        """Something was committed: a view may be built, or a version lost; `before` is what was there."""
        self.oracle.lost.committed(before, self._catalog.view)
        self.check.committed(entry, self.world.events.now)
        for mutation in entry.command.mutations:
            if mutation.table == "built_views" and mutation.columns is not None:
                self.oracle.built(mutation.key[0])

    # -- operations ------------------------------------------------------------------------------------------

    def work(self, operation: Operation) -> str:
        """Do what a script says, and report what became of it."""
        name = f"ks.{operation.node}"
        match operation.verb:
            case "create":
                return self._create(name, operation)
            case "build":
                return self._status()
            case "await":
                self._refuse_unknown(name, operation)
                self._asks.until(lambda: self._is_built(name), OPERATION_MS)
                if not self._is_there(name):
                    return "there is no such view"
                return "built" if self._is_built(name) else UNFINISHED
            case _:
                self._refuse_unknown(name, operation)
                result = self._drop(name, operation.through)
                if result == "done":
                    self.oracle.views.pop(name, None)
                return result

    def _status(self) -> str:
        """How far each view is built, as group0 says it: what workers have done of their tasks is not known to it."""
        catalog = self._catalog
        found = statuses(catalog.tables, catalog.view, (EPOCH + self.world.events.now) * 1000)
        return "; ".join(map(_said, found)) or "there is no view"

    def _create(self, name: str, operation: Operation) -> str:
        base = self._catalog.view.named(f"ks.{operation.by}")
        if self._is_there(name):
            return f"refused: there is a {name} already"
        rows = operation.number, operation.comparison, operation.bound
        self.oracle.expect(name, Expected(base, *rows))
        view = new_id(self._catalog.tables, name)
        result = self._statements.carry_out(
            "create",
            view,
            lambda: self._ask(
                lambda number: CreateView(number, view, base, *rows),
                lambda: self._is_there(name),
                operation.through,
            ),
        )
        if result != "done":
            self.oracle.views.pop(name)
        return result

    def _drop(self, name: str, through: str) -> str:
        view = self._catalog.view.named(name)
        return self._statements.carry_out(
            "drop",
            view,
            lambda: self._ask(
                lambda number: DropView(number, view), lambda: not self._is_there(name), through
            ),
        )

    def _is_there(self, name: str) -> bool:
        view = self._catalog.view
        return view.named(name) in view.tables

    def _refuse_unknown(self, name: str, operation: Operation) -> None:
        if name not in self.oracle.names:
            raise InputError(f"`{operation}`: there is no such view", help="create it first")

    def _ask(
        self, request: Callable[[int], Message], done: Callable[[], bool], through: str
    ) -> str:
        """Ask until it is committed, the first time maybe `through` some node; what is refused for good is reported."""
        now = self.world.events
        deadline = now.now + OPERATION_MS
        while not done() and now.now < deadline:
            reply, through = self._asks.say(request, through), ""
            if reply is not None and not reply.accepted and not done():
                return f"refused: {reply.reason}"
        return "done" if done() else UNFINISHED

    def _is_built(self, name: str) -> bool:
        view = self._catalog.view.named(name)
        return not self._is_there(name) or (view,) in self._catalog.tables["built_views"]

    # -- the end -----------------------------------------------------------------------------------------------

    def count(self, staging: StagingWatcher) -> None:
        """How many rows came into staging, and how many were processed."""
        counted = self.world.counted
        if staging.staged:
            counted["rows staged"] = staging.staged
            counted["staged rows processed"] = staging.processed

    def look(self) -> None:
        """Every view is built; replicas agree and updates have arrived; then it is what its base table says."""
        views = {n: e for n, e in self.oracle.views.items() if self._is_there(n)}
        if not views:
            return
        if not self._asks.until(lambda: all(map(self._is_built, views)), QUIET_MS):
            lacks = [n for n in views if not self._is_built(n)]
            self._of_rows.broken(f"views are never built: {', '.join(lacks)}")
        bases = {expected.base for expected in views.values()}
        for key in sorted({k for k, _ in self._of_rows.written}):
            if table_of(key) in bases:
                self._clients.read(-1, key, self._asks.serving()[0], Level.all)
        self._asks.until(
            lambda: self._clients.finished and not self._on_the_way() and not self._staged(bases),
            QUIET_MS,
        )
        if count := self._on_the_way():
            self._of_rows.broken(f"{count} view updates do not arrive after all was healed")
        if count := self._staged(bases):
            self._of_rows.broken(f"{count} rows are left in staging after all was healed")
        rows = {table: self._scan(table) for table in sorted({*bases, *views})}
        for name, expected in views.items():
            base, there = rows[expected.base], rows[name]
            if base is None or there is None:
                self._of_rows.broken(
                    f"{name} or its base table cannot be read after all was healed"
                )
            else:
                self.oracle.compare(name, base, there)
                self.oracle.look_at_replicas(name, there)
        self.world.counted["view rows compared"] += self.oracle.compared
        if excused := self.oracle.lost.excused:
            self.world.counted["view rows of lost versions"] += excused

    def _on_the_way(self) -> int:
        nodes = (host.node for host in self.world.hosts.values())
        return sum(n.views.outbox.waiting for n in nodes if n is not None)

    def _staged(self, bases: set[str]) -> int:
        """The rows of tables that wait in staging, on nodes that run."""
        hosts = [h for h in self.world.hosts.values() if h.node is not None]
        return sum(len(staged_rows(h.rows, b)) for h in hosts for b in bases)

    def _scan(self, table: str) -> list[Cell] | None:
        """All rows, as a client reads them from all replicas."""
        found: list[Cell] = []
        start, misses = b"", 0
        while misses < 10:
            reply = self._asks.read(
                lambda number, start=start: ClientScan(number, table, start, PAGE, Level.all)  # type: ignore[misc]
            )
            if not isinstance(reply, ScanReply) or not reply.succeeded:
                misses += 1
                continue
            found += reply.cells
            if reply.following is None:
                return found
            start = reply.following
        return None
