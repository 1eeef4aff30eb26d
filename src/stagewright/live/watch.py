"""What the page of a running cluster shows: the log's tables, each node's word, and the files of each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, ClassVar

from stagewright.impl.catalog.columns import text_of
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.view import Member, View
from stagewright.impl.node.messages import StatusReply, StatusRequest
from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.builds import builds
from stagewright.impl.processes.errors import WireError
from stagewright.impl.processes.layout import Layout, in_order
from stagewright.impl.processes.log import group0_of
from stagewright.impl.ring.vnodes import TokenRing
from stagewright.impl.tablets.reports import moves_of, statuses
from stagewright.live.following import Committed, Following
from stagewright.live.pages import Document
from stagewright.loopback import Query
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState

_SECONDS = 0.7  # a node that answers later is shown as silent
_SHOWN = 60  # commits
_TOKENS = 1 << 64
_STATES = [s for s in TransitionState if s is not TransitionState.null]


class Watch:
    """One cluster, watched; `look` may be called from one thread at a time."""

    page: ClassVar = "page.html"

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._following = Following(group0_of(layout))
        self._secret = layout.secret()
        self._open: dict[str, Conversation] = {}
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="asks a node")

    def close(self) -> None:
        """Watch no longer."""
        self._pool.shutdown()
        for conversation in self._open.values():
            conversation.close()
        self._following.close()

    def look(self, _: Query) -> Document:
        """All that the page shows; times are seconds since 1970, places on the ring from 0 to 1."""
        layout, moment = self.layout, self._following.moment()
        members = (n for n, m in moment.view.nodes.items() if m.state is not NodeState.left)
        names = in_order({*layout.names(), *members})  # of some the directory may be lost
        said = dict(zip(names, self._pool.map(self._said, names), strict=True))
        view = moment.view
        answered = [s for s in said.values() if s is not None]
        return {
            "at": time.time(),
            "problem": self._following.problem,
            "position": moment.position,
            "begun": moment.begun,
            "coordinator": next((s.coordinator for s in answered if s.coordinator), ""),
            "transition_state": text_of(view.transition_state) or "",
            "transition_states": [text_of(s) for s in _STATES],
            "version": view.version,
            "fence_version": view.fence_version,
            "session": view.session,
            "tables": {name_of(table): replicas for table, replicas in view.tables.items()},
            "views": [build.shown for build in builds([moment.views])],
            "logs": [asdict(log) for log in moment.logs],
            "nodes": [self._node(name, said[name], view) for name in names],
            "tablets": [asdict(t) for t in statuses(view)],
            "moves": [m for c in moment.history for m in moves_of(c.description, c.steps)][
                -_SHOWN:
            ],
            "rings": _rings(view) if moment.begun else {"now": [], "next": []},
            "history": [_line(c) for c in reversed(moment.history[-_SHOWN:])],
        }

    def _node(self, name: str, said: StatusReply | None, view: View) -> Document:
        layout = self.layout
        member = view.nodes.get(name)
        return {
            "name": name,
            "process": layout.running(name),
            "stopped": layout.stopped(name),
            "answers": said is not None,
            "position": None if said is None else said.position,
            "load": None if said is None else asdict(said.load),
            "bytes": sum(p.stat().st_size for p in _files(layout, name)),
            **_said_of(member),
            "share": _share(view, name),
            "shards": 0 if member is None else member.shards,
        }

    def _said(self, name: str) -> StatusReply | None:
        """What a node says of itself, over a connection that is kept; None if it does not answer."""
        if self.layout.running(name) is None:
            self._hang_up(name)
            return None
        try:
            conversation = self._open.get(name)
            if conversation is None:
                address = self.layout.node_file(name).identity.host.address
                conversation = Conversation(address, self._secret, _SECONDS)
                self._open[name] = conversation
            reply = conversation.ask(StatusRequest(1), _SECONDS)
        except (OSError, WireError):
            self._hang_up(name)
            return None
        return reply if isinstance(reply, StatusReply) else None

    def _hang_up(self, name: str) -> None:
        conversation = self._open.pop(name, None)
        if conversation is not None:
            conversation.close()


def _files(layout: Layout, name: str) -> Iterator[Any]:
    return (p for p in (layout.node(name) / "rows").glob("*") if p.is_file())


def _said_of(member: Member | None) -> Document:
    """A node's row of the topology."""
    if member is None:
        return {
            "state": "",
            "datacenter": "",
            "rack": "",
            "address": "",
            "asked": "",
            "outcome": "",
        }
    request = member.request
    asked = "" if request is None else request["request_type"]
    done = request is not None and request["done"]
    return {
        "state": member.state.name,
        "datacenter": member.datacenter,
        "rack": member.rack,
        "address": member.address,
        "asked": asked,
        "outcome": "" if request is None else (request["error"] or "done") if done else "pending",
    }


def _share(view: View, name: str) -> float:
    """How much of the ring a node owns now, from 0 to 1."""
    ring = view.rings.old
    return (
        sum(
            (end - start) % _TOKENS or _TOKENS
            for start, end in ring.ranges()
            if ring.owners[end].host == name
        )
        / _TOKENS
    )


def _rings(view: View) -> Document:
    return {"now": _vnodes(view.rings.old), "next": _vnodes(view.rings.new)}


def _vnodes(ring: TokenRing) -> list[tuple[float, str]]:
    """The end of each vnode, from 0 to 1, and who owns it."""
    return [((end + _TOKENS // 2) / _TOKENS, ring.owners[end].host) for end in ring.tokens]


def _line(commit: Committed) -> Document:
    steps = [f"{s.action}({', '.join(map(str, s.arguments.values()))})" for s in commit.steps]
    return {
        "position": commit.position,
        "term": commit.term,
        "description": commit.description,
        "steps": steps,
        "seen": commit.seen,
    }
