"""Starts and stops the nodes of a directory, and carries an operator's wishes to them."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stagewright.impl.catalog.features import FEATURES
from stagewright.impl.catalog.names import no_table
from stagewright.impl.node.messages import (
    TOO_FEW,
    Ask,
    ClientRead,
    CreateTable,
    HostInfo,
    Level,
    NameRequest,
    NodeStatus,
    OperatorRequest,
    StatusReply,
    StatusRequest,
    TabletsReply,
    TabletsRequest,
)
from stagewright.impl.node.port import Identity
from stagewright.impl.processes.asking import NONE_RUNS, STARTS, Conversation
from stagewright.impl.processes.builds import Build
from stagewright.impl.processes.children import LOOK, SEE, Children
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.errors import ClusterError, OperationFailedError, WireError
from stagewright.impl.processes.layout import Layout, NodeFile, Settings, in_order

TABLE = "ks.rows"
LOOPBACK = "127.0.0.1"
_STANDS = (
    "the request stands, and goes on once that is mended; `stagewright cluster abort` withdraws it"
)
_TOLD = 5.0  # seconds for nodes to learn what they have decided
PATIENCE = 120.0  # seconds for nodes to start, and for what an operator asks for

_PORTS = range(20_000, 32_000)  # below those that systems give to callers


@dataclass(frozen=True)
class NodeReport:
    """A node, by its files and by what the cluster says of it."""

    name: str
    process: int | None
    stopped: str
    said: NodeStatus | None
    lost: bool = False  # its directory is gone, and the others count on it

    @property
    def is_well(self) -> bool:
        """Whether it is as it should be: it runs and serves, or has left."""
        if self.stopped or (self.said is not None and self.said.state == "left"):
            return self.process is None
        return self.process is not None and self.said is not None and self.said.state == "normal"


@dataclass(frozen=True)
class Report:
    """How a cluster is."""

    nodes: tuple[NodeReport, ...]
    said: StatusReply | None
    tablets: TabletsReply | None = None
    views: tuple[Build, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether all nodes are, and some node answers."""
        return self.said is not None and all(n.is_well for n in self.nodes)


