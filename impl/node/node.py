"""One life of a node, sans I/O: what arrives goes to the part that it concerns."""

from __future__ import annotations

from collections import Counter

from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Commit, Leadership, Learned, Outcome, Snapshot, StateId
from stagewright.impl.node.barriers import Drains
from stagewright.impl.node.clients.requests import Requests
from stagewright.impl.node.clients.scans import Scans
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.load import Counts
from stagewright.impl.node.membership import Membership
from stagewright.impl.node.messages import (
    Banned,
    BarrierAck,
    BarrierRequest,
    ClientRead,
    ClientScan,
    ClientWrite,
    CreateTable,
    GenerationsRequest,
    Joined,
    JoinReply,
    JoinRequest,
    JoinResponse,
    Message,
    NameRequest,
    OperatorRequest,
    Order,
    OrderDone,
    PullRows,
    ReplicaRead,
    ReplicaReply,
    ReplicaRows,
    ReplicaScan,
    ReplicaWrite,
    RowChunk,
    Settled,
    StatusRequest,
    TabletsRequest,
    Work,
)
from stagewright.impl.node.messages.tables import (
    AlterTable,
    CreateView,
    DropTable,
    DropView,
    MoveTablet,
    RepairTable,
    Resize,
    ResizeTable,
    SetBalancing,
    TruncateTable,
    ViewsRequest,
    WorkedOnTasks,
    WorkOnTasks,
)
from stagewright.impl.node.port import (
    Campaign,
    Compact,
    Effect,
    Identity,
    Keep,
    Reason,
    Resign,
    Send,
    Stop,
    Surroundings,
    Timing,
    Wake,
)
from stagewright.impl.node.replica import Replica
from stagewright.impl.node.streams import Streams
from stagewright.impl.node.tablet_streams import TabletStreams
from stagewright.impl.storage.port import RowStore
from stagewright.impl.tablets.reports import MoveHistory
from stagewright.impl.tablets.requests import plan_of
from stagewright.impl.topology.coordinator import TopologyCoordinator
from stagewright.impl.topology.release import Release, release
from stagewright.impl.topology.rules import RULES
from stagewright.impl.views.node_views import NodeViews
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState


