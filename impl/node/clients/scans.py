"""Scans of clients: range by range in the order of tokens, each from enough replicas, newest versions first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stagewright.impl.node.context import Context
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import (
    Cell,
    ClientScan,
    Level,
    Outcome,
    ReplicaRows,
    ReplicaScan,
    ScanReply,
)
from stagewright.impl.node.port import Effect, Send, Wake


@dataclass
class _Open:
    client: str
    request: ClientScan
    version: int
    start: bytes
    cells: list[Cell] = field(default_factory=list[Cell])  # found so far, without tombstones
    targets: tuple[str, ...] = ()
    needed: int = 0
    low: bytes = b""
    end: bytes | None = None
    asked: int = 0  # the number of the range that is asked for
    answers: dict[str, ReplicaRows] = field(default_factory=dict[str, ReplicaRows])


class Scans:
    """The open scans of one node."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._open: dict[int, _Open] = {}

    def begin(self, client: str, request: ClientScan) -> list[Effect]:
        """Read the first range."""
        node = self._node
        own = node.view.nodes.get(node.name)
        if not node.ready or own is None or not own.state.owns:
            reason = f"{node.name} does not serve clients now"
            return [Send(client, ScanReply(request.number, False, reason=reason))]
        request = replace(request, table=node.view.named(request.table))
        if request.table not in node.view.tables:
            reason = f"there is no table {request.table}"
            return [Send(client, ScanReply(request.number, False, reason=reason))]
        return self._next(_Open(client, request, node.view.version, request.start))

    def _next(self, scan: _Open) -> list[Effect]:
        """Ask for the range at which the scan stands."""
        node, view = self._node, self._node.view
        for low, high in view.ranges_of(scan.request.table):
            first, end = bounds(low, high)
            if end is not None and end <= scan.start:
                continue
            chosen = view.replicas(scan.request.table, high)
            factor = view.factor(scan.request.table, chosen, writes=False)
            quorum = {Level.one: 1, Level.quorum: factor // 2 + 1, Level.all: len(chosen.reads)}
            scan.needed = quorum[scan.request.level]
            scan.targets, scan.answers, scan.end = chosen.reads, {}, end
            scan.low = max(first, scan.start)
            scan.version = view.version
            scan.asked = node.number()
            if len(scan.targets) < scan.needed:
                return [self._fail(scan, f"{len(scan.targets)} replicas of {scan.needed}")]
            self._open[scan.asked] = scan
            left = scan.request.limit - len(scan.cells)
            message = ReplicaScan(scan.asked, scan.version, scan.request.table, scan.low, end, left)
            wake = Wake(node.timing.request, ("scan", scan.asked))
            return [*(Send(n, message) for n in scan.targets), wake]
        return [self._end(scan, None)]

    def reply(self, sender: str, rows: ReplicaRows) -> list[Effect]:
        """A replica has answered."""
        scan = self._open.get(rows.number)
        if scan is None or sender not in scan.targets:
            return []
        if rows.outcome is Outcome.done:
            scan.answers[sender] = rows
        if len(scan.answers) < scan.needed:
            return []
        del self._open[rows.number]
        newest: dict[bytes, Cell] = {}
        for cell in (c for answer in scan.answers.values() for c in answer.cells):
            if cell[0] not in newest or newest[cell[0]][1] < cell[1]:
                newest[cell[0]] = cell
        # After the last row of an answer that was cut short, that replica may have more.
        sure = min((a.cells[-1][0] for a in scan.answers.values() if a.full), default=None)
        for key in sorted(newest):
            if sure is not None and key > sure:
                break
            if newest[key][2] is None:
                continue
            if len(scan.cells) == scan.request.limit:
                return [self._end(scan, key)]
            scan.cells.append(newest[key])
        if sure is not None:
            scan.start = sure + b"\0"
        elif scan.end is None:
            return [self._end(scan, None)]
        else:
            scan.start = scan.end
        if len(scan.cells) == scan.request.limit:
            return [self._end(scan, scan.start)]
        return self._next(scan)

    def give_up(self, number: int) -> list[Effect]:
        """The time for a range is over."""
        scan = self._open.pop(number, None)
        return [] if scan is None else [self._fail(scan, "timed out")]

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer."""
        return len(self._open)

    @property
    def versions(self) -> tuple[int, ...]:
        """Under which versions the ranges that are being read began."""
        return tuple(s.version for s in self._open.values())

    def drained(self, version: int) -> bool:
        """Whether no range is read under an older version."""
        return all(s.version >= version for s in self._open.values())

    @staticmethod
    def _end(scan: _Open, following: bytes | None) -> Send:
        cells = tuple(scan.cells)
        return Send(scan.client, ScanReply(scan.request.number, True, cells, following))

    @staticmethod
    def _fail(scan: _Open, reason: str) -> Send:
        return Send(scan.client, ScanReply(scan.request.number, False, reason=reason))
