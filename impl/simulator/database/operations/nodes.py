"""Nodes in a script: they join, leave, are killed, replaced, removed, rebuilt and cut off."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import TOPOLOGY
from stagewright.impl.node.context import tokens_for
from stagewright.impl.node.messages import STARTING, Ask, HostInfo, OperatorRequest
from stagewright.impl.node.port import Identity
from stagewright.impl.simulator.database.absences import part, resume, reunite, suspend
from stagewright.impl.simulator.database.operations.asks import (
    AGAIN_MS,
    OPERATION_MS,
    UNFINISHED,
    Asks,
)
from stagewright.impl.simulator.database.plan import host_of
from stagewright.impl.simulator.database.script import Operation
from stagewright.impl.simulator.database.world import World
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState
from stagewright.spec.errors import InputError

NOTICED_MS = 5_000  # until all have noticed that a node is down
ASKS = {
    "decommission": Ask.leave,
    "remove": Ask.remove,
    "rebuild": Ask.rebuild,
    "cleanup": Ask.cleanup,
    "generation": Ask.new_cdc_generation,
    "abort": Ask.abort,
    "lock": Ask.lock,
    "unlock": Ask.unlock,
}


class NodeOperations:
    """The nodes of a run; `killed` are those that the script wants down."""

    def __init__(self, world: World, catalog: Catalog, asks: Asks, killed: set[str]) -> None:
        self._world = world
        self._catalog = catalog
        self._asks = asks
        self._killed = killed
        self._never_came: set[str] = set()  # those in whose place nobody was asked for

    def work(self, operation: Operation) -> str:
        """Do what a script says, and report what became of it.

        Raises:
            InputError: there is no such node, or it was there already.
        """
        verb, node, by = operation.verb, operation.node, operation.by
        newcomer = by if verb == "replace" else node if verb == "join" else ""
        if newcomer in self._world.hosts:
            raise InputError(f"`{operation}`: {newcomer} was there already", help="use a new name")
        if node in self._never_came:
            return f"not asked: {node} did not come"
        other = operation.tokens_of
        if other and other not in {*self._world.hosts, *self._never_came}:
            raise InputError(f"`{operation}`: there was no {other}", help="name a node that was in")
        if node and verb != "join" and node not in self._world.hosts:
            raise InputError(f"`{operation}`: there is no {node}", help="let it join first")
        match verb:
            case "kill":
                self._kill(node)
                return "done"
            case "isolate" | "partition" | "suspend":
                leave = {"isolate": World.isolate, "partition": part, "suspend": suspend}[verb]
                leave(self._world, node)
                self._asks.until(
                    lambda: all(self._sees_down(n, node) for n in self._others(node)), NOTICED_MS
                )
                return "done"
            case "reconnect" | "resume":
                come_back = reunite if verb == "reconnect" else resume
                come_back(self._world, node)
                return "done"
            case "restart":
                self._killed.discard(node)
                self._world.start(node)
                return "done"
            case "ask":
                return self._ask(by, node, wait=False)
            case "replace" if tablet := self._needed_for(node):
                self._never_came.add(by)
                return self._spare(node, tablet)
            case "join" | "replace":
                tokens = operation.tokens or self._tokens_of(operation.tokens_of)
                host = replace(host_of(newcomer), lacks=operation.lacks, initial_tokens=tokens)
                return self._join(host, node if verb == "replace" else "")
            case _:
                return self._ask(verb, node)

    def _others(self, name: str) -> list[str]:
        return [n for n in self._world.up() if n != name]

    def _kill(self, name: str) -> None:
        if name in self._world.isolated | self._world.absent:
            return  # it is down for all but clients
        self._killed.add(name)
        self._world.crash(name)
        self._asks.until(
            lambda: all(self._sees_down(n, name) for n in self._world.up()), NOTICED_MS
        )

    def _sees_down(self, node: str, other: str) -> bool:
        found = self._world.hosts[node].node
        return found is None or other in found.context.down

    def _tokens_of(self, name: str) -> tuple[int, ...]:
        """The tokens that a node has or had, of which somebody may have copied the settings."""
        if not name:
            return ()
        known = self._world.hosts[name].identity if name in self._world.hosts else None
        host = known.host if known is not None else host_of(name)
        if known is not None and known.replaces:
            return self._tokens_of(known.replaces)
        return host.initial_tokens or tokens_for(host, host.tokens)

    def _join(self, newcomer: HostInfo, replaces: str) -> str:
        name = newcomer.name
        shunned = {replaces, *self._world.isolated, *self._world.absent}
        known = self._catalog.view.nodes.items()
        contacts = tuple(n for n, m in known if m.state.owns and n not in shunned)  # up or not
        if replaces:
            self._kill(replaces)
        self._world.add(Identity(newcomer, contacts=contacts, replaces=replaces))
        host, nodes = self._world.hosts[name], self._catalog.view.nodes

        def over() -> bool:
            state = self._catalog.view.nodes.get(name)
            ended = state is not None and state.state in (NodeState.normal, NodeState.left)
            return ended or bool(host.stopped)

        if not self._asks.until(over, OPERATION_MS):
            return UNFINISHED
        nodes = self._catalog.view.nodes
        if name in nodes and nodes[name].state is NodeState.normal:
            if not self._asks.until(lambda: not self._holds_tablets(replaces), OPERATION_MS):
                return UNFINISHED
            return "done"
        self._killed.add(name)
        self._world.crash(name)
        request = nodes[name].request if name in nodes else None
        return f"failed: {request['error'] if request else host.stopped}"

    def _holds_tablets(self, name: str) -> bool:
        """Whether tablets count a node among their replicas: if it is dead, they have one less."""
        tablets = self._catalog.view.tablets.values()
        return any(r.host == name for rows in tablets for row in rows for r in row.tablet.replicas)

    def _needed_for(self, name: str) -> str:
        """A tablet of which a quorum of replicas would be given up with this node: with it go rows that clients were promised.

        While a tablet moves, those that it leaves may have removed their rows, and those to which it goes may lack some.
        """
        view = self._catalog.view
        given_up = view.given_up | {name}
        for row in (row for rows in view.tablets.values() for row in rows):
            for replicas in (row.tablet.replicas, row.tablet.next or ()):
                hosts = {r.host for r in replicas}
                if name in hosts and len(hosts & given_up) > len(hosts) // 2:
                    return f"{row.table}#{row.number}"
        return ""

    def _holds_a_quorum_of(self, name: str) -> str:
        """A table on the token ring that fewer nodes than a quorum of its replicas would be left for: nobody could read it."""
        view = self._catalog.view
        goes = {n for n, m in view.nodes.items() if m.asked in ("leave", "remove")} | {name}
        stay = {n for n, m in view.nodes.items() if m.state.owns} - goes
        for table, replicas in view.tables.items():
            if table not in view.tablets and len(stay) <= replicas // 2:
                return table
        return ""

    def _spare(self, name: str, tablet: str) -> str:
        """Do not give a node up; if it is cut off, it starts again, and hears of the others."""
        if name in self._world.isolated:
            self._world.isolated.discard(name)
            self._world.crash(name)
            self._world.start(name)
        return f"not asked: a quorum of {tablet} would be lost"

    def _ask(self, verb: str, node: str, *, wait: bool = True) -> str:
        if verb in ("decommission", "remove") and (table := self._holds_a_quorum_of(node)):
            return self._spare(node, table)
        if verb == "remove":
            if tablet := self._needed_for(node):
                return self._spare(node, tablet)
            self._kill(node)
        refusal, known = "", self._request_id(node)
        deadline = self._world.events.now + OPERATION_MS
        while self._world.events.now < deadline:
            reply = self._asks.order(OperatorRequest(0, ASKS[verb], node), node)
            # Refused because it is pending already: the answer to an earlier try was lost.
            taken = reply is not None and self._request_id(node) != known
            if reply is not None and (reply.accepted or taken):
                if not wait or verb == "abort":
                    return "asked" if verb != "abort" else "done"
                if not self._asks.until(lambda: self._has_ended(verb, node), OPERATION_MS):
                    return UNFINISHED
                return self._result(verb, node)
            # Whoever has locked the topology asks until it is unlocked.
            starts = reply is not None and reply.reason.endswith(STARTING)
            if reply is not None and not (verb == "unlock" and starts):
                refusal = reply.reason
                break
            self._asks.until(lambda: False, AGAIN_MS)
        return f"refused: {refusal}" if refusal else "no answer"

    def _request_id(self, node: str) -> str:
        """The newest request of a node."""
        row = self._catalog.tables[TOPOLOGY].get((node,))
        return (row["request_id"] or "") if row is not None else ""

    def _has_ended(self, verb: str, node: str) -> bool:
        if verb in ("cleanup", "generation"):
            return self._catalog.state()["global_request"] is None
        if verb in ("lock", "unlock"):
            return (self._catalog.view.transition_state is TransitionState.lock) == (verb == "lock")
        row = self._catalog.view.nodes[node]
        if verb in ("decommission", "remove") and row.state is NodeState.left:
            return True
        ended = row.request is not None and row.request["done"]
        return bool(ended) and row.state in (NodeState.normal, NodeState.left)

    def _result(self, verb: str, node: str) -> str:
        if verb in ("cleanup", "generation", "lock", "unlock"):
            return "done"
        request = self._catalog.view.nodes[node].request
        error = request["error"] if request is not None else None
        return f"failed: {error}" if error else "done"