class DatabaseNode:
    """One node, from a start to a crash: an `impl.node.port.SansIoNode`."""

    def __init__(
        self,
        identity: Identity,
        rows: RowStore,
        around: Surroundings,
        timing: Timing | None = None,
        running: Release | None = None,
        defects: frozenset[Defect] = frozenset(),
        *,
        refuses: bool = True,
    ) -> None:
        """`refuses`: as `Context` says."""
        timing, running = timing or Timing(), running or release()
        self.context = Context(identity, running, rows, timing, around, defects, refuses=refuses)
        self.requests = Requests(self.context)
        self.scans = Scans(self.context)
        self.views = NodeViews(self.context)
        self.replica = Replica(self.context, self.views)
        self.streams = Streams(self.context, self.replica)
        self.tablet_streams = TabletStreams(self.context, self.replica)
        self.drains = Drains(self.context, self.requests, self.scans)
        self.membership = Membership(self.context, self._serve)
        self.coordinator: TopologyCoordinator | None = None
        self._compacted = 0
        self._counts = Counts()
        self._moves = MoveHistory()

    @property
    def name(self) -> str:
        """The node's name."""
        return self.context.name

    def start(self) -> list[Effect]:
        """Begin: learn what is committed, or ask to join."""
        return self.membership.start()

    def versions_in_use(self) -> Counter[int]:
        """How many requests of clients go on that began under each version of the topology."""
        return Counter((*self.requests.versions, *self.scans.versions))

    # -- messages --------------------------------------------------------------------------------------

    def handle(self, sender: str, message: Message) -> list[Effect]:
        """What a message causes."""
        self._counts.arrived(message)
        effects = self._handle(sender, message)
        self._counts.sent(effects)
        return effects

    def _handle(self, sender: str, message: Message) -> list[Effect]:
        if self._is_banned(sender) and not isinstance(message, JoinRequest):  # it hears why
            return [] if isinstance(message, Banned | JoinReply) else [Send(sender, Banned())]
        match message:
            case ReplicaWrite() | ReplicaRead() | ReplicaScan():
                return self.replica.serve(sender, message)
            case ReplicaReply() if self.views.outbox.owns(message.number):
                return self.views.outbox.reply(sender, message)
            case ReplicaReply() if self.views.handing.owns(message.number):
                return self.views.handing.reply(sender, message)
            case ReplicaReply():
                return [*self.requests.reply(sender, message), *self.drains.look()]
            case ClientWrite() | ClientRead():
                return self.requests.begin(sender, message)
            case ClientScan():
                return self.scans.begin(sender, message)
            case ReplicaRows():
                return [*self.scans.reply(sender, message), *self.drains.look()]
            case RowChunk():
                received = self.tablet_streams.received(message)
                return self.streams.received(message) if received is None else received
            case PullRows():
                return self._give(sender, message)
            case Settled():
                return self.replica.superseding.heard(sender, message)
            case _:
                return self._control(sender, message)

    def _control(self, sender: str, message: Message) -> list[Effect]:
        """What is about the cluster, not about rows."""
        match message:
            case BarrierRequest():
                return self.drains.begin(sender, message)
            case Order():
                return self.context.read_barrier(lambda _: self._obey(sender, message))
            case BarrierAck() | OrderDone() | Joined():
                coordinator = self.coordinator
                return [] if coordinator is None else coordinator.handle(sender, message)
            case JoinRequest():
                return self.membership.let_in(sender, message)
            case JoinReply():
                return self.membership.replied(message)
            case JoinResponse():
                return self.membership.respond(sender, message)
            case OperatorRequest():
                return self.membership.operate(sender, message)
            case CreateTable():
                return self.membership.create(sender, message)
            case (
                RepairTable()
                | AlterTable()
                | ResizeTable()
                | MoveTablet()
                | SetBalancing()
                | DropTable()
                | TruncateTable()
            ):
                plan = plan_of(self.context, message)
                return self.context.answered(sender, message.number, plan)
            case CreateView() | DropView() | ViewsRequest() | WorkOnTasks() | WorkedOnTasks():
                return self.views.handle(sender, message)
            case NameRequest() | GenerationsRequest():
                return self.membership.answer(sender, message)
            case StatusRequest(number):
                waiting = self.requests.waiting + self.scans.waiting
                load = self._counts.load(waiting)
                return [Send(sender, self.membership.status(number, self._leader(), load))]
            case TabletsRequest(number):
                # With all that is committed: who has asked for a change sees it.
                return self.context.read_barrier(lambda _: self._tablets(sender, number))
            case Banned():
                return self.context.read_barrier(lambda _: self._leave())
            case _:
                return []  # an answer that only clients get

    def _tablets(self, client: str, number: int) -> list[Effect]:
        return [Send(client, self._moves.report(number, self.context.view))]

    def _is_banned(self, sender: str) -> bool:
        known = self.context.view.nodes.get(sender)
        return known is not None and known.state is NodeState.left

    def _give(self, sender: str, pull: PullRows) -> list[Effect]:
        """Stream, after this node has learned what the other knows: also the fence."""
        lags = self.context.member.head.position < pull.position
        if not lags or self.context.has(Defect.sources_lag_behind):
            return self.streams.give(sender, pull)
        return self.context.read_barrier(lambda _: self.streams.give(sender, pull))

    def _obey(self, coordinator: str, order: Order) -> list[Effect]:
        view = self.context.view
        done = Send(coordinator, OrderDone(order.term, order.number, True))
        match order.work:
            case Work.stream:
                return self.streams.begin(coordinator, order)
            case Work.clean:
                if view.transition_state is not TransitionState.null:
                    late = OrderDone(order.term, order.number, False, "the topology is busy")
                    return [Send(coordinator, late)]
                return self.replica.clean(done)
            case Work.stream_tablet | Work.repair_tablet:
                return self.tablet_streams.begin(coordinator, order)
            case Work.clean_tablet:
                return self.tablet_streams.clean(coordinator, order)
            case Work.prepare_split:  # rows are stored by token: to have learned of it is enough
                if view.resizes.get(order.table) == Resize.split.value:
                    return [done]
                why = f"{order.table} is not to be split"
                return [Send(coordinator, OrderDone(order.term, order.number, False, why))]
            case Work.truncate:
                if order.session != view.session:
                    why = "its session is not open"
                    return [Send(coordinator, OrderDone(order.term, order.number, False, why))]
                return [*self.replica.truncate_tables(), *self.replica.store((), done)]
            case Work.shut_down:
                own = view.nodes[self.name]
                ended = own.request is not None and own.request["done"]
                leaves = view.transition_state is TransitionState.left_token_ring
                if not (ended and leaves and own.state.in_transition):
                    return []
                return [done, Stop("the topology coordinator has shut it down")]

    def _leave(self) -> list[Effect]:
        own = self.context.view.nodes.get(self.name)
        gone = own is not None and own.state is NodeState.left
        return [Stop("it has left the cluster")] if gone else []

    # -- time, the disk, group0 ----------------------------------------------------------------------------

    def wake(self, reason: Reason) -> list[Effect]:
        """What the passing of time causes."""
        effects = self._wake(reason)
        self._counts.sent(effects)
        return effects

    def _wake(self, reason: Reason) -> list[Effect]:
        match reason:
            case ("request", int(number)):
                return [*self.requests.give_up(number), *self.drains.look()]
            case ("scan", int(number)):
                return [*self.scans.give_up(number), *self.drains.look()]
            case ("group0", int(number)):
                return self.context.group0(self.context.member.wake(number))
            case ("transfer", int(number), str(start), int(attempts)):
                return self.streams.again(number, start, attempts)
            case ("tablet transfer", int(number), str(start), int(attempts)):
                return self.tablet_streams.again(number, start, attempts)
            case ("campaign",):
                return self._campaign()
            case ("views" | "view building", *_):
                return self.views.wake(reason)
            case ("coordinator", *_):
                return [] if self.coordinator is None else self.coordinator.wake(reason)
            case ("superseding", str(what)):
                return self.replica.superseding.wake(what)
            case ("expire",):
                return self.replica.expire(woken=True)
            case ("join",):
                return self.membership.again()
            case ("catch up",):
                return self.membership.catch_up()
            case _:
                raise AssertionError(f"{self.name} is not woken for {reason}")

    def stored(self, number: int) -> list[Effect]:
        """A batch is on the disk."""
        return self.replica.stored(number)

    def learned(self, item: Learned) -> list[Effect]:
        """The next entry of group0, or a snapshot."""
        before = self.context.view
        effects = self.context.group0(self.context.member.learned(item))
        effects += self._drop_lost(before, all_of_it=isinstance(item, Snapshot))
        self.replica.superseding.learned(before, all_of_it=isinstance(item, Snapshot))
        self._moves.learned(item)
        effects += self.streams.learned()
        self.tablet_streams.end_closed()
        effects += self.views.learned()
        if (kept := self.context.view.kept) and kept != before.kept:
            effects += self.replica.expire()
        if self.context.ready and self.context.view.dropped != before.dropped:
            effects += self.replica.drop_tables()
        if self.context.ready:
            effects += self._leave()
        if self.coordinator is not None:
            effects += self.coordinator.learned()
        return effects

    def _drop_lost(self, before: View, *, all_of_it: bool) -> list[Effect]:
        """A node that is given up, and lives, is asked to clean nothing up: it does so when it learns that.

        A snapshot may go past that: it says what is left, not what became of the rest.
        """
        now = self.context.view
        if all_of_it and self.context.ready:
            return self.replica.drop_lost(row for rows in now.tablets.values() for row in rows)
        if self.name not in before.given_up:
            return []
        moved = (now.tablet(row.table, row.number) for row in before.moving)
        return self.replica.drop_lost(row for row in moved if row is not None)

    def answered(self, request: Commit, outcome: Outcome) -> list[Effect]:
        """What became of a commit."""
        return self.context.group0(self.context.member.answered(request, outcome))

    def head_is(self, number: int, head: StateId | None) -> list[Effect]:
        """The head of group0."""
        return self.context.group0(self.context.member.head_is(number, head))

    def seen(self, peer: str, up: bool) -> list[Effect]:
        """The failure detector has changed its mind."""
        if up and self.context.has(Defect.who_was_down_stays_down):
            return []
        down = self.context.down
        self.context.down = down - {peer} if up else down | {peer}
        effects = self.views.seen()
        return effects if self.coordinator is None else [*effects, *self.coordinator.seen()]

    # -- the topology coordinator ----------------------------------------------------------------------------

    def _serve(self) -> list[Effect]:
        """The node is ready: it takes part in elections, once its failure detector knows the cluster."""
        tablets = (row for rows in self.context.view.tablets.values() for row in rows)
        # What views have to be sent is known before that of lost tablets is forgotten.
        if self.context.has(Defect.hints_of_lost_tablets_are_loaded):
            effects = [*self.replica.drop_lost(tablets), *self.views.learned()]
        else:
            effects = [*self.views.learned(), *self.replica.drop_lost(tablets)]
        effects += self.replica.drop_tables(started=True)
        effects += self.replica.truncate_tables()
        effects += self._leave()
        if self.context.member.head.position <= 1:  # there is nobody else yet
            return [*effects, *self._campaign()]
        return [*effects, Wake(self.context.timing.lease, ("campaign",))]

    def _leader(self) -> str:
        return self.name if self.coordinator is not None else ""

    def _campaign(self) -> list[Effect]:
        """Keep leading, or try to lead, as a node of the ring that stays."""
        timing = self.context.timing
        wake = Wake(timing.lease // 3, ("campaign",))
        if self.coordinator is not None:
            return [*self._compact(), Keep(self.coordinator.leadership), wake]
        own = self.context.view.nodes.get(self.name)
        stays = own is not None and own.state is NodeState.normal
        return [Campaign(timing.lease), wake] if stays else [wake]

    def campaigned(self, leadership: Leadership | None) -> list[Effect]:
        """This node leads now, or another one."""
        if leadership is None or self.coordinator is not None:
            return []
        self.coordinator = TopologyCoordinator(self.context, leadership, self._resigned, RULES)
        return [*self.coordinator.start(), *self.views.lead(leadership)]

    def kept(self, leadership: Leadership, kept: bool) -> list[Effect]:
        """It leads still, or another one."""
        return [] if kept else self._deposed(leadership)

    def _resigned(self, leadership: Leadership) -> list[Effect]:
        """The coordinator can, or should, go on no longer: all that it knew is lost."""
        return [*self._deposed(leadership), Resign(leadership)]

    def _deposed(self, leadership: Leadership) -> list[Effect]:
        if self.coordinator is not None and self.coordinator.leadership == leadership:
            self.coordinator = None
            self.views.depose()
        return []

    def _compact(self) -> list[Effect]:
        member = self.context.member
        if member.head.position - self._compacted < self.context.timing.compact_after:
            return []
        self._compacted = member.head.position
        content = self.context.catalog.content()
        return [Compact(Snapshot(member.head, member.term, content))]
