"""Files in which lines of several nodes stand, and none says of which node it is.

Nobody can say then what one node did after another: what is wrong from there on is undecided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stagewright.spec.trace import Event
from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.lines import barriers, topology
from stagewright.traces.databases.scylladb.log.order import Placed
from stagewright.traces.readers.protocol import Unsure

_BEGINS = "Starting new topology coordinator "  # and the host id of the node that is it
_ENDS = frozenset({barriers.LOST, topology.DEPOSED, topology.FAILED})

Line = tuple[int, int]  # part and number


@dataclass
class _Led:
    """What a file without names of nodes has said of topology coordinators."""

    at: int = -1  # where the last one began
    host: str = ""
    ended: bool = True
    doubtful: int = -1  # where one began though the one before it had not ended


class _File:
    def __init__(self) -> None:
        self.led = _Led()
        self.fences: set[tuple[str, str]] = set()  # shards and versions, since the node started
        self.mixed: int | None = None  # from where on

    def see(self, at: int, one: Placed) -> None:
        """One more line."""
        record, led = one.record, self.led
        if self.mixed is not None:
            return
        if record.says == versions.STARTS:
            self.fences.clear()
            led.ended = True
        elif record.says in _ENDS:
            led.ended = True
        elif record.says == topology.LEADER:
            doubtful = at if not led.ended else -1
            if led.doubtful >= 0:  # of which nothing has said who it was
                self.mixed = led.doubtful
                return
            self.led = _Led(at, led.host, ended=False, doubtful=doubtful)
        elif record.says == topology.COMMIT and record.words["reason"].startswith(_BEGINS):
            host = record.words["reason"].removeprefix(_BEGINS).strip()
            if led.host and host != led.host:
                self.mixed = led.at
            self.led = _Led(led.at, host, led.ended)
        elif record.says == barriers.FENCED:
            fence = record.shard, record.words["version"]
            if fence in self.fences:
                self.mixed = at
            self.fences.add(fence)

    def end(self) -> int | None:
        """From which line on it is not known of which node a line is; None if all may be of one."""
        if self.mixed is None and self.led.doubtful >= 0:
            return self.led.doubtful
        return self.mixed


def lines_of_several_nodes(placed: Sequence[Placed]) -> tuple[set[Line], list[str]]:
    """The lines of which it is not known which node wrote them; and the files that they are in."""
    files: dict[str, _File] = {}
    for at, one in enumerate(placed):
        if not one.record.named:
            files.setdefault(one.record.node, _File()).see(at, one)
    ends = {name: file.end() for name, file in files.items()}
    since = {name: at for name, at in ends.items() if at is not None}
    found = {
        (one.part, one.record.line)
        for at, one in enumerate(placed)
        if not one.record.named and at >= since.get(one.record.node, len(placed))
    }
    return found, sorted(since)


def unsure(events: Sequence[tuple[int, Event]], lines: Collection[Line]) -> list[Unsure]:
    """The entities of which such lines say something."""
    if not lines:
        return []
    by_entity: dict[tuple[str, str], list[tuple[int, Event]]] = {}
    first: dict[tuple[str, str], int] = {}
    for part, event in events:
        key = event.machine, event.entity
        by_entity.setdefault(key, []).append((part, event))
        if (part, event.line) in lines:
            first.setdefault(key, event.sequence)
    return [Unsure(by_entity[key], number, mixed=True) for key, number in first.items()]