class Supervisor:
    """Acts on the cluster of a directory; `report` is called with what goes on."""

    def __init__(
        self,
        layout: Layout,
        report: Callable[[str], None] = lambda _: None,
        patience: float = PATIENCE,
        program: Sequence[str] = ("-m", "stagewright.impl.processes.node"),
    ) -> None:
        """`program` is what Python runs as a node."""
        self.layout = layout
        self._children = Children(layout, report, patience, program)

    # -- starting --------------------------------------------------------------------------------------

    def create(
        self, nodes: int, settings: Settings | None = None, address: str = LOOPBACK
    ) -> list[str]:
        """Begin a cluster of so many nodes; their names. Nothing is started yet."""
        founders = tuple(
            HostInfo(f"n{i + 1}", address=where)
            for i, where in enumerate(_free_addresses(nodes, address))
        )
        files = (NodeFile(Identity(founder, founders)) for founder in founders)
        self.layout.create(settings or Settings(), files)
        return [f.name for f in founders]

    def start(self, replicas: int = 3, *, cdc: bool = False, images: bool = False) -> list[str]:
        """Start the nodes that do not run and have not left; wait until all serve and see each other.

        `replicas`, `cdc` and `images` are of the table, if it is not there yet.
        """
        layout = self.layout
        names = [n for n in layout.names() if not layout.stopped(n)]
        missing = [n for n in names if layout.running(n) is None]
        for name in missing:
            self._children.spawn(name)
        self._children.wait(
            "the cluster to begin",
            lambda: self._create_table(names, replicas, cdc, images),
            missing,
        )
        for name in names:
            self._children.wait(f"{name} to serve", lambda n=name: self.serves(n), [name])  # type: ignore[misc]
        self._children.wait(
            "the nodes to see each other", lambda: self._see_each_other(names), names
        )
        return missing

    def _see_each_other(self, names: list[str]) -> bool:
        """Whether no node counts another one as down, so that each can be asked for anything."""
        for name in names:
            said = self._ask(name, StatusRequest(1))
            if said is None or any(n.name in names and not n.up for n in said.nodes):
                return False
        return True

    def _create_table(self, names: list[str], replicas: int, cdc: bool, images: bool) -> bool:
        """Make the table for rows, which may be there already."""
        for name in names:
            said = self._ask(name, NameRequest(1, TABLE))
            if said is not None and said.succeeded:
                wanted = CreateTable(1, said.id, min(replicas, len(names)), cdc=cdc, images=images)
                if said.there or self._asked(name, wanted, "accepted"):
                    return True
        return False

    def serves(self, name: str) -> bool:
        """Whether a node answers clients now, also that the table for rows was dropped."""
        answer = self._ask(name, ClientRead(1, TABLE, b"", Level.one))
        if answer is None or answer.succeeded:
            return answer is not None
        said = self.said() if answer.reason == no_table(TABLE) else None
        return said is not None and TABLE not in dict(said.tables)

    def _asked(self, name: str, message: Any, granted: str) -> bool:
        answer = self._ask(name, message)
        return answer is not None and bool(getattr(answer, granted))

    # -- stopping --------------------------------------------------------------------------------------

    def kill(self, name: str) -> int:
        """End a node's process without warning (SIGKILL); its number."""
        self._refuse_unknown(name)
        return self._children.kill(name)

    def stop(self, names: Iterable[str] | None = None) -> list[str]:
        """Let nodes, or all, end what they do and stop; those that did not run are passed over."""
        chosen = self.layout.names() if names is None else list(names)
        for name in chosen:
            self._refuse_unknown(name)
        return self._children.stop(chosen)

    def running(self, name: str) -> int | None:
        """The number of a node's process, if it lives."""
        return self._children.running(name)

    def _names(self) -> list[str]:
        """Every node that there is a directory of, or that the others know, whose directory may be lost."""
        said = self.said()
        known = {*self.layout.names(), *(n.name for n in (said.nodes if said is not None else ()))}
        return in_order(known)

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.layout.names() and name not in (known := self._names()):
            raise ClusterError(f"there is no node {name}", help=f"known: {', '.join(known)}")

    def _process(self, name: str) -> int:
        self._refuse_unknown(name)
        return self._children.process(name)

    # -- what operators ask for ------------------------------------------------------------------------

    def add(self, replaces: str = "", lacks: str = "", tokens: tuple[int, ...] = ()) -> str:
        """A new node joins, maybe in the place of a dead one, of a release without a feature, or asking for its tokens; its name.

        Raises:
            ClusterError: there is no such feature.
            OperationFailedError: (as of all that follow) the cluster refuses, or fails to do it.
        """
        layout = self.layout
        if lacks not in ("", *FEATURES):
            raise ClusterError(f"there is no feature {lacks}", help=f"known: {', '.join(FEATURES)}")
        contacts = self._contacts(replaces)
        if replaces:
            self._refuse_living(replaces)
        address = layout.node_file(contacts[0]).identity.host.address.rpartition(":")[0]
        book = {n: layout.node_file(n).identity.host.address for n in contacts}
        number, name = 1 + max(int(n[1:]) for n in self._names()), ""
        while not name:
            where = _free_addresses(1, address)[0]
            host = HostInfo(f"n{number}", address=where, lacks=lacks, initial_tokens=tokens)
            try:
                layout.add_node(NodeFile(Identity(host, (), tuple(contacts), replaces), book))
                name = host.name
            except FileExistsError:  # somebody else adds one at the same time
                number += 1
        self._children.spawn(name)
        try:
            self._children.wait(f"{name} to join", lambda: self.serves(name), [name])
        except OperationFailedError as error:
            raise self._rejected(name, error) from None
        self._settled(name, {"normal"})
        if replaces:
            self._holds_none(replaces)
            layout.stop_for_good(replaces, f"{name} has replaced it")
        return name

    def _rejected(self, name: str, error: OperationFailedError) -> OperationFailedError:
        """Why a node that has ended may not join: the others know that, soon after they have shut it down."""
        until = time.monotonic() + _TOLD
        while self.layout.stopped(name) and time.monotonic() < until:
            node = self._node_since(name, 0)
            if node is not None and node.state == "left":
                return error if node.outcome in error.problem else _given_up(node)
            time.sleep(LOOK)
        return error

    def _holds_none(self, name: str) -> None:
        """Wait until no tablet counts a dead node: until then each such tablet has a replica less."""

        def rebuilt() -> bool:
            said = self.tablets()
            return said is not None and not any(
                host == name for t in said.tablets for host, _ in t.replicas
            )

        self._children.wait(f"the tablets of {name} to be rebuilt", rebuilt)

    def decommission(self, name: str) -> None:
        """A node gives its rows to the others and leaves; its process ends."""
        self._refuse_left(name)
        self._process(name)
        self._settled(name, {"left"}, self._request(Ask.leave, name))
        until = time.monotonic() + 10
        while self.running(name) is not None and time.monotonic() < until:
            time.sleep(LOOK)
        self.stop([name])
        self.layout.stop_for_good(name, self.layout.stopped(name) or "it has left the cluster")

    def remove(self, name: str) -> None:
        """A dead node leaves; the others fetch the rows that it had from each other."""
        self._refuse_living(name)
        self._settled(name, {"left"}, self._request(Ask.remove, name))
        self.layout.stop_for_good(name, "it was removed from the cluster")

    def rebuild(self, name: str) -> None:
        """A node fetches its rows anew, as after its disk was lost."""
        self._refuse_left(name)
        self._process(name)
        self._ended(name, self._request(Ask.rebuild, name))

    def clean_up(self) -> None:
        """Nodes remove the rows of ranges that they have lost; that goes on when this returns."""
        self._request(Ask.cleanup, "")

    def abort(self, name: str) -> None:
        """The cluster gives up what it was asked for: to let a node go whose leaving has not begun."""
        self._refuse_left(name)
        said = self.said(but=name) or self.said()
        node = next((n for n in said.nodes if n.name == name), None) if said is not None else None
        if node is not None and node.outcome != "pending":
            last = f": {node.request} has ended" if node.request else ""
            raise OperationFailedError(
                f"nothing is asked of {name} that could be withdrawn{last}",
                help="see `stagewright cluster status`",
            )
        self._request(Ask.abort, name, 0)

    def _ended(self, name: str, since: int) -> None:
        """Wait until the request about a node that was committed at a position of group0 has ended."""

        def look() -> bool:
            node = self._node_since(name, since)
            if node is None or node.outcome == "pending":
                return False
            if node.outcome != "done":
                raise _given_up(node)
            return True

        self._children.wait(f"{name} to be done", look)

    def _refuse_living(self, name: str) -> None:
        self._refuse_left(name)
        if self.running(name) is not None:
            raise ClusterError(
                f"{name} is running",
                help="decommission it, or stop or kill it before it is given up",
            )

    def _refuse_left(self, name: str) -> None:
        self._refuse_unknown(name)
        said = self.said(but=name)
        if said is not None and any(n.name == name and n.state == "left" for n in said.nodes):
            raise ClusterError(
                f"{name} is no longer a member of the cluster: {self.layout.stopped(name) or 'it has left'}",
                help="`add` lets a new node join; a node that has left never comes back",
            )

    def _contacts(self, but: str) -> list[str]:
        running = [n for n in self.layout.names() if n != but and self.running(n) is not None]
        if not running:
            raise ClusterError(NONE_RUNS, help=STARTS)
        return running

    def _request(self, ask: Ask, name: str, seconds: float = 10.0) -> int:
        """Ask until a node accepts the request, and where in group0 it is committed.

        One that has died may not count as dead yet.
        """
        until, reason = time.monotonic() + seconds, "no node answers"
        while True:
            for contact in sorted(self._contacts(""), key=name.__eq__):  # itself last
                reply = self._ask(contact, OperatorRequest(1, ask, name), 10.0)
                if reply is not None and reply.accepted:
                    return int(reply.position)
                reason = reason if reply is None else reply.reason
            if time.monotonic() >= until:
                break
            time.sleep(0.5)
        raise OperationFailedError(
            f"the cluster refuses: {ask.name.replace('_', ' ')} {name}".rstrip() + f": {reason}",
            help="see `stagewright cluster status`",
        )

    def _settled(self, name: str, states: set[str], since: int = 0) -> None:
        """Wait until the cluster has done what was committed at a position of group0."""
        held_up = ""

        def look() -> bool:
            nonlocal held_up
            node = self._node_since(name, since)
            if node is None or node.state in states:
                return node is not None
            if node.outcome not in ("", "pending", "started", "done"):
                raise _given_up(node)
            held_up = node.held_up
            if held_up and node.request == "leave" and self.running(name) is None:
                raise OperationFailedError(
                    f"{name} has ended before it has left: {held_up}",
                    help="`start` it again, and it leaves; or `abort` what was asked of it",
                )
            return False

        wanted = f"{name} to be in the state {' or '.join(sorted(states))}"
        help = _STANDS if "left" in states else SEE
        self._children.wait(wanted, look, why=lambda: held_up, help=help)

    def _node_since(self, name: str, since: int) -> NodeStatus | None:
        """How a node is to another that has learned at least so much of group0, else to itself.

        One that lags knows the request before this one, and what became of that.
        """
        said = self.said(but=name, since=since) or self.said(since=since)
        if said is None and not any(map(self.running, self.layout.names())):
            raise OperationFailedError(
                "no node runs any longer", help="`start` them: they go on with what was asked for"
            )
        return next((n for n in said.nodes if n.name == name), None) if said is not None else None

    # -- how it is -------------------------------------------------------------------------------------

    def status(self) -> Report:
        """How the cluster is, by its files and by what a node says."""
        layout, said = self.layout, self.said()
        of = {n.name: n for n in said.nodes} if said is not None else {}
        layout.settings()
        names = layout.names()
        lost = {n.name for n in of.values() if n.name not in names and n.state != "left"}
        return Report(
            tuple(
                NodeReport(n, self.running(n), layout.stopped(n), of.get(n), lost=n in lost)
                for n in in_order({*names, *lost})
            ),
            said,
            self.tablets() if said is not None else None,
            self._builds() if said is not None else (),
        )

    def _builds(self) -> tuple[Build, ...]:
        session = self.session()
        try:
            return tuple(session.builds())
        except ClusterError:
            return ()  # whoever answered does so no longer
        finally:
            session.close()

    def said(self, but: str = "", since: int = 0) -> StatusReply | None:
        """What the first node that answers says; of those that do, one that knows who coordinates.

        Those that have not learned the command at a position of group0 are not listened to.
        """
        found: StatusReply | None = None
        for name in self.layout.names():
            if name == but or self.running(name) is None:
                continue
            reply = self._ask(name, StatusRequest(1))
            if reply is None or reply.position < since:
                continue
            if found is None or reply.coordinator:
                found = reply
            if found is not None and found.coordinator:
                break
        return found

    def tablets(self) -> TabletsReply | None:
        """Where the tablets lie, as the first node that answers has learned it."""
        for name in self.layout.names():
            if self.running(name) is not None:
                reply = self._ask(name, TabletsRequest(1))
                if isinstance(reply, TabletsReply):
                    return reply
        return None

    def session(self, table: str = TABLE, *, waits: bool = False) -> Session:
        """A client of the nodes that run whenever it looks for one, for a table: `t` is `ks.t`.

        `waits`: for replicas that are down, as `Session` says.
        """

        def addresses() -> list[str]:
            names = [n for n in self.layout.names() if self.layout.running(n) is not None]
            return [self.layout.node_file(n).identity.host.address for n in names]

        return Session(addresses, self.layout.secret(), named(table), waits=waits)

    def _ask(self, name: str, message: Any, seconds: float = 3.0) -> Any:
        """What a node answers; None if it does not."""
        address = self.layout.node_file(name).identity.host.address
        try:
            conversation = Conversation(address, self.layout.secret(), seconds)
            try:
                return conversation.ask(message, seconds)
            finally:
                conversation.close()
        except (OSError, WireError):
            return None


def _given_up(node: NodeStatus) -> OperationFailedError:
    help = "see `stagewright cluster status`; mend that first, and ask again"
    if TOO_FEW in node.outcome:
        help = (
            "start the nodes that are down: some rows are on them alone; if these are lost, `drop table` in "
            "`stagewright shell` drops their table"
        )
    return OperationFailedError(
        f"{node.name}: the cluster gave up what it was asked for: {node.outcome}", help=help
    )


def _free_addresses(count: int, host: str) -> list[str]:
    """Addresses at which nobody listens, all held at once until they are known."""
    held: list[socket.socket] = []
    found: list[str] = []
    try:
        for port in random.sample(_PORTS, 50 * count + 100):
            if len(found) == count:
                break
            one = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            try:
                one.bind((host, port))
            except OSError:
                one.close()
                continue
            held.append(one)
            found.append(f"{host}:{port}")
    finally:
        for one in held:
            one.close()
    if len(found) < count:
        raise ClusterError(f"no free ports at {host}", help="name an address of this machine")
    return found


def named(name: str) -> str:
    """A table's whole name."""
    return name if "." in name else f"ks.{name}"
