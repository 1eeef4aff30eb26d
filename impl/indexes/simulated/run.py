"""A run: a table begins, a script is worked through under faults, all is healed, and everything is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from stagewright.impl.indexes.client import Client
from stagewright.impl.indexes.control import JOB, TABLE
from stagewright.impl.indexes.messages import (
    Answer,
    AskBuild,
    BackfillTable,
    CreateIndex,
    DropIndex,
    Message,
    SplitTablet,
)
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.notes import Note, Stepped
from stagewright.impl.indexes.records.recorder import IndexRecorder
from stagewright.impl.indexes.records.server_logs import ServerLogs
from stagewright.impl.indexes.schema import Values, row_key, table_tablet
from stagewright.impl.indexes.simulated.oracle import APART, Ended, Oracle, by_tablet
from stagewright.impl.indexes.simulated.script import Operation
from stagewright.impl.indexes.simulated.stored import entries_in, entry_versions_in, versions_in
from stagewright.impl.indexes.simulated.watcher import Watcher
from stagewright.impl.indexes.simulated.words import (
    differs,
    is_settled,
    place_of,
    said_of,
    split_as_text,
    status_of,
    why_not_read,
)
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.indexes.simulated.world import World
from stagewright.impl.indexes.splits.tablet_map import index_table
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.indexes.times import COUNTS
from stagewright.impl.simulator.database.report import Outcome
from stagewright.impl.simulator.database.weather import NONE, Faults
from stagewright.impl.storage.memory import MemoryRows
from stagewright.impl.storage.port import Put, Version
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.spec.errors import InputError

AWAIT_MS, HEAL_MS, SETTLE_MS = 60_000, 60_000, 2_500
AWAIT_JOB_MS = 3_000
SOON_MS = 6
REFUSED_MS = 3_000
TICK_MS, MINUTE = 20, 60_000
TELL_MS = 5  # between two questions how builds are
LOGS = "logs"  # the folder beside the traces
DOWN_MS = (100, 600)
NEXT_MS = (3, 40)


@dataclass(frozen=True)
class Plan:
    """What a run is asked to be."""

    servers: int = 3
    clients: int = 3
    seed: int = 0
    script: tuple[Operation, ...] = ()
    faults: Faults = NONE
    settings: Settings = field(default_factory=Settings)
    workload: Workload = field(default_factory=Workload)


@dataclass
class Report:
    """What a run came to. `breaches` are broken promises; `refused` is what a definition does not allow."""

    outcomes: list[Outcome]
    breaches: list[str]
    refused: list[str]
    counted: dict[str, int]
    indexes: dict[str, str]
    simulated_ms: int
    sizes: dict[str, int]  # of the traces

    @property
    def kept(self) -> bool:
        """Whether every promise was kept, and every step was one of the definitions."""
        return not self.breaches and not self.refused


def run(plan: Plan, directory: Path | None = None) -> Report:
    """Run; the traces are written to a directory, if one is named.

    Raises:
        InputError: the script names what is not there.
    """
    made = Run(plan)
    report = made.report()
    if directory is not None:
        made.write(directory)
    return report


class Run:
    """One run: `report` makes it, `write` keeps what it recorded."""

    def __init__(self, plan: Plan) -> None:
        enforced = any(o.user_enforced for o in plan.script[:1])
        plan = replace(plan, settings=replace(plan.settings, user_enforced=enforced))
        self.plan = plan
        self.world = World(plan.settings, plan.servers, plan.seed, plan.faults)
        self.events = self.world.events
        self.dice = self.world.dice
        self.oracle = Oracle()
        self.watcher = Watcher(plan.settings.tablets)
        self.recorder = IndexRecorder(plan.settings, lambda: self.events.now)
        self.logs = ServerLogs(lambda: self.events.now, lambda: self.world.catalog)
        self.world.listeners.append(self._hear)
        self.outcomes: list[Outcome] = []
        self.ended: dict[int, Ended] = {}
        self._left = 0  # transactions to be begun
        self._faulty = True
        self._chunks: dict[int, int] = {}  # of a tablet that may be read again, by job
        self._known: dict[int, Values] = {}
        settings = plan.settings
        self.clients: list[Client] = []
        for name in (f"client{n}" for n in range(plan.clients + 1)):
            client = Client(self.world.port(name), settings, name)
            self.world.join(name, client)
            self.clients.append(client)
        self.user = self.clients.pop()

    # -- what is heard -----------------------------------------------------------------------------------------

    def _hear(self, note: Note, server: str) -> None:
        self.oracle.now = self.watcher.now = self.events.now
        self.oracle.hear(note)
        self.watcher.hear(note)
        self.recorder.hear(note)
        self.logs.hear(note, server)
        if not isinstance(note, Stepped) or not note.entity.startswith("index"):
            return
        number, now = int(note.entity.removeprefix("index")), self.events.now
        known = self.ended.get(number, Ended())
        match note.action:
            case "publish":
                self.ended[number] = replace(known, published=now)
            case "find_violation":
                self.ended[number] = replace(known, failed=now)
                self._may_read_again()
            case "drop_index":
                self.ended[number] = replace(known, dropped=now)
                self._may_read_again()
            case "delete_index":
                for stored in self.world.left_to_apply(number):
                    self.oracle.hear(stored)
                self.world.delete_index(number)
            case _:
                pass

    def _may_read_again(self) -> None:
        job = self.world.catalog.jobs
        for number in (job, job + 1):
            self._chunks[number] = self._chunks.get(number, 0) + 1

    # -- the run -------------------------------------------------------------------------------------------------

    def write(self, directory: Path) -> None:
        """The traces."""
        directory.mkdir(parents=True, exist_ok=True)
        name = f"indexes-{self.plan.seed}"
        self.watcher.write(directory, name)
        self.recorder.write(directory, name)
        self.logs.write(directory / LOGS)

    def report(self) -> Report:
        """All of it."""
        script = self.plan.script
        created = script[0] if script and script[0].verb == "table" else None
        self._load(created.number if created else 0)
        self.world.start()
        for client in self.clients:
            self.events.after(self.dice.randint(*NEXT_MS), self._next, client)
        self.events.after(TICK_MS, self._weather)
        self.world.look_on(TELL_MS)
        self._pass(100)
        for operation in script[1:] if created else script:
            began = self.events.now
            result = self._do(operation)
            self.outcomes.append(Outcome(str(operation), result, began, self.events.now))
        breaches = self._settle()
        self.recorder.end()
        breaches += self._look()
        sizes = {"Server": self.plan.settings.tablets, "Tablet": self.plan.settings.tablets}
        sizes["Index"] = self.watcher.indexes
        counted = {
            "transactions": sum(len(c.transactions) for c in (*self.clients, self.user)),
            "committed": sum(
                t.committed is not None for c in (*self.clients, self.user) for t in c.transactions
            ),
            "rows scanned": sum(len(n.keys) for _, n in self.oracle.scanned),
            "reads through indexes": sum(len(c.reads) for c in (*self.clients, self.user)),
            "steps": self.watcher.steps + len(self.recorder),
            "tablets split": len(self.world.tablets.splits),
            "tablets of indexes split": len(self.world.index_splits),
            **dict(sorted(self.world.counted.items())),
        }
        return Report(
            self.outcomes,
            breaches,
            self.watcher.problems + self.recorder.problems,
            counted,
            {i.name: said_of(i) for i in self.world.catalog.indexes},
            self.events.now,
            sizes,
        )

    def _load(self, rows: int) -> None:
        """Rows from before; every value is another row's."""
        columns = self.plan.workload.columns
        found: dict[int, Values] = {
            k: {c: 10_000 + (k * 7 + n) for n, c in enumerate(columns)} for k in range(rows)
        }
        self.oracle.load(found)
        self._known = dict(found)
        for tablet, some in by_tablet(found, self.plan.settings.tablets).items():
            store = MemoryRows(self.world.disks[table_tablet(tablet)])
            stored = {row_key(k): v for k, v in some.items()}
            self.recorder.load(table_tablet(tablet), stored)
            puts = [
                Put(ROWS, Version(row_key(k), 1, json.dumps(dict(v)).encode()))
                for k, v in some.items()
            ]
            store.write(puts)
            store.sync()

    def _pass(self, milliseconds: int) -> None:
        end = self.events.now + milliseconds
        self.events.after(milliseconds, lambda: None)
        self.events.run(lambda: self.events.now >= end, end)

    def _until(self, condition: Callable[[], bool], milliseconds: int) -> bool:
        """Wait; not for long any more where a definition has refused something."""
        began = self.events.now

        def over() -> bool:
            return condition() or (self._is_refused and self.events.now - began > REFUSED_MS)

        self.events.run(over, began + milliseconds)
        return condition()

    @property
    def _is_refused(self) -> bool:
        return bool(self.watcher.problems or self.recorder.problems)

    def _next(self, client: Client) -> None:
        """The next transaction of a client, or a read, as long as some are left."""
        if self._left > 0:
            self._read_somewhere(client)
        if self._left > 0 and client.is_idle:
            self._left -= 1
            changes, pause = self.plan.workload.draw(self.dice, self._known)
            if self.plan.settings.user_enforced:
                del changes[1:]
            client.begin(changes, pause, lambda: self._learn(client))
        self.events.after(self.dice.randint(*NEXT_MS), self._next, client)

    def _learn(self, client: Client) -> None:
        last = client.transactions[-1]
        if last.committed is not None:
            for key, values in last.changes:
                self._known[key] = values or {}

    def _read_somewhere(self, client: Client) -> None:
        if self.dice.random() < 0.3:
            for index in client.schema.indexes:
                values = [v[index.column] for v in self._known.values() if index.column in v]
                if values and index.permission.read:
                    back = self.dice.choice((0, 0, 50, 400, 1_500))
                    client.read(index.name, self.dice.choice(sorted(values)), back)

    def _weather(self) -> None:
        faults = self.plan.faults
        if self._faulty and not self.world.calm:
            share = TICK_MS / MINUTE
            if (
                faults.crash
                and self.dice.random() < faults.crash * share
                and len(self.world.up) > 1
            ):
                server = self.dice.choice(sorted(self.world.up))
                self._kill(server)
                self.events.after(self.dice.randint(*DOWN_MS), self.world.restart, server)
            if faults.failover and self.dice.random() < faults.failover * share:
                self._fail_over()
        self.events.after(TICK_MS, self._weather)

    def _kill(self, server: str) -> None:
        self.world.kill(server)
        self._may_read_again()

    def _fail_over(self) -> None:
        self.world.fail_over()
        self._may_read_again()

    # -- operations ------------------------------------------------------------------------------------------------

    def _do(self, operation: Operation) -> str:
        verb, name = operation.verb, operation.name
        match verb:
            case "table":
                raise InputError("--script: a run has one table", help="create it first, once")
            case "create":
                return self._create(operation)
            case "drop":
                return self._status(name) if self._ask(DropIndex(name), name) else "not answered"
            case "backfill":
                return "asked for" if self._ask(BackfillTable(), "") else "not answered"
            case "status":
                return self._status(name) if self._ask(AskBuild(name), name) else "not answered"
            case "await":
                self._until(lambda: self._is_over(name), AWAIT_MS)
                row = self.world.catalog.named(name)
                return "there is none" if row is None else said_of(row)
            case "await job":
                there = self._until(lambda: self._step() is Step[name], AWAIT_JOB_MS)
                return "it is there" if there else f"it is at {self._step().name}"
            case "put" | "delete":
                values = None if verb == "delete" else dict(operation.values)
                return self._transact(operation.number, values)
            case "write":
                self._left += operation.number
                return "in the background"
            case "read":
                return self._read(name, operation.number)
            case "wait":
                self._pass(operation.number)
                return ""
            case "split":
                return self._split(operation)
            case "await splits":
                over = self._until(lambda: self.world.catalog.split is None, AWAIT_MS)
                return f"tablets: {', '.join(map(str, self.world.tablets.numbers))}" if over else ""
            case "fail over":
                self._fail_over()
                return "another master is elected"
            case _:
                return self._power(verb, name)

    def _create(self, operation: Operation) -> str:
        name, unique = operation.name, operation.unique
        if unique and self.plan.settings.user_enforced:
            raise InputError(
                f"--script: `{operation}`: the table's transactions are user-enforced",
                help="they see no others: a unique index needs `create table N rows`",
            )
        if another := differs(self.world.catalog.named(name), operation):
            return another
        began = self.events.now
        if not self._ask(CreateIndex(name, operation.column, unique, operation.deferred), name):
            return "not answered"
        return f"{self._status(name)}, answered after {self.events.now - began} ms"

    def _power(self, verb: str, server: str) -> str:
        if server not in self.world.servers:
            raise InputError(
                f"--script: there is no server {server}",
                help=f"there are: {', '.join(self.world.servers)}",
            )
        if verb == "restart":
            self.world.restart(server)
            return "up"
        if self.world.servers == [server]:
            raise InputError(
                f"--script: {server} is the only server", help="run with --nodes 2 or more"
            )
        if self.world.up <= {server}:
            return "left alone: no other server is up"
        self._kill(server)
        return "its tablets get leaders elsewhere"

    def _ask(self, message: Message, name: str) -> bool:
        self.user.builds.pop(name, None)
        for _ in range(100):
            self.user.ask(message)
            if self._until(lambda: name in self.user.builds, 100):
                return True
        return False

    def _split(self, operation: Operation) -> str:
        """Asked for again and again, so that a master that is elected hears of it at once."""
        place = place_of(operation, self.world.catalog)
        if not place:
            return "there is no such index"
        self.user.splits.pop(place, None)
        for _ in range(AWAIT_JOB_MS // SOON_MS):
            self.user.ask(SplitTablet(place))
            if self._until(lambda: place in self.user.splits, SOON_MS):
                return split_as_text(self.user.splits[place])
        return "not answered"

    def _status(self, name: str) -> str:
        return status_of(self.user.builds[name], self.plan.settings.tablets)

    def _transact(self, key: int, values: Values | None) -> str:
        self.user.begin([(key, values)], 0, lambda: self._learn(self.user))
        self._until(lambda: self.user.is_idle, AWAIT_MS)
        last = self.user.transactions[-1]
        if last.committed is not None:
            return "committed"
        if last.refused is None or last.refused is Answer.aborted:
            return "aborted"
        return f"refused: {last.refused.name}"

    def _read(self, name: str, value: int) -> str:
        row = self.world.catalog.named(name)
        if row is None:
            return "there is no such index"
        self.user.schema = self.world.catalog.schema()
        before = len(self.user.reads)
        if not self.user.read(name, value):
            return why_not_read(row)
        self._until(lambda: len(self.user.reads) > before, 1_000)
        found = self.user.reads[before:]
        return f"rows {list(found[0].rows)}" if found else "not answered"

    def _step(self) -> Step:
        """Where the job of the table is."""
        job = self.world.catalog.machines.get((JOB, TABLE))
        step: object = Step.none if job is None else job.state["step"]
        assert isinstance(step, Step)
        return step

    def _is_over(self, name: str) -> bool:
        row = self.world.catalog.named(name)
        return row is None or is_settled(row)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _settle(self) -> list[str]:
        """Faults end; then everything that was begun ends."""
        self._until(lambda: self._left <= 0, HEAL_MS)
        self._left = 0
        self.world.calm = True
        for server in self.world.servers:
            self.world.restart(server)
        clients = (*self.clients, self.user)
        idle = self._until(lambda: all(c.is_idle for c in clients), HEAL_MS)
        over = self._until(lambda: not self._unsettled(), HEAL_MS)
        self._pass(SETTLE_MS)
        found = [] if idle else ["a transaction does not end"]
        if not over:
            held = ", ".join(self._unsettled())
            found.append(f"the build, removal or split of {held} does not end")
        return found

    def _unsettled(self) -> list[str]:
        rows, split = self.world.catalog.indexes, self.world.catalog.split
        held = [] if split is None else [f"tablet {split.place}"]
        return held + [r.name for r in rows if not (r.deferred or is_settled(r))]

    def _look(self) -> list[str]:
        oracle, settings = self.oracle, self.plan.settings
        clients = (*self.clients, self.user)
        end = (self.events.now + 1_000) * COUNTS
        kept = (self.events.now - settings.history + APART) * COUNTS  # no compaction reclaims these
        found = [*oracle.acknowledged(clients), *oracle.wrongly_reported]
        found += oracle.kept(versions_in(self.world))
        if settings.user_enforced:
            oracle.excuse(clients)
        for row in self.world.catalog.indexes:
            ended = self.ended.get(row.number, Ended())
            until = end if ended.dropped is None else (ended.dropped - 50) * COUNTS
            found += oracle.constraint(row, ended, until)
            if ended.published is None or until < (row.read_time or 0):
                continue
            found += oracle.index(row, until)
            for client in clients:
                for read in client.reads:
                    if read.index == row.number and read.at < until:
                        found += oracle.read(row, read)
            if ended.dropped is None:
                found += oracle.stored(row, frozenset(entries_in(self.world, row.number)), end)
                tablets = self.world.catalog.map_of(index_table(row.number))
                found += oracle.placed(
                    row, tablets, entry_versions_in(self.world, row.number), kept
                )
        in_a_chunk = settings.chunk_rows + settings.batch - 1  # its last batch may pass the bound
        found += oracle.scans(self._chunks, in_a_chunk)
        if settings.rows_per_second:
            found += oracle.rate(settings.rows_per_second)
        faults = self.plan.faults
        killed = self.world.counted["servers killed"]
        if not (faults.loss or faults.delay or faults.duplicate or killed):
            found += oracle.waits(clients)
        return found
