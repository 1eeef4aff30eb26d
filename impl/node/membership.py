"""How a node comes into the cluster, lets others in, and takes what operators ask.

A commit of these races with those of the topology coordinator: any node makes it, in nobody's term.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from stagewright.impl.catalog.catalog import first_rows, founding
from stagewright.impl.catalog.columns import text_of
from stagewright.impl.catalog.names import name_of, new_id, no_table
from stagewright.impl.group0 import Command
from stagewright.impl.group0.member import Ended
from stagewright.impl.node.context import Context, tokens_for
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import LOCAL
from stagewright.impl.node.messages import (
    STARTING,
    Ask,
    CreateTable,
    GenerationsReply,
    GenerationsRequest,
    Joined,
    JoinReply,
    JoinRequest,
    JoinResponse,
    Load,
    NameReply,
    NameRequest,
    NodeStatus,
    OperatorReply,
    OperatorRequest,
    StatusReply,
)
from stagewright.impl.node.port import Effect, Learn, Send, Stop, Store, Wake
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.tablets.reports import held_up
from stagewright.impl.tablets.statements import create_table
from stagewright.impl.tablets.truncation import truncated_until
from stagewright.impl.topology.planning import Board, step_of
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    TransitionState,
)

BOOTSTRAPPED = b"bootstrapped"


class Membership:
    """The way of one node in, and of others through it."""

    def __init__(self, node: Context, serve: Callable[[], list[Effect]]) -> None:
        self._node = node
        self._serve = serve  # called once the node is ready
        self._learns = False
        self._responded: dict[str, int] = {}  # coordinators that wait for this node to have joined
        self._asking: set[str] = set()  # nodes that are being let in
        self._asked = 0

    # -- this node -------------------------------------------------------------------------------------

    def start(self) -> list[Effect]:
        """Learn, if the node is a member of group0; else ask to join."""
        node = self._node
        known = node.rows.get(LOCAL, BOOTSTRAPPED)
        if known is not None or any(h.name == node.name for h in node.identity.founders):
            return self._learn()
        return self._ask()

    def _ask(self) -> list[Effect]:
        identity = self._node.identity
        contact = identity.contacts[self._asked % len(identity.contacts)]
        self._asked += 1
        wake = Wake(4 * self._node.timing.resend, ("join",))
        return [Send(contact, JoinRequest(identity.host, identity.replaces)), wake]

    def again(self) -> list[Effect]:
        """Nobody has let the node in yet."""
        return [] if self._learns else self._ask()

    def replied(self, reply: JoinReply) -> list[Effect]:
        """The row is there, or never will be; a node that restarts may be a member already."""
        if self._learns:
            return []
        if not reply.accepted:
            return [Stop(f"it may not join: {reply.reason}")]
        return self._learn() if reply.member else []

    def respond(self, coordinator: str, response: JoinResponse) -> list[Effect]:
        """The coordinator lets the node in."""
        self._responded[coordinator] = response.term
        if self._node.ready:
            return self._joined()
        return self._learn()

    def _joined(self) -> list[Effect]:
        waiting, self._responded = self._responded, {}
        return [Send(to, Joined(term)) for to, term in waiting.items()]

    def _learn(self) -> list[Effect]:
        if self._learns:
            return []
        self._learns = True
        mark = Put(LOCAL, Version(BOOTSTRAPPED, 1, b"COMPLETED"))
        effects: list[Effect] = [Store((mark,)), Learn(self._node.member.head.position)]
        return [*effects, *self._found(), *self.catch_up()]

    def _found(self) -> list[Effect]:
        """The first founder begins the cluster, if nobody has."""
        identity, catalog = self._node.identity, self._node.catalog
        if not identity.founders or identity.founders[0].name != identity.name:
            return []
        tokens = {h.name: tokens_for(h, h.tokens) for h in identity.founders}
        node = self._node
        begin = Command(
            "bootstrap: adding myself as the first node to the topology",
            mutations=founding(identity.founders, tokens, node.new_id(), node.time()),
        )
        return self._node.propose(lambda: None if catalog.begun else begin, lambda _: [])

    def catch_up(self) -> list[Effect]:
        """Be ready when all is learned that was committed by now, the beginning at least."""

        def then(_: Ended) -> list[Effect]:
            if not self._node.catalog.begun:
                return [Wake(self._node.timing.retry, ("catch up",))]
            self._node.ready = True
            if self._node.has(Defect.only_the_last_generation_is_loaded):
                known = self._node.catalog.cdc.generations
                self._node.loaded_from = known[-1][0] if known else 0
            return [*self._serve(), *self._joined()]

        return self._node.read_barrier(then)

    # -- other nodes -----------------------------------------------------------------------------------

    def let_in(self, sender: str, request: JoinRequest) -> list[Effect]:
        """JOIN_NODE_REQUEST: write the node's row, unless it is there."""
        node, name = self._node, request.host.name
        if not node.ready or name in self._asking:
            return []
        known = node.view.nodes.get(name)
        if known is not None and known.state is not NodeState.left:
            return [Send(sender, JoinReply(True, known.in_group0))]
        if known is not None:
            error = known.request["error"] if known.request else None
            return [Send(sender, JoinReply(False, reason=error or f"{name} has left the cluster"))]
        self._asking.add(name)
        newcomer = Node(name)
        if request.replaces:
            step = step_of("ask_to_replace", n=newcomer, dead=Node(request.replaces))
        else:
            step = step_of("ask_to_join", n=newcomer)

        def plan() -> Command | None:
            if name in node.view.nodes:
                return None
            board = Board(node.rules, node.catalog, newcomer=name)
            board.see(node.down)
            board.take(step)
            rows = first_rows(request.host)
            return board.command(
                f"bootstrap: {name} asks to join", node.catalog, node.details(), rows
            )

        def then(ended: Ended) -> list[Effect]:
            self._asking.discard(name)
            reason = "" if ended.error is None else ended.error.problem
            return [Send(sender, JoinReply(not reason, reason=reason))]

        return node.propose(plan, then)

    # -- operators -------------------------------------------------------------------------------------

    def operate(self, client: str, request: OperatorRequest) -> list[Effect]:
        """Commit what an operator asks for, if the definition allows it now."""
        node = self._node
        arguments: dict[str, Any] = {"n": Node(request.node)}
        action = request.ask.value
        if request.ask in (Ask.cleanup, Ask.new_cdc_generation):
            action, arguments = "ask_globally", {"request": GlobalRequest[request.ask.value]}

        if request.ask in (Ask.lock, Ask.unlock):
            arguments = {}

        def plan() -> Command:
            board = Board(node.rules, node.catalog)
            board.see(node.down)
            board.take(step_of(action, **arguments))
            what = request.ask.name.replace("_", " ")
            return board.command(
                f"{node.name}: request {what} {request.node}".rstrip(), node.catalog, node.details()
            )

        return self._node.answered(client, request.number, plan)

    def create(self, client: str, request: CreateTable) -> list[Effect]:
        """Make a table, and its log."""
        node = self._node
        if 0 < request.ttl < (least := node.timing.least_kept):
            kept = f"{least / 1000:g} s, not for {request.ttl / 1000:g} s"
            reason = f"a log keeps changes for at least {kept}: writes may be late (0: for ever)"
            help = f"write a ttl of {-(-least // 1000)} or more, or none"
            return [Send(client, OperatorReply(request.number, False, reason, help=help))]
        plan = partial(create_table, node, request)
        return self._node.answered(client, request.number, plan)

    def answer(self, client: str, question: NameRequest | GenerationsRequest) -> list[Effect]:
        """Answer what a client asks about tables, by all that is committed."""
        if isinstance(question, NameRequest):
            return self._which(client, question.number, question.name)
        return self._streams(client, question.number, question.table)

    def _which(self, client: str, number: int, name: str) -> list[Effect]:
        """Say which table or view a name means."""
        node = self._node
        if not node.ready:
            return [Send(client, NameReply(number, False, reason=f"{node.name} {STARTING}"))]

        def answer(_: object) -> list[Effect]:
            there = node.view.named(name)
            known = there in node.view.tables
            found = there if known else new_id(node.catalog.tables, name)
            until = truncated_until(node.view, there)
            return [Send(client, NameReply(number, True, found, known, truncated=until))]

        return node.read_barrier(answer, for_client=True)

    def _streams(self, client: str, number: int, table: str) -> list[Effect]:
        """Send the CDC generations that clients may read, or the streams of a table of tablets.

        With all that is committed: who has read on by newer streams must not be sent back to older ones.
        """
        if not self._node.ready:
            reason = f"{self._node.name} {STARTING}"
            return [Send(client, GenerationsReply(number, False, reason=reason))]

        def answer(_: object) -> list[Effect]:
            return [Send(client, self._generations(number, table))]

        if self._node.has(Defect.readers_are_sent_back):
            return answer(None)
        return self._node.read_barrier(answer, for_client=True)

    def _generations(self, number: int, name: str) -> GenerationsReply:
        table = self._node.view.named(name)
        if name and table not in self._node.view.tables:
            return GenerationsReply(number, False, reason=no_table(name))
        found = tuple(
            (start, tuple(s.to_bytes() for r in description.ranges for s in r.streams))
            for start, description in self._node.catalog.readable(table)
        )
        return GenerationsReply(number, True, found, ttl=self._node.view.kept.get(table, 0))

    def status(self, number: int, coordinator: str, load: Load) -> StatusReply:
        """How the cluster looks to this node."""
        node, view = self._node, self._node.view
        state = view.transition_state
        nodes = tuple(
            NodeStatus(
                m.name,
                m.state.name,
                m.name not in node.down,
                len(m.tokens),
                m.datacenter,
                m.rack,
                m.address,
                m.request["request_type"] if m.request else "",
                _outcome(m.request),
                held_up(view, m.name, node.down) if m.asked in ("leave", "remove") else "",
            )
            for m in view.nodes.values()
        )
        return StatusReply(
            number,
            node.member.head.position,
            coordinator,
            "" if state is TransitionState.null else text_of(state) or "",
            view.version,
            view.fence_version,
            nodes,
            tuple((name_of(table), replicas) for table, replicas in view.tables.items()),
            load,
        )


def _outcome(request: dict[str, Any] | None) -> str:
    if request is None:
        return ""
    if not request["done"]:
        return "pending"
    return request["error"] or "done"
