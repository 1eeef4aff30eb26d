"""A client of a cluster: it knows the secret, asks any node that answers, and tries again at another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from stagewright.impl.catalog.names import NO_TABLE, NOT_FOR_CLIENTS, last_before, no_table
from stagewright.impl.cdc.consumer import Generation
from stagewright.impl.cdc.reading import Page, changes_of
from stagewright.impl.cdc.rows import Change, log_of
from stagewright.impl.node.messages import (
    STARTING,
    ClientRead,
    ClientReply,
    ClientScan,
    ClientWrite,
    CreateTable,
    GenerationsReply,
    GenerationsRequest,
    Level,
    Message,
    NameReply,
    NameRequest,
    OperatorReply,
    ScanReply,
    StatusReply,
    StatusRequest,
    TabletsReply,
    TabletsRequest,
    Unavailable,
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
    TableChange,
    TruncateTable,
    ViewsReply,
    ViewsRequest,
)
from stagewright.impl.processes.asking import NONE_RUNS, STARTS, Asking, Conversation
from stagewright.impl.processes.builds import Build, builds
from stagewright.impl.processes.errors import ClusterError, ReplicasUnavailableError, WireError
from stagewright.impl.views.maintenance.definition import partition_of, parts_of

_Answer = (
    ClientReply
    | ScanReply
    | GenerationsReply
    | StatusReply
    | TabletsReply
    | ViewsReply
    | NameReply
    | OperatorReply
)
PAGE = 200  # rows of a scan at a time
SECOND_OPINION = 0.5  # seconds in which another node must answer the greeting
_KNOWN = "see `tables` in `stagewright shell`"
_LOOK = 0.05  # seconds between two questions whether a statement is carried out
_LEARNED = 1.0  # seconds in which nodes learn of a table that was just made


class ViewRow(NamedTuple):
    """A row of a view: its key in the view, the key of its base row, and that row's value."""

    key: bytes
    base_key: bytes
    value: bytes


