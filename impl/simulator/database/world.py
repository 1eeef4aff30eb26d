"""The cluster in its simulated world: hosts that carry out what nodes want, the network between them, group0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec

from stagewright.impl.group0 import (
    Commit,
    Leadership,
    Learned,
    Outcome,
    Snapshot,
    StateId,
    Unknown,
)
from stagewright.impl.group0.dice import Dice
from stagewright.impl.group0.member import AskHead, SendCommit
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import (
    BarrierAck,
    BarrierRequest,
    ClientRead,
    ClientReply,
    ClientWrite,
    Message,
    Order,
    OrderDone,
    PullRows,
    ReplicaRead,
    ReplicaReply,
    ReplicaWrite,
    RowChunk,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import (
    Campaign,
    Compact,
    Drop,
    Effect,
    Identity,
    Keep,
    Learn,
    Reason,
    Resign,
    Send,
    Stop,
    Store,
    Supersede,
    Surroundings,
    Timing,
    Truncate,
    Wake,
)
from stagewright.impl.node.removals import remove
from stagewright.impl.server_log import ServerLog
from stagewright.impl.simulator.database.checks.watcher import Watcher
from stagewright.impl.simulator.database.events import Events
from stagewright.impl.simulator.database.hosts import EPOCH, Host
from stagewright.impl.simulator.database.log import HeardLog
from stagewright.impl.simulator.database.story import Story
from stagewright.impl.simulator.database.weather import AIMED_SHARE, NONE, Faults
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.topology.release import Release, release

LATENCY = (1, 3)
LATE = (20, 260)
SYNC = 1  # until a disk has synced
NOTICED = (30, 120)  # until the failure detector of a peer notices
TAIL = 10  # entries that group0 keeps beside a snapshot
REFUSED_AFTER = (200, 2_000)  # until who is cut off from group0 takes its leadership for lost
HELD = 0.5  # share of the messages to and from who is cut off that arrive when it is back
OF_ROWS = (ClientWrite, ClientRead, ClientReply, ReplicaWrite, ReplicaRead, ReplicaReply)


P = ParamSpec("P")


def _when_awake(
    do: Callable[Concatenate[World, Host, P], None],
) -> Callable[Concatenate[World, Host, P], None]:
    """What a host whose process is suspended does once that goes on, in the order in which it came."""

    @wraps(do)
    def later(world: World, host: Host, /, *arguments: P.args, **named: P.kwargs) -> None:
        waiting = world.suspended.get(host.identity.name)
        if waiting is None:
            do(world, host, *arguments, **named)
        else:
            waiting.append(partial(later, world, host, *arguments, **named))

    return later


class World:
    """Everything that acts in a run, except clients and operators."""

    def __init__(
        self,
        seed: int,
        faults: Faults = NONE,
        timing: Timing | None = None,
        defects: frozenset[Defect] = frozenset(),
        running: Release | None = None,
        *,
        refuses: bool = False,
    ) -> None:
        self._release = running or release()
        self.events = Events()
        self.dice = Dice(seed)
        self._seed = seed
        self.faults = faults
        self.timing = timing or Timing()
        self.defects = defects
        self.refuses = refuses
        self.log = HeardLog(
            self.events,
            Dice(seed),
            faults.weather,
            epoch=EPOCH,
            careless=Defect.compare_and_set_is_ignored in defects,
        )
        self.hosts: dict[str, Host] = {}
        self.counted: Counter[str] = Counter()
        self.met: Counter[tuple[str, str]] = Counter()  # states with faults in them
        self.states: set[str] = {""}  # of the topology and of tablets that move, as group0 has them
        self.aimed: frozenset[str] = frozenset()  # at these states
        self.story = Story()
        self.muted: dict[str, int] = {}  # nodes whose answers to barriers are lost, until when
        self._links: dict[tuple[str, str, type], str] = {}  # their names
        self.watcher: Watcher | None = None
        self.logs: dict[str, list[str]] | None = None  # the lines of each node's log, if kept
        # cut off from group0 and the coordinator; clients reach them
        self.isolated: set[str] = set()
        # cut off from group0 and all other nodes, and to come back as they are
        self.parted: set[str] = set()
        self.held: list[tuple[str, str, Message]] = []  # until these are back
        self.suspended: dict[str, list[Callable[[], None]]] = {}  # with what they are to do
        self.changed: dict[
            tuple[str, str], int
        ] = {}  # when a node has last had to notice of another
        self.clients: Callable[[str, Message], None] = lambda _to, _message: None

    # -- nodes -----------------------------------------------------------------------------------------

    def add(self, identity: Identity) -> None:
        """A new machine, whose node starts."""
        disk = ModelledDisk()
        host = Host(identity, disk, MemoryRows(disk))
        if self.logs is not None:
            host.log = ServerLog(self.logs.setdefault(identity.name, []).append)
        self.hosts[identity.name] = host
        self.start(identity.name)

    def start(self, name: str) -> None:
        """A node starts with what is on its disk."""
        host = self.hosts[name]
        if host.node is not None or host.stopped:
            return
        host.life += 1
        host.started_at = self.events.now
        self.story.add(self.events.now, f"{name} starts")
        host.rows = MemoryRows(host.disk)
        life = host.life
        around = Surroundings(
            now=lambda: (EPOCH + self.events.now + self._skew(name)) * 1000,
            dice=lambda: self.dice.throw("node", f"{name}/{life}"),
        )
        settings = self.timing, self._release, self.defects
        node = DatabaseNode(host.identity, host.rows, around, *settings, refuses=self.refuses)
        host.node = node
        if host.log is not None:
            host.log.starts(node)
        if self.watcher is not None:
            self.watcher.begins(host, node)
        self._do(host, node.start())
        for peer in self.hosts.values():
            if peer is not host:
                self._notice(peer.identity.name, name)
                if peer.node is None:
                    self._notice(name, peer.identity.name)

    def _skew(self, name: str) -> int:
        """How far the clock of a node is off: as long as the run lasts, and that of others less or more."""
        most = int(self.faults.skew)
        return Dice(self._seed).between(-most, most, "skew", name) if most else 0

    def meet(self, fault: str) -> None:
        """A fault happens, in the state in which the topology is, and in the stages of tablets."""
        for state in self.states:
            self.met[state, fault] += 1

    def crash(self, name: str) -> None:
        """A machine fails; of what was not synced some may be on the disk."""
        host = self.hosts[name]
        if host.node is None:
            return
        self.counted["crashes"] += 1
        self.story.add(self.events.now, f"{name} crashes")
        self.meet("node crashes" if host.node.coordinator is None else "coordinator crashes")
        unsynced = len(host.disk.log) - host.disk.synced
        kept = self.dice.between(0, unsynced, "kept", name)
        if kept < unsynced:
            self.meet("unsynced rows lost")
        host.disk.crash(kept)
        self._end(host)

    def _end(self, host: Host) -> None:
        if self.watcher is not None:
            self.watcher.ends(host)
        host.unsubscribe()
        host.unsubscribe = lambda: None
        host.node, host.fuse, host.syncing, host.learns = None, None, [], False
        self.suspended.pop(host.identity.name, None)
        host.life += 1
        for peer in self.hosts:
            if peer != host.identity.name:
                self._notice(peer, host.identity.name)

    def _notice(self, by: str, about: str) -> None:
        """A failure detector notices after a while how it is with a peer then."""
        self.changed[by, about] = self.events.now
        wait = self.dice.between(*NOTICED, "notice", f"{by}/{about}")
        self.events.after(wait, self._noticed, self.hosts[by], about)

    @_when_awake
    def _noticed(self, host: Host, about: str) -> None:
        if host.node is not None:
            self._do(host, host.node.seen(about, self.reaches(host.identity.name, about)))

    def reaches(self, by: str, about: str) -> bool:
        """Whether a node is there for another one, as a failure detector sees it."""
        cut = {by, about} & (self.isolated | self.parted)
        return self.hosts[about].node is not None and about not in self.suspended and not cut

    def noticed_by_all(self, name: str) -> None:
        """Every other node notices after a while how it is with one, and it how it is with them."""
        for peer in self.hosts:
            if peer != name:
                self._notice(peer, name)
                self._notice(name, peer)

    def isolate(self, name: str) -> None:
        """Cut a node off from group0 and the coordinator; clients and replicas still reach it."""
        self.isolated.add(name)
        host = self.hosts[name]
        host.unsubscribe()
        host.unsubscribe = lambda: None
        for peer in self.hosts:
            if peer != name:
                self._notice(peer, name)

    @property
    def absent(self) -> set[str]:
        """Who runs, and is not reached by others for a while."""
        return self.parted | self.suspended.keys()

    def up(self) -> list[str]:
        """The nodes that run."""
        return [name for name, host in self.hosts.items() if host.node is not None]

    # -- effects ---------------------------------------------------------------------------------------

    def _do(self, host: Host, effects: list[Effect]) -> None:
        life = host.life
        for effect in effects:
            if host.life != life:
                return
            if host.fuse is not None:
                host.fuse -= 1
                if host.fuse < 0:
                    self.crash(host.identity.name)
                    return
            node, watcher = host.node, self.watcher
            if host.log is not None:
                host.log.did(effect)
            self._carry_out(host, effect)
            if watcher is not None and node is not None and host.life == life:
                watcher.did(host, node, effect, host.cause)

    def _carry_out(self, host: Host, effect: Effect) -> None:
        name, after, life = host.identity.name, self.events.after, host.life
        match effect:
            case Send(to, message):
                self.send(name, to, message)
            case Store(batch, number):
                host.rows.write(batch)
                if number:
                    if not host.syncing:
                        after(SYNC, self._sync, host, life)
                    host.syncing.append(number)
            case Wake(milliseconds, reason):
                after(milliseconds, self._wake, host, life, reason)
            case Drop() | Supersede() | Truncate():
                remove(host.rows, effect)
            case Stop(reason):
                host.stopped = reason
                self._end(host)
            case Keep(leadership):
                after(1, self._keep, host, life, leadership)
            case _ if name in self.parted:
                self._ask_in_vain(host, effect)
            case _ if name not in self.isolated:
                self._ask_group0(host, effect)
            case _:
                pass  # group0 does not answer

    def _ask_group0(self, host: Host, effect: Effect) -> None:
        name, after, life = host.identity.name, self.events.after, host.life
        match effect:
            case SendCommit(request):
                self.log.commit(
                    name, request, lambda outcome: self._answered(host, life, request, outcome)
                )
            case AskHead(number, for_client):
                answer = partial(self._head_is, host, life, number)
                self.log.ask_head(name, answer, for_client)
            case Learn(position):
                self.learn(host, position)
            case Campaign(milliseconds):
                after(1, self._campaign, host, life, milliseconds)
            case Resign(leadership):
                self.log.resign(leadership)
            case Compact(snapshot):
                self.counted["snapshots"] += 1
                self.log.compact(snapshot, TAIL)
            case _:
                raise AssertionError(f"{name} wants {effect}")

    def learn(self, host: Host, position: int) -> None:
        """A node learns from now on what is committed after a position."""
        name, life = host.identity.name, host.life
        host.learns = True
        host.unsubscribe = self.log.subscribe(
            name, position, lambda item: self._learned(host, life, item)
        )

    def _ask_in_vain(self, host: Host, effect: Effect) -> None:
        """Group0 does not answer who is cut off."""
        after, life, patience = self.events.after, host.life, self.log.weather.patience
        match effect:
            case SendCommit(request):
                after(patience, self._answered, host, life, request, Unknown("no answer"))
            case AskHead(number):
                after(patience, self._head_is, host, life, number, None)
            case Learn():
                host.learns = True
            case _:
                pass

    @_when_awake
    def _sync(self, host: Host, life: int) -> None:
        if host.life == life and host.node is not None:
            host.rows.sync()
            numbers, host.syncing = host.syncing, []
            for number in numbers:
                if host.life == life:
                    self._do(host, host.node.stored(number))

    @_when_awake
    def _wake(self, host: Host, life: int, reason: Reason) -> None:
        if host.life == life and host.node is not None:
            self._do(host, host.node.wake(reason))

    @_when_awake
    def _answered(self, host: Host, life: int, request: Commit, outcome: Outcome) -> None:
        if host.life == life and host.node is not None:
            if isinstance(outcome, Unknown):
                self.meet("commit unknown")
            if host.log is not None:
                host.log.answered(request, outcome)
            self._do(host, host.node.answered(request, outcome))

    @_when_awake
    def _head_is(self, host: Host, life: int, number: int, head: StateId | None) -> None:
        if host.life == life and host.node is not None:
            self._do(host, host.node.head_is(number, head))

    @_when_awake
    def _learned(self, host: Host, life: int, item: Learned) -> None:
        if host.life == life and host.node is not None:
            effects = host.node.learned(item)
            if self.watcher is not None:
                self.watcher.learned(host, host.node, restored=isinstance(item, Snapshot))
            if host.log is not None:
                host.log.learned()
            self._do(host, effects)

    @_when_awake
    def _campaign(self, host: Host, life: int, milliseconds: int) -> None:
        if host.life == life and host.node is not None and self.log.answers:
            leadership = self.log.campaign(host.identity.name, milliseconds)
            if leadership is not None:
                self.counted["terms"] += 1
            self._do(host, host.node.campaigned(leadership))

    @_when_awake
    def _keep(self, host: Host, life: int, leadership: Leadership) -> None:
        if host.life == life and host.node is not None:
            if host.identity.name in self.parted:
                wait = self.dice.between(*REFUSED_AFTER, "refused", host.identity.name)
                self.events.after(wait, self._refused, host, life, leadership)
                return
            reached = self.log.answers and host.identity.name not in self.isolated
            kept = reached and self.log.keep(leadership)
            self._do(host, host.node.kept(leadership, kept))

    @_when_awake
    def _refused(self, host: Host, life: int, leadership: Leadership) -> None:
        if host.life == life and host.node is not None:
            self._do(host, host.node.kept(leadership, False))

    # -- messages --------------------------------------------------------------------------------------

    def send(self, sender: str, to: str, message: Message) -> None:
        """A message sets out."""
        self.counted["messages"] += 1
        if self.isolated and not isinstance(message, OF_ROWS) and {sender, to} & self.isolated:
            return
        if sender == to:
            self.events.after(0, self.arrive, self.hosts[to], sender, message)
            return
        if to not in self.hosts:
            self.events.after(1, self.clients, to, message)
            return
        kind = type(message)
        link = self._links.get((sender, to, kind))
        if link is None:
            link = self._links[sender, to, kind] = f"{sender}>{to}/{kind.__name__}"
        dice, faults = self.dice, self.faults
        if sender in self.hosts:
            if self.parted and {sender, to} & self.parted:
                if dice.chance(HELD, "held", link):
                    self.held.append((sender, to, message))
                return
            if kind is BarrierAck and self.events.now < self.muted.get(sender, 0):
                self.counted["lost"] += 1
                self.meet("barrier lost")
                return
            if isinstance(message, Order):
                self._break(sender, to, message)
            if (loss := self._share("loss", faults.loss)) and dice.chance(loss, "loss", link):
                self.counted["lost"] += 1
                self.meet(_lost(message))
                return
            again = self._share("duplicate", faults.duplicate)
            if again and dice.chance(again, "duplicate", link):
                self.counted["duplicated"] += 1
                self.meet("message repeated")
                self.events.after(
                    dice.between(*LATE, "again", link),
                    self.arrive,
                    self.hosts[to],
                    sender,
                    message,
                )
        wait = dice.between(*LATENCY, "latency", link)
        if (late := self._share("delay", faults.delay)) and dice.chance(late, "delay", link):
            self.counted["delayed"] += 1
            self.meet("message late")
            wait = dice.between(*LATE, "lateness", link)
        self.events.after(wait, self.arrive, self.hosts[to], sender, message)

    def _break(self, sender: str, to: str, order: Order) -> None:
        """The call by which a coordinator has work done may break: what it started may go on."""
        share = self._share("action", self.faults.action)
        if share and self.dice.chance(share, "action", f"{sender}>{to}"):
            self.counted["broken calls"] += 1
            self.meet("action fails")
            answer = OrderDone(order.term, order.number, False, "the call broke")
            wait = self.dice.between(*LATENCY, "breaks", f"{sender}>{to}")
            self.events.after(wait, self.arrive, self.hosts[sender], to, answer)

    def _share(self, kind: str, share: float) -> float:
        return max(share, AIMED_SHARE) if kind in self.aimed else share

    @_when_awake
    def arrive(self, host: Host, sender: str, message: Message) -> None:
        """A message is there."""
        if host.node is None:
            return
        if self.watcher is not None:
            self.watcher.heard(host, host.node, sender, message)
        if host.log is not None:
            host.log.heard(sender, message)
        host.cause = message
        self._do(host, host.node.handle(sender, message))
        host.cause = None


def _lost(message: Message) -> str:
    match message:
        case BarrierRequest() | BarrierAck():
            return "barrier lost"
        case PullRows() | RowChunk() | Order() | OrderDone():
            return "stream lost"
        case _:
            return "message lost"
