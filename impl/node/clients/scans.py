"""Scans of clients: range by range in the order of tokens, each from enough replicas, newest versions first.

Neighbouring ranges that the same replicas have are read as one: where each node has all rows, a scan is one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from stagewright.impl.catalog.names import no_table
from stagewright.impl.catalog.view import View
from stagewright.impl.node.clients.availability import too_few
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
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


@dataclass(frozen=True)
class ReadRange:
    """Stored keys from `first` up to `end`, None for all that follow, and the replicas that reads ask for them."""

    first: bytes
    end: bytes | None
    replicas: tuple[str, ...]
    factor: int  # of how many replicas a quorum is one


def read_ranges(view: View, table: str) -> Iterator[ReadRange]:
    """The ranges of a table in the order of tokens, as few as there can be."""

    def replicas(item: tuple[int, int]) -> tuple[tuple[str, ...], int]:
        chosen = view.replicas(table, item[1])
        return tuple(sorted(chosen.reads)), view.factor(table, chosen, writes=False)

    for (asked, factor), joined in groupby(view.ranges_of(table), replicas):
        (low, high), *more = joined
        first, end = bounds(low, more[-1][1] if more else high)
        yield ReadRange(first, end, asked, factor)


def within(ranges: Iterable[ReadRange], start: bytes, end: bytes | None) -> list[ReadRange]:
    """Those of ranges with stored keys from `start` on; they end at `end`, if that is not None."""
    left = [one for one in ranges if one.end is None or start < one.end]
    if end is None:
        return left
    return [
        one if one.end is not None and one.end <= end else replace(one, end=end)
        for one in left
        if one.first < end
    ]


@dataclass
class _Open:
    client: str
    request: ClientScan
    start: bytes
    view: View
    ranges: list[ReadRange]  # of the view, from the start on
    version: int = 0  # of the topology when the range was asked for
    cells: list[Cell] = field(default_factory=list[Cell])  # found so far, without tombstones
    targets: tuple[str, ...] = ()
    needed: int = 0
    end: bytes | None = None
    asked: int = 0  # the number of the range that is asked for
    answers: dict[str, ReplicaRows] = field(default_factory=dict[str, ReplicaRows])


class Scans:
    """The open scans of one node."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._open: dict[int, _Open] = {}
        self._laid: View | None = None
        self._of_table: dict[str, list[ReadRange]] = {}  # in that view

    def begin(self, client: str, request: ClientScan) -> list[Effect]:
        """Read the first range."""
        node = self._node
        own = node.view.nodes.get(node.name)
        if not node.ready or own is None or not own.state.owns:
            reason = f"{node.name} does not serve clients now"
            return [Send(client, ScanReply(request.number, False, reason=reason))]
        request = replace(request, table=node.view.named(request.table))
        if request.table not in node.view.tables:
            reason = no_table(request.table)
            return [Send(client, ScanReply(request.number, False, reason=reason))]
        return self._next(_Open(client, request, request.start, node.view, self._ranges(request)))

    def _ranges(self, request: ClientScan) -> list[ReadRange]:
        """The ranges of what is asked for, which may end within the last one."""
        view, table = self._node.view, request.table
        if self._laid is not view:
            self._laid, self._of_table = view, {}
        if table not in self._of_table:
            self._of_table[table] = [*read_ranges(view, table)]
        return within(self._of_table[table], request.start, request.end)

    def _next(self, scan: _Open) -> list[Effect]:
        """Ask for the range at which the scan stands."""
        node, view, request = self._node, self._node.view, scan.request
        if request.table not in view.tables:
            return [self._fail(scan, f"{no_table(request.table)} any longer")]
        if view is not scan.view:
            scan.view, scan.ranges = view, self._ranges(request)
        while scan.ranges and scan.ranges[0].end is not None and scan.ranges[0].end <= scan.start:
            del scan.ranges[0]
        if not scan.ranges:
            return [self._end(scan, None)]
        asked = scan.ranges[0]
        quorum = {
            Level.one: 1,
            Level.quorum: asked.factor // 2 + 1,
            Level.all: len(asked.replicas),
        }
        scan.needed = quorum[request.level]
        if node.has(Defect.scans_ask_one_replica):
            scan.needed = 1
        scan.targets, scan.answers, scan.end = asked.replicas, {}, asked.end
        if short := too_few(node, request.level, ((scan.targets, scan.needed),)):
            reply = ScanReply(request.number, False, reason=str(short), unavailable=short)
            return [Send(scan.client, reply)]
        scan.version, scan.asked = view.version, node.number()
        self._open[scan.asked] = scan
        low, left = max(asked.first, scan.start), request.limit - len(scan.cells)
        message = ReplicaScan(scan.asked, scan.version, request.table, low, asked.end, left)
        wake = Wake(node.timing.request, ("scan", scan.asked))
        return [*(Send(n, message) for n in scan.targets), wake]

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
