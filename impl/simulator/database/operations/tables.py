"""Tables of tablets in a script: made, altered, repaired, split and merged."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.names import name_of, new_id
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages import STARTING, CreateTable, Message
from stagewright.impl.node.messages.tables import (
    AlterTable,
    DropTable,
    MoveTablet,
    RepairTable,
    Resize,
    ResizeTable,
    SetBalancing,
    TruncateTable,
)
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.places_oracle import look_at_truncated
from stagewright.impl.simulator.database.checks.repair_oracle import RepairOracle
from stagewright.impl.simulator.database.checks.work.statement_oracle import StatementOracle
from stagewright.impl.simulator.database.clients import Clients
from stagewright.impl.simulator.database.operations.asks import (
    AGAIN_MS,
    OPERATION_MS,
    UNFINISHED,
    Asks,
)
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.simulator.database.troubles import Troubles
from stagewright.impl.simulator.database.world import World
from stagewright.impl.tablets.replication import is_altered, staying
from stagewright.impl.tablets.truncation import truncated_until
from stagewright.spec.errors import InputError

LEARNED_MS = 5_000
PROBED = 5  # rows of a table that was dropped, through each node
Place = tuple[str, int]  # a node and a shard; -1: whichever suits


def place(text: str) -> Place:
    """A place as a script names it: `n1` or `n1:0`."""
    node, _, shard = text.partition(":")
    return node, int(shard) if shard else -1


class TableOperations:
    """The tablet tables of a run."""

    def __init__(
        self,
        world: World,
        catalog: Catalog,
        oracle: Oracle,
        clients: Clients,
        asks: Asks,
        statements: StatementOracle,
        troubles: Troubles,
        logging: tuple[bool, bool, int],
    ) -> None:
        """`logging`: whether changes are logged, with images, and for how many milliseconds."""
        self._logging = logging
        self._oracle = oracle
        self.repairs = RepairOracle(world, oracle)
        self._statements = statements
        self._world = world
        self._catalog = catalog
        self._clients = clients
        self._asks = asks
        self._troubles = troubles

    def work(self, operation: Operation) -> str:
        """Do what a script says, and report what became of it."""
        name = f"ks.{operation.node}"
        if operation.verb == "table":
            return self._create(name, operation)
        table = self._catalog.view.named(name)
        if table not in self._clients.tables and table not in self._catalog.view.views:
            if name in map(name_of, self._oracle.dropped):
                return f"refused: there is no table {name}"
            raise InputError(f"`{operation}`: there is no such table", help="make it first")
        if operation.verb == "drop":
            return self._drop(name, operation.through)
        if operation.verb == "truncate":
            return self._truncate(table)
        if operation.verb == "move":
            return self._move(table, operation)
        if operation.verb == "alter":
            return self._alter(table, operation.replicas)
        wait = operation.verb != "ask"
        what = operation.verb if wait else operation.by
        if what in ("split", "merge"):
            return self._resize(table, Resize(what), wait=wait)
        return self._repair(table, wait=wait)

    def balance(self, enabled: bool) -> str:
        """Let the balancer even loads out, or not."""
        refusal = self._ask(
            lambda number: SetBalancing(number, enabled),
            lambda: self._catalog.view.balances == enabled,
        )
        return refusal or "done"

    def committed(self, before: View, after: View) -> None:
        """Something was committed: tables may have been made or dropped."""
        self.repairs.committed(before, after)
        if before.tables is after.tables:
            return
        for table in after.tables.keys() - before.tables.keys():
            self._oracle.create(table)
        for table in before.tables.keys() - after.tables.keys() - before.views.keys():
            self._oracle.dropped.add(table)
            self._clients.tables.pop(table, None)

    def _create(self, name: str, operation: Operation) -> str:
        """Make a tablet table, which clients use from then on, by its id; no request for one of before is on its way."""
        tablets, replicas = operation.number, operation.replicas
        for gone in [t for t in self._oracle.dropped if name_of(t) == name]:
            self._asks.until(lambda of=gone: not self._clients.waits_for(of), LEARNED_MS)  # type: ignore[misc]
        there, unused = self._catalog.view.named(name), new_id(self._catalog.tables, name)
        table = there if self._is_there(name) else unused
        refusal = self._statements.carry_out(
            "create",
            table,
            lambda: self._ask(
                lambda number: CreateTable(number, table, replicas, tablets, *self._logging),
                lambda: self._is_there(name),
                through=operation.through,
            ),
        )
        if refusal:
            return refusal
        self._clients.tables[self._catalog.view.named(name)] = replicas
        self._asks.until(self._all_have_learned, LEARNED_MS)
        return "done"

    def _is_there(self, name: str) -> bool:
        view = self._catalog.view
        return view.named(name) in view.tables

    def _drop(self, name: str, through: str) -> str:
        """Drop a table, which clients have used until then; then nobody who has learned that has a row of it."""
        view = self._catalog.view
        table = view.named(name)
        refused = bool(view.views_of(table)) or name in map(name_of, view.views)
        refusal = self._statements.carry_out(
            "drop",
            table,
            lambda: self._ask(
                lambda number: DropTable(number, table),
                lambda: not self._is_there(name),
                final=refused,
                through=through,
            ),
        )
        if refusal:
            return refusal
        self._asks.until(self._all_have_learned, LEARNED_MS)
        self.probe([n for n in self._asks.serving() if self._has_learned(n)])
        return "done"

    def probe(self, nodes: list[str]) -> None:
        """Read rows of tables that were dropped, through nodes that know it."""
        found: dict[str, list[bytes]] = {}
        for key in sorted({key for key, _ in self._oracle.written}):
            if table_of(key) in self._oracle.dropped:
                found.setdefault(table_of(key), []).append(key)
        for table, keys in found.items():
            for node in nodes:
                for key in keys[:PROBED]:
                    self._clients.probe(key, node, self._is_there(name_of(table)))
        self._asks.until(lambda: not any(map(self._clients.waits_for, found)), LEARNED_MS)

    def _truncate(self, table: str) -> str:
        """Truncate a table, and wait until every node has; what is written meanwhile may be older or not."""
        view, oracle = self._catalog.view, self._oracle
        before, until = oracle.truncations.get(table, 0), self._clients.now()
        refused = bool(view.views_of(table)) or table in view.logs or table in view.views
        oracle.truncations[table] = until
        refusal = self._ask(
            lambda number: TruncateTable(number, table, until),
            lambda: until in (self._catalog.view.truncations.get(table), self._until(table)),
            final=refused,
        )
        if refusal:
            oracle.truncations[table] = before if refusal != UNFINISHED else until
            return refusal
        if not self._asks.until(lambda: self._until(table) >= until, OPERATION_MS):
            return UNFINISHED if table in self._catalog.view.tables else "done"
        oracle.truncate(table, until)
        look_at_truncated(self._catalog.view, self._world.hosts, oracle)
        return "done"

    def _until(self, table: str) -> int:
        return truncated_until(self._catalog.view, table)

    def _repair(self, table: str, *, wait: bool) -> str:
        """Ask for a repair, and maybe wait until each tablet has had it."""
        refusal = self._ask(
            lambda number: RepairTable(number, table),
            lambda: any(row.repair for row in self._rows(table)),
        )
        if refusal:
            return refusal
        if not wait:
            return "asked"
        done = self._asks.until(
            lambda: not any(row.repair for row in self._rows(table)), OPERATION_MS
        )
        return "done" if done else UNFINISHED

    def _alter(self, table: str, replicas: int) -> str:
        """Change the number of replicas, and wait until each tablet has so many."""
        refusal = self._ask(
            lambda number: AlterTable(number, table, replicas),
            lambda: self._catalog.view.tables.get(table) == replicas,
        )
        if refusal:
            return refusal
        self._clients.tables[table] = replicas
        view = self._catalog
        done = self._asks.until(
            lambda: table not in view.view.tablets or not is_altered(view.view, table), OPERATION_MS
        )
        return "done" if done else UNFINISHED

    def _resize(self, table: str, resize: Resize, *, wait: bool) -> str:
        """Have tablets split or merged, and maybe wait until they are."""
        before = len(self._rows(table))
        catalog = self._catalog
        refusal = self._ask(
            lambda number: ResizeTable(number, table, resize),
            lambda: table in catalog.view.resizes or len(self._rows(table)) != before,
        )
        if refusal or not wait:
            return refusal or "asked"
        done = self._asks.until(lambda: table not in catalog.view.resizes, OPERATION_MS)
        return "done" if done else UNFINISHED

    def _move(self, table: str, operation: Operation) -> str:
        """Have a replica moved, and wait until it lies where it was to, or has come to rest elsewhere."""
        rows, number = self._rows(table), operation.number
        if number >= len(rows):
            return f"refused: {table} has no tablet {number}"
        path = operation.source, operation.target
        source, target = map(place, path) if operation.source else self._somewhere(rows[number])
        wanted = (source[0], target[0])
        refusal = self._ask(
            lambda n: MoveTablet(n, table, number, *wanted, source[1], target[1]),
            lambda: self._moves(table, number),
            final=True,
        )
        if refusal:
            return refusal
        self._asks.until(lambda: not self._moves(table, number), OPERATION_MS)
        if self._moves(table, number):
            return UNFINISHED
        there = self._catalog.view.tablet(table, number)
        arrived = there is not None and target[0] in {r.host for r in there.tablet.replicas}
        return "done" if arrived else f"failed: it has come to rest without {target[0]}"

    def _moves(self, table: str, number: int) -> bool:
        row = self._catalog.view.tablet(table, number)
        return row is not None and (row.wish is not None or row.tablet.moves)

    def _somewhere(self, row: TabletRow) -> tuple[Place, Place]:
        """Another place for a replica, by chance: on its own node, or on one that has none."""
        dice, there = self._world.dice, row.tablet.replicas
        source = there[dice.between(0, len(there) - 1, "move from")]
        taken = {r.host for r in there} - {source.host}
        free = [m.name for m in staying(self._catalog.view) if m.name not in taken]
        target = free[dice.between(0, len(free) - 1, "move to")] if free else source.host
        return (source.host, source.shard), (target, -1)

    def _rows(self, table: str) -> tuple[TabletRow, ...]:
        return self._catalog.view.tablets.get(table, ())

    def _ask(
        self,
        request: Callable[[int], Message],
        taken: Callable[[], bool],
        *,
        final: bool = False,
        through: str = "",
    ) -> str:
        """Ask until it is committed, the first time maybe `through` some node; otherwise why not.

        A refusal may be due to faults, unless it is `final`.
        """
        events = self._world.events
        deadline = events.now + OPERATION_MS
        while events.now < deadline:
            reply, through = self._asks.say(request, through), ""
            if taken() or (reply is not None and reply.accepted):
                return ""
            starts = reply is not None and reply.reason.endswith(STARTING)
            if reply is not None and not starts and (final or not self._troubles.on):
                return f"refused: {reply.reason}"
            self._asks.until(taken, AGAIN_MS)
        return UNFINISHED

    def _all_have_learned(self) -> bool:
        return all(h.node is None or self._has_learned(n) for n, h in self._world.hosts.items())

    def _has_learned(self, name: str) -> bool:
        node = self._world.hosts[name].node
        return node is not None and node.context.member.head == self._world.log.head