class Session(Asking):
    """Reads and writes of one client. A request that fails at one node is repeated at the next one.

    A write keeps its timestamp when it is repeated: it counts once, however often it arrives. A statement is about the table
    that had the name when it began, by its id: a node that carries it out late does nothing to another one. Where a node
    says that too few replicas are alive for the level, one other node is asked, as the first one may be wrong, and no
    more is tried.
    """

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        secret: bytes,
        table: str,
        seconds: float = 15.0,
        *,
        waits: bool = False,
    ) -> None:
        """`addresses`: of the nodes that run, asked for at each connection, for nodes come and go.

        `waits`: so many seconds are waited for replicas that are down, too, as who follows a cluster for long will want.
        """
        super().__init__(addresses, secret, seconds)
        self.table = table
        self.level = Level.quorum
        self._waits = waits
        self._short: Unavailable | None = None  # what one node has said of the request under way,
        self._writes = False  # which is a write
        self._ttl = 0  # milliseconds for which the log keeps rows
        self._last = 0
        self._learned_by = 0.0  # by then nodes know of tables that were there when it was asked

    def put(self, key: bytes, value: bytes | None) -> int:
        """Write a row, or delete it with None; its timestamp, in microseconds since 1970.

        Raises:
            ClusterError: (as of all that follow) not enough nodes answered in time. A write may have
                happened all the same.
            ReplicasUnavailableError: (as of all that read rows, too) at once, as replicas are down. The write has not
                happened, unless the error is in doubt.
        """
        stamp = self._timestamp()
        self._ask(ClientWrite(self._numbered(), self.table, key, value, stamp, self.level))
        return stamp

    def _timestamp(self) -> int:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return self._last

    def get(self, key: bytes) -> bytes | None:
        """The row of a key, if there is one."""
        reply = self._ask(ClientRead(self._numbered(), self.table, key, self.level))
        assert isinstance(reply, ClientReply)
        return reply.value

    def scan(self, limit: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in the order of their tokens."""
        yield from ((stored[8:], value) for stored, value in self._cells(limit))

    def scan_view(self, limit: int | None = None) -> Iterator[ViewRow]:
        """The rows of the table, which is a view, in the order of the tokens of their keys in it."""
        yield from (ViewRow(*parts_of(stored), value) for stored, value in self._cells(limit))

    def get_view(self, key: bytes) -> Iterator[ViewRow]:
        """The rows that the table, which is a view, has under a key."""
        partition = partition_of(key)
        for stored, value in self._cells(None, partition):
            if not stored.startswith(partition):
                return
            yield ViewRow(*parts_of(stored), value)

    def _cells(self, limit: int | None, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Stored keys and values, from a stored key on."""
        start: bytes | None = first
        left = limit
        while start is not None and left != 0:
            page = PAGE if left is None else min(PAGE, left)
            reply = self._ask(ClientScan(self._numbered(), self.table, start, page, self.level))
            assert isinstance(reply, ScanReply)
            for stored, _, value in reply.cells:
                assert value is not None, "a scan gives no tombstones"
                yield stored, value
            left = None if left is None else max(0, left - len(reply.cells))
            start = reply.following

    def tables(self) -> dict[str, int]:
        """The tables that there are with their replicas, logs among them."""
        reply = self._ask(StatusRequest(self._numbered()))
        assert isinstance(reply, StatusReply)
        return dict(reply.tables)

    def create(
        self,
        table: str,
        replicas: int,
        tablets: int = 0,
        *,
        cdc: bool = False,
        images: bool = False,
        ttl: int = 0,
    ) -> None:
        """Make a table, of so many tablets or by the token ring; one that is there and the same will do.

        With `cdc` its changes are kept in a log for `ttl` milliseconds (0: for ever); with `images`, with each row
        before its change.

        Raises:
            ClusterError: also if the cluster refuses: there are too few nodes for the replicas, for example.
        """
        made = self._which(table).id
        reply = self._ask(CreateTable(self._numbered(), made, replicas, tablets, cdc, images, ttl))
        assert isinstance(reply, OperatorReply)
        if not reply.accepted:
            raise ClusterError(reply.reason, help=reply.help or "see `stagewright cluster status`")

    def create_view(
        self, view: str, table: str, modulus: int = 0, comparison: str = "", bound: int = 0
    ) -> None:
        """Make a view of a table of tablets (as `CreateView` says); it is being built when this returns.

        Raises:
            ClusterError: also if the cluster refuses: there is no such table, for example.
        """
        base, made = self._id(table), self._which(view).id
        self._change(CreateView(self._numbered(), made, base, modulus, comparison, bound))

    def drop_view(self, view: str) -> None:
        """Drop a view, built or not; one that is not there will do.

        Raises:
            ClusterError: also if the cluster refuses.
        """
        found = self._which(view)
        if found.there:
            self._change(DropView(self._numbered(), found.id))

    def drop_table(self, table: str) -> None:
        """Drop a table with its log, whatever is done to its tablets; one that was dropped before will do.

        Raises:
            ClusterError: also if the cluster refuses: it has views, or there never was such a table.
        """
        found = self._which(table)
        meant = found.id if found.there else last_before(found.id)
        if not meant:
            raise _unknown(table)
        self._change(DropTable(self._numbered(), meant))

    def truncate(self, table: str, patience: float = 60.0) -> None:
        """Remove all rows that a table has by now, and wait until no node has any of them.

        Raises:
            ClusterError: also if the cluster refuses: it has views or a log of changes, or a node is down; or if it takes longer
                than `patience` seconds, and goes on.
        """
        meant, now = self._id(table), self._timestamp()
        self._change(TruncateTable(self._numbered(), meant, now))
        until = time.monotonic() + patience
        while (found := self._which(table)).truncated < now:
            if found.id != meant:
                raise ClusterError(f"{table} was dropped meanwhile", help=_KNOWN)
            if time.monotonic() > until:
                raise ClusterError(
                    f"{table} is not truncated yet", help="see `stagewright cluster status`"
                )
            time.sleep(_LOOK)

    def builds(self) -> list[Build]:
        """How far all views are built, as those nodes say it that answer.

        Raises:
            ClusterError: none does.
        """
        addresses = self._addresses()
        if not addresses:
            raise ClusterError(NONE_RUNS, help=STARTS)
        answers = [r.views for a in addresses if (r := self._views_of(a)) is not None]
        if not answers:
            raise ClusterError("no node answers", help="see `stagewright cluster status`")
        return builds(answers)

    def _views_of(self, address: str) -> ViewsReply | None:
        """What one node says; None: it does not answer."""
        try:
            conversation = Conversation(address, self._secret, 2.0)
            try:
                reply = conversation.ask(ViewsRequest(1))  # which is a read of group0
            finally:
                conversation.close()
        except (OSError, WireError):
            return None
        return reply if isinstance(reply, ViewsReply) else None

    def repair(self, table: str) -> None:
        """Have the tablets of a table repaired; that goes on when this returns.

        Raises:
            ClusterError: also if the cluster refuses: it is being repaired, for example.
        """
        self._change(RepairTable(self._numbered(), self._id(table)))

    def alter(self, table: str, replicas: int) -> None:
        """Let the tablets of a table have so many replicas; they gain or lose them when this returns.

        Raises:
            ClusterError: also if the cluster refuses: there are too few nodes, for example.
        """
        self._change(AlterTable(self._numbered(), self._id(table), replicas))

    def resize(self, table: str, resize: Resize) -> None:
        """Have the tablets of a table split or merged; they are so some time after this returns.

        Raises:
            ClusterError: also if the cluster refuses: it has one tablet, for example.
        """
        self._change(ResizeTable(self._numbered(), self._id(table), resize))

    def move(
        self, table: str, tablet: int, source: tuple[str, int], target: tuple[str, int]
    ) -> None:
        """Have a replica of a tablet moved from a node and shard (-1: any) to others, some time after this returns.

        Raises:
            ClusterError: also if the cluster refuses: the node has a replica of the tablet, for example.
        """
        (leaving, from_shard), (pending, to_shard), meant = source, target, self._id(table)
        self._change(
            MoveTablet(self._numbered(), meant, tablet, leaving, pending, from_shard, to_shard)
        )

    def balance(self, enabled: bool) -> None:
        """Let the balancer even loads out, or not.

        Raises:
            ClusterError: not enough nodes answered in time.
        """
        self._change(SetBalancing(self._numbered(), enabled))

    def _which(self, name: str) -> NameReply:
        """Which table or view has a name now, or which one would have it."""
        reply = self._ask(NameRequest(self._numbered(), name))
        assert isinstance(reply, NameReply)
        return reply

    def _id(self, name: str) -> str:
        """The id of a table or view that is there."""
        found = self._which(name)
        if not found.there:
            raise _unknown(name)
        return found.id

    def _change(self, request: TableChange | CreateView | DropView) -> None:
        reply = self._ask(request)
        assert isinstance(reply, OperatorReply)
        if not reply.accepted:
            raise ClusterError(
                reply.reason, help=reply.help or "see `tablets` in `stagewright shell`"
            )

    def tablets(self) -> TabletsReply:
        """Where the tablets lie, as one node has learned it."""
        reply = self._ask(TabletsRequest(self._numbered()))
        assert isinstance(reply, TabletsReply)
        return reply

    def generations(self) -> list[Generation]:
        """The CDC generations that are published."""
        reply = self._ask(GenerationsRequest(self._numbered(), self.table))
        assert isinstance(reply, GenerationsReply)
        self._ttl = reply.ttl
        return [Generation(start, streams) for start, streams in reply.generations]

    def kept_from(self) -> int:
        """Before this time (microseconds) changes may have expired, as of when generations were asked for."""
        margin = 1_000_000  # clocks may differ
        return time.time_ns() // 1000 - 1000 * self._ttl + margin if self._ttl else 0

    def changes(self, streams: Sequence[bytes], start: int, end: int) -> list[Change]:
        """The changes of streams in the table's log with start <= timestamp < end."""
        return [c for s in streams for c in changes_of(s, start, end, self._page_of_log)]

    def _page_of_log(self, start: bytes, end: bytes) -> Page:
        wanted = ClientScan(self._numbered(), log_of(self.table), start, PAGE, self.level, end)
        reply = self._ask(wanted)
        assert isinstance(reply, ScanReply)
        return [(key, value) for key, _, value in reply.cells if value is not None], reply.following

    def _ask(self, message: Message) -> _Answer:
        how = f" at level {self.level.value}"
        self._short, self._writes = None, isinstance(message, ClientWrite)
        self._learned_by = time.monotonic() + _LEARNED
        reply = self._answer(message, self._fault, how, ", or ask for a lower level")
        assert isinstance(reply, _Answer)
        return reply

    def _fault(self, reply: _Answer) -> str:
        """The same as `_failure`; raises what two nodes agree on, or that a table is not there, or not a client's."""
        short = reply.unavailable if isinstance(reply, ClientReply | ScanReply) else None
        self._in_doubt |= isinstance(reply, ClientReply) and not reply.succeeded and short is None
        if short is None or self._waits:
            why = _failure(reply)
            final = why.startswith(NO_TABLE) or why.endswith(NOT_FOR_CLIENTS)
            if final and time.monotonic() > self._learned_by:
                raise ClusterError(why, help=_KNOWN)
            return why
        if self._short is not None:
            raise self._unavailable(short)
        self._short = short
        return str(short)

    def _connect(self, seconds: float | None = None) -> Conversation:
        if self._short is None:
            return super()._connect(seconds)
        try:
            return super()._connect(SECOND_OPINION)
        except (OSError, WireError):  # what the first one has said stands
            raise self._unavailable(self._short) from None

    def _unavailable(self, short: Unavailable) -> ReplicasUnavailableError:
        return ReplicasUnavailableError(short, writes=self._writes, in_doubt=self._in_doubt)


def _unknown(table: str) -> ClusterError:
    return ClusterError(no_table(table), help=_KNOWN)


def _failure(reply: _Answer) -> str:
    """Why another node, or another time, may give a better answer; empty if none will."""
    match reply:
        case StatusReply() | TabletsReply() | ViewsReply():
            return ""
        case OperatorReply(reason=reason):
            return reason if reason.endswith(STARTING) else ""
        case _:
            return "" if reply.succeeded else reply.reason
