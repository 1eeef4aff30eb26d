"""Writes the log of one node: its host says what the node is sent, what it does about that, and what it learns.

It looks at the node from outside, as the lines of ScyllaDB's source would have it. Nothing of a definition
comes in: a node that is built wrongly leaves the lines of what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stagewright.impl.catalog.columns import REQUESTS
from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Commit, Conflict, Deposed, Outcome
from stagewright.impl.group0.member import SendCommit
from stagewright.impl.node.messages import (
    BarrierAck,
    BarrierRequest,
    JoinRequest,
    Message,
    Order,
    OrderDone,
    Phase,
    ReplicaReply,
    ReplicaWrite,
    Work,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Effect, Send
from stagewright.impl.server_log.lines import (
    BANNER,
    GROUP0,
    INIT,
    OWN,
    PROXY,
    SCHEMA,
    TOPOLOGY,
    Level,
    ids,
    line,
    qualified,
    schema_version,
    table_id,
)
from stagewright.impl.server_log.reasons import (
    FENCES,
    FOUND,
    action_of,
    beside,
    failed_barrier,
    reason_of,
)
from stagewright.impl.server_log.row_lines import RowLines
from stagewright.impl.server_log.tablet_lines import TabletLines
from stagewright.impl.server_log.task_lines import TaskLines
from stagewright.impl.server_log.view_lines import ViewLines
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState

_COMMANDS = {Phase.drain: "barrier_and_drain", Phase.fence: "barrier"}
_DRAIN = "raft_topology_cmd::barrier_and_drain version"
_WAITS = "waiting for stale token metadata versions to be released"
_FAILED = "global_token_metadata_barrier failed, error not every node has answered"
_ASKED = {
    "leave": "request decommission for: {n}",
    "remove": "request removenode for: {n}, new ignored nodes: {{}}, existing ignore nodes: {{}}",
    "rebuild": "request rebuild for: {n} source_dc=",
}


@dataclass
class _Attempt:
    """A commit of the coordinator that is on its way."""

    request: Commit
    reason: str


class _Life:
    """What was written of one life of the node, so that nothing is written twice."""

    def __init__(self) -> None:
        self.fence = 0
        self.view: View | None = None  # that it has looked at last for tables
        self.term: int | None = None  # that the node leads
        self.began = 0  # where in the log of group0 its leadership begins to count
        self.entered = TransitionState.null
        self.refused = ""  # by what the coordinator is held up
        self.asked: set[tuple[int, int]] = set()  # barriers that the node has begun, as coordinator
        self.called: dict[tuple[int, int], BarrierRequest] = {}  # barriers of which it has heard
        self.got: set[tuple[int, int]] = set()  # of these, those that it has begun
        self.streams: set[tuple[int, int]] = set()  # orders to stream of which it has heard
        self.ordered: set[tuple[int, int]] = set()  # orders that it has given
        self.sent: _Attempt | None = None
        self.writes: dict[tuple[str, int], int] = {}  # versions of those that are not answered


class ServerLog:
    """The log of one node, over all its lives."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._life = _Life()
        self._node: DatabaseNode | None = None
        self._rows: RowLines | None = None
        self._tablets: TabletLines | None = None
        self._tasks: TaskLines | None = None

    # -- what the host says --------------------------------------------------------------------------------

    def starts(self, node: DatabaseNode) -> None:
        """A life begins, before anything is asked of it."""
        self._node, self._life = node, _Life()
        node.views.listeners.append(ViewLines(self._say, lambda: node.context.view).log)
        self._write(BANNER)  # printed before there is a logger
        self._say(INIT, BANNER.removesuffix(" ..."))
        self._rows = RowLines(self._say, node)
        self._tablets = TabletLines(self._say, node)
        self._tasks = TaskLines(self._say, lambda: node.context.catalog)
        node.context.listeners.append(self._rows.log)

    def heard(self, sender: str, message: Message) -> None:
        """The node is about to handle a message."""
        self._look()
        life = self._life
        match message:
            case BarrierRequest(term, number, phase):
                if (term, number) not in life.called:
                    life.called[term, number] = message
                    call = f"topology cmd rpc {_COMMANDS[phase]}"
                    self._say(TOPOLOGY, f"{call} is called index={number}")
                    self._say(
                        TOPOLOGY, f"{call} index={number}: starting read_barrier, term={term}"
                    )
            case Order(term, number, work):
                if work is Work.stream and (term, number) not in life.streams:
                    life.streams.add((term, number))
                    self._say(TOPOLOGY, f"topology cmd rpc stream_ranges is called index={number}")
                self._rows_of.heard(message)
            case JoinRequest(host):
                known = host_id_of(host.name)
                self._say(TOPOLOGY, f"received request to join from host_id: {known}")
            case OrderDone():
                self._tablets_of.ended(message)
            case ReplicaWrite(number, version):
                life.writes[sender, number] = version
            case _:
                pass

    def answered(self, request: Commit, outcome: Outcome) -> None:
        """The node is about to hear what became of a commit."""
        self._look()
        if isinstance(outcome, Conflict | Deposed):
            self._tasks_of.lost(request)
        sent = self._life.sent
        if sent is None or sent.request is not request:
            return
        match outcome:
            case Conflict():
                self._lose()
            case Deposed(term):
                self._life.sent = None
                fiber = "topology change coordinator fiber notices term change"
                self._say(TOPOLOGY, f"{fiber} {request.term} -> {term}", Level.DEBUG)
            case _:
                pass

    def learned(self) -> None:
        """The node has learned the next entry of group0, or a snapshot."""
        self._look()

    def did(self, effect: Effect) -> None:
        """The host carries out what the node wants."""
        self._look()
        match effect:
            case Send(to, message):
                self._sends(to, message)
            case SendCommit(request):
                self._commits(request)
            case _:
                pass

    # -- the node ------------------------------------------------------------------------------------------

    @property
    def _of(self) -> DatabaseNode:
        assert self._node is not None, "the node has not started"
        return self._node

    @property
    def _tasks_of(self) -> TaskLines:
        assert self._tasks is not None, "the node has not started"
        return self._tasks

    @property
    def _rows_of(self) -> RowLines:
        assert self._rows is not None, "the node has not started"
        return self._rows

    @property
    def _tablets_of(self) -> TabletLines:
        assert self._tablets is not None, "the node has not started"
        return self._tablets

    def _say(self, logger: str, message: str, level: Level = Level.INFO, shard: int = 0) -> None:
        self._write(line(self._of.context.around.now(), level, logger, message, shard))

    def _look(self) -> None:
        """What has changed since the last look."""
        self._see_commit()
        self._see_leadership()
        self._see_fence()
        self._see_state()
        self._see_refusal()
        self._rows_of.look()
        self._see_tables()
        for request in self._of.drains.draining:
            self._begin_to_drain(request)

    def _see_commit(self) -> None:
        """The log of group0 itself says what became of a commit."""
        sent, head = self._life.sent, self._of.context.member.head
        self._tasks_of.see(head)
        if sent is not None and head.position >= sent.request.new.position:
            if head.position == sent.request.new.position and head != sent.request.new:
                self._lose()
            elif action_of(sent.request.command) == "reject":
                (step,) = (s for s in sent.request.command.steps if s.action == "reject")
                name = str(step.arguments["n"])
                if self._of.context.view.nodes[name].state is NodeState.left:  # it was not let in
                    self._say(TOPOLOGY, f"rejected node moved to left state {host_id_of(name)}")
            self._life.sent = None

    def _lose(self) -> None:
        assert self._life.sent is not None
        self._say(TOPOLOGY, f"race while changing state: {self._life.sent.reason}. Retrying")
        self._life.sent = None

    def _see_leadership(self) -> None:
        coordinator, life = self._of.coordinator, self._life
        term = None if coordinator is None else coordinator.leadership.term
        if term == life.term:
            return
        if life.term is not None:
            self._say(GROUP0, "losing leadership")
        if term is not None:
            self._say(GROUP0, "gaining leadership")
            self._say(TOPOLOGY, "start topology coordinator fiber")
        life.term, life.began, life.entered = term, 0, TransitionState.null
        life.refused = ""

    def _see_fence(self) -> None:
        context, life = self._of.context, self._life
        fence = context.view.fence_version
        own = context.view.nodes.get(context.name)
        left = own is not None and own.state is NodeState.left  # group0 tells it nothing any more
        if not context.ready or fence == life.fence or left:
            return
        stale = sum(version < fence for version in life.writes.values())
        self._say(
            PROXY,
            f"update_fence_version: new fence_version {fence} is set, prev fence_version {life.fence}, "
            f"pending stale writes {stale}",
        )
        life.fence = fence

    def _see_state(self) -> None:
        """The coordinator works on a transition state that it has not worked on yet."""
        context, life = self._of.context, self._life
        if not life.began or context.member.head.position < life.began:
            return
        state = context.view.transition_state
        if state is not life.entered:
            life.entered = state
            if state is not TransitionState.null:
                named = state.name.replace("_", " ")
                self._say(TOPOLOGY, f"entered `{named}` transition state")

    def _see_refusal(self) -> None:
        """What the coordinator wants is refused all the time, or no more."""
        coordinator, life = self._of.coordinator, self._life
        refused = "" if coordinator is None else coordinator.refusals.lasting
        if refused == life.refused:
            return
        if life.refused:
            self._say(OWN, f"the topology coordinator is no longer held up: {life.refused}")
        if refused:
            tried = "the topology coordinator is held up, and tries again and again"
            self._say(OWN, f"{tried}: {refused}", Level.WARN)
        life.refused = refused

    def _see_tables(self) -> None:
        """Tables, views and logs may have been dropped since the node has been ready."""
        context, life = self._of.context, self._life
        if not context.ready or context.view is life.view:
            return
        before, life.view = life.view, context.view
        for table in sorted(before.tables.keys() - life.view.tables.keys()) if before else ():
            named = f"{qualified(table)} id={table_id(table)} version={schema_version(table)}"
            self._say(SCHEMA, f"Dropping {named}")

    # -- barriers ------------------------------------------------------------------------------------------

    def _begin_to_drain(self, request: BarrierRequest) -> None:
        life, node = self._life, self._of
        if (request.term, request.round) in life.got:
            return
        life.got.add((request.term, request.round))
        self._say(
            TOPOLOGY,
            f"topology cmd rpc barrier_and_drain index={request.round}: read_barrier completed",
        )
        current = node.context.view.version
        uses = {v: n for v, n in sorted(node.versions_in_use().items()) if v < current}
        stale = ", ".join(f"{version}: {count}" for version, count in uses.items())
        self._say(
            TOPOLOGY,
            f"Got raft_topology_cmd::barrier_and_drain, version {request.version}, current version "
            f"{current}, stale versions (version: use_count): {{{stale}}}",
        )
        self._say(TOPOLOGY, f"{_DRAIN} {request.version}: {_WAITS}")

    def _acknowledges(self, ack: BarrierAck) -> None:
        request = self._life.called[ack.term, ack.round]
        if ack.phase is Phase.fence:
            text = f"topology cmd rpc barrier index={ack.round}: read_barrier completed"
            self._say(TOPOLOGY, text)
            return
        self._begin_to_drain(request)
        self._say(
            TOPOLOGY,
            f"{_DRAIN} {request.version}: stale versions released, draining closing sessions",
        )
        self._say(TOPOLOGY, f"{_DRAIN} {request.version}: done")

    # -- what the node wants done ----------------------------------------------------------------------------

    def _sends(self, to: str, message: Message) -> None:
        life = self._life
        match message:
            case BarrierRequest(term, number, phase):
                if (term, number) not in life.asked:
                    life.asked.add((term, number))
                    excluded = ids(self._given_up())
                    self._say(
                        TOPOLOGY,
                        f"executing global topology command {_COMMANDS[phase]}, excluded nodes: {excluded}",
                    )
            case BarrierAck() if (message.term, message.round) in life.called:
                self._acknowledges(message)
            case Order(term, number) if (term, number) not in life.ordered:
                life.ordered.add((term, number))
                self._tablets_of.orders(to, message)
            case OrderDone():
                self._rows_of.answers(message)
            case ReplicaReply(number):
                life.writes.pop((to, number), None)
            case _:
                pass

    def _given_up(self) -> Iterator[str]:
        """The nodes that the coordinator asks nothing more."""
        coordinator, view = self._of.coordinator, self._of.context.view
        round_ = None if coordinator is None else coordinator.rounds.round
        asked = frozenset[str]() if round_ is None else round_.asked
        for name in view.given_up - asked:
            if view.nodes[name].state is not NodeState.left:
                yield name

    def _commits(self, request: Commit) -> None:
        life = self._life
        if life.sent is not None and life.sent.request is request:
            return  # once more: the log of group0 takes it once
        is_beside = self._tasks_of.attempts(request)
        if request.term is None:
            self._requests(request)
        if is_beside:
            return
        if request.term is not None and life.term is not None and request.term < life.term:
            return  # of a coordinator that was deposed: its fiber is over when the next one starts on this node
        node, action = self._of, action_of(request.command)
        catalog = node.context.catalog
        leads = life.term is not None and life.term == request.term
        if action == "fail_over" and leads:
            life.began = request.new.position
        if action in FOUND and leads:
            self._finds(request)
        elif action in FENCES:
            self._proceeds_without(action)
        if failed_barrier(request.command):
            failed = f"transition_state::{catalog.view.transition_state.name}, {_FAILED}"
            self._say(TOPOLOGY, failed, Level.ERROR)
        self._tablets_of.plans(request)
        self._tasks_of.follow_tablets(request.command)
        reason = reason_of(request.command, catalog.view, catalog.tables, node.name)
        if reason:
            self._say(TOPOLOGY, f"updating topology state: {reason}")
            life.sent = _Attempt(request, reason)
        else:
            self._say(*beside(request.command))

    def _requests(self, request: Commit) -> None:
        """An operator's wish, which this node puts down."""
        for change in request.command.mutations:
            columns = change.columns or {}
            wanted = _ASKED.get(str(columns.get("request_type")))
            if change.table == REQUESTS and wanted is not None:
                asked = host_id_of(str(columns["initiating_host"]))
                self._say(TOPOLOGY, wanted.format(n=asked))

    def _finds(self, request: Commit) -> None:
        step = next(s for s in reversed(request.command.steps) if s.action in FOUND)
        name = str(step.arguments["n"])
        state = self._of.context.view.nodes[name].state.name
        found = "coordinator fiber found a node to work on"
        self._say(TOPOLOGY, f"{found} id={host_id_of(name)} state={state}")

    def _proceeds_without(self, action: str) -> None:
        """Not every node has answered, and the fence advances all the same."""
        coordinator = self._of.coordinator
        round_ = None if coordinator is None else coordinator.rounds.round
        waived, missing = action == "wait_ring_delay", set[str]()
        if waived:  # its round has failed before, by then who was down may be back
            missing = {*self._of.context.down}
        elif round_ is not None and round_.phase is Phase.drain:
            missing = round_.missing
        if waived or missing:
            self._say(
                TOPOLOGY,
                "drain rpc failed, proceed to fence old writes: raft topology: "
                f"exec_global_command(barrier_and_drain) failed with no answer of {ids(missing)}",
                Level.WARN,
            )
