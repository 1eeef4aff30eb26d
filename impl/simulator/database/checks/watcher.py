"""Watches what nodes do, as their logs would have it, and checks it at once by the definitions of recordings.

It sees the messages that a node gets and the effects that are carried out, with what the node knows at that
time. Each kind of recording is checked by a definition in `machines/recorded`; written down, it is a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages import (
    BarrierAck,
    BarrierRequest,
    ClientReply,
    ClientWrite,
    Message,
    Order,
    OrderDone,
    Outcome,
    Phase,
    PullRows,
    ReplicaRead,
    ReplicaReply,
    ReplicaRows,
    ReplicaScan,
    ReplicaWrite,
    RowChunk,
    Work,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Drop, Effect, Send, Store, Truncate
from stagewright.impl.recording.recording import Recording
from stagewright.impl.recording.transition_table import TransitionTable, tables_of
from stagewright.impl.simulator.database.checks.changes.watcher import (
    TOKEN,
    ChangeWatcher,
    MayPrecede,
)
from stagewright.impl.simulator.database.checks.replica_watcher import ReplicaWatcher
from stagewright.impl.simulator.database.checks.resize_watcher import ResizeWatcher
from stagewright.impl.simulator.database.checks.view_check import ViewCheck
from stagewright.impl.simulator.database.checks.view_watcher import ViewWatcher
from stagewright.impl.simulator.database.checks.work.fetched_rows import (
    ranges_are_complete,
    tablet_is_complete,
)
from stagewright.impl.simulator.database.checks.work.order_watcher import OrderWatcher
from stagewright.impl.simulator.database.checks.work.refusal_watcher import RefusalWatcher
from stagewright.impl.simulator.database.checks.work.reply_watcher import ReplyWatcher
from stagewright.impl.simulator.database.checks.work.shard_watcher import ShardWatcher
from stagewright.impl.simulator.database.checks.work.stream_watcher import StreamWatcher
from stagewright.impl.simulator.database.checks.work.version_watcher import VersionWatcher
from stagewright.impl.simulator.database.hosts import Host, life_of
from stagewright.impl.views.building.records import Record
from stagewright.machines.recorded import OF_CHANGES, OF_NODES, OF_VIEWS
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas, Role, Run, Stage
from stagewright.machines.scylladb.topology.topology_states import Ring

RELIES = frozenset(
    {
        "commit_cdc_generation",
        "read_new",
        "finish_bootstrap",
        "finish_replace",
        "leave_token_ring",
        "report_completion",
        "complete_rollback",
        "finish_resize",
    }
)
"""The steps of the topology that rely on the barrier of their state."""
PASSES = (TabletMigration.__name__, "pass_barrier")
_STAGE = {Ring.old: Stage.none, Ring.both: Stage.write_both_read_old, Ring.new: Stage.use_new}


@cache
def tables() -> dict[str, TransitionTable]:
    """The definitions of what is recorded, by kind; all runs of a process share what they compute."""
    return tables_of({**OF_NODES, **OF_VIEWS, **OF_CHANGES})


class Watcher:
    """All that is recorded of a run, beside the log of group0."""

    def __init__(self, now: Callable[[], int], *, keeps: bool) -> None:
        self.recording = Recording(tables(), now, keeps=keeps)
        self._take = self.recording.take
        self._rounds: dict[tuple[int, int], int] = {}  # the versions of barriers
        self._writes: dict[tuple[str, int], int] = {}  # client's number → that of the request
        self._waited: dict[tuple[str, int], ClientWrite] = {}  # writes, by reads before them
        self._answered: dict[int, set[str]] = {}
        self._fewer: dict[int, tuple[str, ...]] = {}  # by write: who stays, if fewer replicas do
        self._going: set[str] = set()  # tablets that have a replica less then
        self._repaired: dict[str, set[str]] = {}  # who says so, by the session of a tablet
        self._stored: dict[tuple[str, int], int] = {}  # where in the log of a disk a write stands
        self._streams = StreamWatcher(self._take, now)
        self._fetched: dict[tuple[str, str], set[tuple[str, str, tuple[int, int]]]] = {}
        self._orders: dict[tuple[str, int, int], Order] = {}
        self._sessions: dict[str, frozenset[str]] = {}  # by life of a node
        self._ready: set[str] = set()
        self._replicas = ReplicaWatcher(self._take)
        self._resizes = ResizeWatcher(self.recording)
        self._given = OrderWatcher(self._take, now)
        self._replies = ReplyWatcher(self._take)
        self._shards = ShardWatcher(self._take)
        self._versions_of_rows = VersionWatcher(self._take)
        self._passed_at = 0
        self._waived = 0  # the version whose barrier was put up with
        self._entered: dict[str, tuple[Stage, int]] = {}  # stages of tablets, and in which versions
        self._absent: dict[str, frozenset[str]] = {}  # given up since a tablet's session is open
        # Who was given up while nodes drained what is older than a version, and is not now: it knows the fence.
        self._spared: dict[int, frozenset[str]] = {}
        self._versions: dict[int, int] = {}  # when each was committed
        self._knows: dict[str, int] = {}  # the last fence that each node has said it knows
        self.views: ViewWatcher | None = None
        self.tasks: ViewCheck | None = None
        self.changes: ChangeWatcher | None = None
        self.refusals: RefusalWatcher | None = None
        self.crashed: Callable[[Host], None] = lambda _: None

    # -- lives of nodes ------------------------------------------------------------------------------------

    def follow_views(self, tasks: ViewCheck, hosts: dict[str, Host]) -> None:
        """Record what nodes do about views, too."""
        self.views, self.tasks = ViewWatcher(self._take, hosts), tasks

    def follow_changes(self, catalog: Catalog, may_precede: MayPrecede, leeway: int) -> None:
        """Record what nodes do about logs of changes, too; `leeway`: of timestamps, in milliseconds."""
        self.changes = ChangeWatcher(self.recording, lambda: catalog, may_precede, leeway)

    def begins(self, host: Host, node: DatabaseNode) -> None:
        """A life of a node begins: what it says of view building is recorded."""

        def observe(record: Record) -> None:
            if self.views is not None and self.tasks is not None:
                self.views.observe(host, node, record)
                self.tasks.observe(node.context, record, self.recording.now())

        node.views.listeners.append(observe)

    def ends(self, host: Host) -> None:
        """It is over, and its disk is as a crash leaves it."""
        self.crashed(host)
        self._versions_of_rows.ends(host)
        if self.views is not None:
            self.views.ends(host)
        if self.tasks is not None:
            self.tasks.ends(host.identity.name, self.recording.now())

    # -- what nodes get ------------------------------------------------------------------------------------

    def heard(self, host: Host, node: DatabaseNode, sender: str, message: Message) -> None:
        """A node is about to handle a message."""
        if self.changes is not None:
            self.changes.heard(node, sender, message)
        if self.views is not None and isinstance(message, ReplicaWrite):
            self.views.heard(host, node, message)
        if self.views is not None and isinstance(message, RowChunk):
            pull = self._streams.pulls.get(message.transfer)
            if pull is not None:
                self.views.staging.arrives(host, node, pull, message)
        if isinstance(message, ReplicaReply | ReplicaRows) and message.outcome is Outcome.done:
            self._replies.heard(sender, message)
        match message:
            case ReplicaReply(number, Outcome.done):
                answered = self._answered.get(number)
                if answered is not None and sender not in answered:
                    answered.add(sender)
                    self._take("writes", f"write{number}", node.name, "answer")
            case BarrierRequest():
                self._rounds[message.term, message.round] = message.version
            case Order():
                self._orders[node.name, message.term, message.number] = message
            case RowChunk(transfer, start, _, None, "") if transfer in self._streams.pulls:
                pull = self._streams.pulls[transfer]
                if pull.start == start:
                    found = self._fetched.setdefault((life_of(host), pull.session), set())
                    found |= {(pull.table, sender, r) for r in pull.ranges}
            case _:
                pass

    def learned(self, host: Host, node: DatabaseNode, *, restored: bool) -> None:
        """A node has learned something, maybe a snapshot: a session may have been opened, or closed."""
        self._replicas.learned(host, node, restored=restored)
        life, now = life_of(host), node.context.view.sessions
        before = self._sessions.get(life, frozenset[str]())
        if now != before:
            self._sessions[life] = now
            for sessions, what in ((before - now, "close"), (now - before, "open")):
                for one in sorted(sessions):
                    self._take("sessions", f"{one}@{life}", node.name, what)

    # -- what nodes do ---------------------------------------------------------------------------------------

    def did(self, host: Host, node: DatabaseNode, effect: Effect, cause: Message | None) -> None:
        """An effect was carried out, of what the node did about a message if that is known."""
        if isinstance(cause, ReplicaReply):  # a write that waited for the row before it
            cause = self._waited.get((node.name, cause.number), cause)
        if node.context.ready and life_of(host) not in self._ready:
            self._ready.add(life_of(host))
            self._take("replicas", life_of(host), node.name, "allocate")
        if self.views is not None and node.context.view.views:
            self.views.did(host, node, effect, cause)
        if self.changes is not None:
            self.changes.did(node, effect, cause)
        if self.refusals is not None:
            self.refusals.did(node, effect, cause)
        self._versions_of_rows.did(host, node, effect)
        match effect:
            case Send(to, message):
                self._sent(host, node, to, message, cause)
            case Store(batch) if isinstance(cause, ReplicaWrite):
                self._stored[node.name, cause.number] = len(host.disk.log)
                self._replicas.serves(host, node, "write", cause)
            case Store(batch) if isinstance(cause, RowChunk) and batch:
                if self.views is not None:
                    self.views.staging.stored(host, node, batch)
                pull = self._streams.pulls.get(cause.transfer)
                if pull is not None:
                    self._streams.stored(host, node, pull)
                    self._replicas.streamed(host, node, pull.table, pull.ranges[0][0])
            case Drop(table, low, _) if table in node.context.view.tables and len(low) <= TOKEN:
                view = node.context.view
                chosen = view.replicas(table, token_in(low))
                owned = node.name in (*chosen.writes, *chosen.reads)
                self._take("lives", life_of(host), node.name, "drop_rows", owned=owned)
                self._replicas.dropped(host, node, table, low)
            case Drop(table) if node.context.view.is_dropped(table):
                self._replicas.dropped_table(host, node, table)
            case Truncate(table):
                self._replicas.truncated(host, node, table)
            case Drop(table, low, _) if table in node.context.view.logs.values():
                self._replicas.expired(host, node, table, low)
            case _:
                pass

    def _sent(
        self, host: Host, node: DatabaseNode, to: str, message: Message, cause: Message | None
    ) -> None:
        self._replies.sent(host, node, message, cause)
        match message:
            case ReplicaWrite() if isinstance(cause, ClientWrite) and message.table == cause.table:
                self._began(node, message, cause)
            case ReplicaRead() | ReplicaScan():
                if isinstance(cause, ClientWrite):
                    self._waited[node.name, message.number] = cause
                self._replicas.asked(host, node, to, message)
            case ReplicaReply() | ReplicaRows():
                self._answers(host, node, message, cause)
            case ClientReply(number, succeeded):
                request = self._writes.pop((node.name, number), None)
                if request is not None:
                    if succeeded and (stay := self._fewer.pop(request, ())):
                        stored = len(self._answered[request] & {*stay})
                        enough = stored >= len(stay) // 2 + 1
                        told = "acknowledge_while_fewer_stay"
                        self._take("lives", life_of(host), node.name, told, stays=enough)
                    what = "acknowledge" if succeeded else "fail"
                    self._take("writes", f"write{request}", node.name, what)
            case BarrierAck():
                self._acknowledges(node, message)
            case PullRows():
                self._streams.asks(host, node, to, message)
            case RowChunk():
                self._streams.gives(host, node, message)
            case Order():
                self._given.given(life_of(host), to, message)
            case OrderDone(term, number, True):
                self._given.answered(node.name, message)
                order = self._orders.get((node.name, term, number))
                if order is not None:
                    self._ended(host, node, order)
            case _:
                pass

    def _ended(self, host: Host, node: DatabaseNode, order: Order) -> None:
        """What it was ordered is done."""
        life = life_of(host)
        durable = self._streams.is_durable(host, order.session)
        match order.work:
            case Work.stream_tablet | Work.repair_tablet:
                if self.views is not None:
                    self.views.staging.ended(host, node, order)
                if order.work is Work.repair_tablet:
                    self._has_repaired(node, order)
                complete, told = self._has_fetched(host, node, order), "end_streaming"
                self._take("lives", life, node.name, told, complete=complete, durable=durable)
            case Work.stream:
                complete, told = self._has_fetched(host, node, order), "end_streaming"
                self._take("lives", life, node.name, told, complete=complete, durable=durable)
            case Work.clean_tablet:
                self._replicas.cleaned(host, node, order)
            case Work.prepare_split:
                self._resizes.is_ready(node, order)
            case _:
                pass

    def _has_repaired(self, node: DatabaseNode, order: Order) -> None:
        """A replica says that it has what the others had."""
        repaired = self._repaired.setdefault(order.session, set())
        row = node.context.view.tablet(order.table, order.tablet)
        if row is not None and row.session == order.session and node.name not in repaired:
            repaired.add(node.name)
            self._start_repair(row)
            self._take("repairs", row.session, node.name, "repair")

    def _start_repair(self, row: TabletRow) -> None:
        replicas = len({*row.tablet.hosts(Replicas.previous)})
        self.recording.start("repairs", row.session, "", replicas=replicas)

    def _began(self, node: DatabaseNode, message: ReplicaWrite, cause: ClientWrite) -> None:
        entity, view = f"write{message.number}", node.context.view
        if message.number not in self._answered:
            self._answered[message.number] = set()
            self._writes[node.name, cause.number] = message.number
            chosen = view.replicas(message.table, token_in(message.cell[0]))
            if chosen.fewer:
                self._fewer[message.number] = chosen.fewer
            self.recording.start(
                "writes",
                entity,
                node.name,
                stage=self._stage(view, message),
                staying=len(chosen.writes) - len(chosen.pending),
                leaving=0,
                pending=len(chosen.pending),
                given_up=0,
                quorum=True,
            )
        self._take("writes", entity, node.name, "send")

    @staticmethod
    def _stage(view: View, message: ReplicaWrite) -> Stage:
        """The stage of a tablet, or what the topology's state is to a row like."""
        tablets = view.tablets.get(message.table)
        if tablets is None:
            return _STAGE[view.transition_state.writes]
        token = token_in(message.cell[0])
        return next(t.tablet.stage for t in tablets if token <= t.range[1])

    def _answers(
        self, host: Host, node: DatabaseNode, reply: ReplicaReply | ReplicaRows, cause: Message | None
    ) -> None:  # fmt: skip
        if isinstance(cause, ReplicaRead | ReplicaScan):
            what = "read" if reply.outcome is Outcome.done else "refuse"
            self._replicas.serves(host, node, what, cause)
        elif reply.outcome is not Outcome.done and isinstance(cause, ReplicaWrite):
            self._replicas.serves(host, node, "refuse", cause)
        elif (place := self._stored.pop((node.name, reply.number), None)) is not None:
            durable = host.disk.synced >= place
            self._take("lives", life_of(host), node.name, "answer_write", durable=durable)

    def _acknowledges(self, node: DatabaseNode, ack: BarrierAck) -> None:
        version, view = self._rounds[ack.term, ack.round], node.context.view
        entity = f"version{version}@{node.name}"
        if ack.phase is Phase.fence:
            if view.fence_version >= version:
                self._take("barriers", entity, node.name, "learn_fence")
            self._knows[node.name] = max(version, self._knows.get(node.name, 0))
            self._take("barriers", entity, node.name, "answer_fence")
            return
        if view.version >= version:
            self._take("barriers", entity, node.name, "learn")
        if node.requests.drained(version) and node.scans.drained(version):
            self._take("barriers", entity, node.name, "drain")
        self._take("barriers", entity, node.name, "answer_drain")

    def _has_fetched(self, host: Host, node: DatabaseNode, order: Order) -> bool:
        """Whether rows came from whom they are to come from; if the session is over, what was streamed does not count."""
        view, name = node.context.view, node.name
        fetched = self._fetched.get((life_of(host), order.session), set())
        if order.work is Work.stream:
            return view.session != order.session or ranges_are_complete(view, name, fetched)
        row, absent = view.tablet(order.table, order.tablet), self._absent.get(order.session)
        if row is None or row.session != order.session or absent is None:
            return True
        return tablet_is_complete(view, row, order.work, name, fetched, absent)

    # -- what is committed -----------------------------------------------------------------------------------

    def committed(self, entry: Entry, before: View, after: View, hosts: dict[str, Host]) -> None:
        """An entry is committed, whose steps may rely on barriers."""
        if self.changes is not None:
            self.changes.sets.committed(entry, self.recording.now())
        steps = entry.command.steps
        actions = {step.action for step in steps}
        self._given.committed(entry, before, after)
        spared = self._spared.get(after.version, frozenset[str]())
        self._spared[after.version] = spared | before.given_up | after.given_up
        self._shards.committed(entry, before, after)
        self._versions_of_rows.committed(after, hosts)
        for name in [s.instance for s in steps if (s.machine, s.action) == PASSES]:
            self._passed(name, before, hosts)
        self._end_repairs(before, after)
        self._enter(after)
        if "wait_ring_delay" in actions:
            self._waived = after.version
        if "pass_barrier" in actions:
            self._passed_at, self._waived = self.recording.now(), 0
            self._resizes.passed_barrier()
        self._resizes.committed(before, after)
        state = before.transition_state
        if not (actions & RELIES) or not state.barrier or self._waived == before.version:
            return
        for name in before.participants:
            host = hosts[name]
            if host.node is not None and host.started_at < self._passed_at:
                entity = f"version{before.version}@{name}"
                self._take("barriers", entity, "", "end")

    def _end_repairs(self, before: View, after: View) -> None:
        """Repairs are taken for done: of tablets at rest, or before one of them is the source of another replica."""
        moved = {row.name for row in before.moving}
        for row in after.moving:
            if row.name not in moved:
                self._begin_to_go(row, before)
        for row in before.moving:
            now = after.tablet(row.table, row.number)
            reads = now is not None and now.tablet.stage is Stage.write_both_read_new
            streamed = reads and row.tablet.stage is Stage.streaming
            if streamed and row.name in self._going and row.session:
                self._start_repair(row)
                self._take("repairs", row.session, "", "let_go")
            if now is None or row.tablet.stage.action is not Run.repair or now.range != row.range:
                continue
            rebuilds = now.tablet.stage is Stage.streaming
            if not rebuilds and (not row.repair or row.repair == now.repair):
                continue
            self._start_repair(row)
            hosts = {*row.tablet.hosts(Replicas.previous)}
            absent = self._absent.get(row.session, frozenset()) | before.given_up
            for name in sorted((hosts & absent) - self._repaired.get(row.session, set())):
                self._take("repairs", row.session, name, "give_up")
            self._take("repairs", row.session, "", "end")

    def _begin_to_go(self, row: TabletRow, view: View) -> None:
        """A transition begins: maybe a replica is to go for good, while more than one lives that could lack rows."""
        goes = row.hosts[Role.leaving] and not row.hosts[Role.pending]
        living = {*row.tablet.hosts(Replicas.previous)} - view.given_up
        self._going.discard(row.name)
        if goes and len(living) > 1:
            self._going.add(row.name)

    def _enter(self, after: View) -> None:
        """Note since which version each stage of a tablet lasts, since when each version is there, and who was absent."""
        self._versions.setdefault(after.version, self.recording.now())
        self._absent = {
            row.session: self._absent.get(row.session, frozenset()) | after.given_up
            for row in after.moving
            if row.session
        }
        stages = {row.name: row.tablet.stage for row in after.moving}
        before = self._entered
        self._entered = {
            name: (stage, after.version)
            if before.get(name, (None, 0))[0] is not stage
            else before[name]
            for name, stage in stages.items()
        }

    def _passed(self, tablet: str, before: View, hosts: dict[str, Host]) -> None:
        """The barrier of a tablet's stage is taken for passed: by whom it was acknowledged, each by each."""
        entered = self._entered[tablet][1]
        since = min(t for version, t in self._versions.items() if version >= entered)
        for name in sorted(set(before.participants) - before.given_up):
            host = hosts[name]
            if host.node is None or host.started_at >= since:
                continue  # it learns the version before it asks or answers anything
            known = self._knows.get(name, 0)
            if known >= entered and name in self._spared.get(known, ()):
                continue  # what it had not drained is refused
            version = max(entered, known)
            self._take("barriers", f"version{version}@{name}", "", "end")
