"""Reads Couchbase's master events (JSON lines of `/diag/masterEvents`): how partitions move between nodes.

Each move of a partition from one active node to another is evaluated against `PartitionRebalance`, with the two nodes
as node0 and node1: its index begins on the new node, the old one is paused, the new one takes over when its
index has caught up, becomes active, the map is changed, and the old one is cleaned up. What the nodes do in
between is hidden; a kind of event that no line of the log has is hidden, too (versions differ in what they log).

The orchestrator's own events come in the order in which things happen; a `vbucketStateChange` is sent by the node
that changes, and may come late.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.spec.values import FrozenMap
from stagewright.traces.databases.names import called, leaf, sizes, step
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.readers.prefilter import sorted_out
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import line_parts, lines_of

MACHINE = called(PartitionRebalance)
FORM = "couchbase-master-events"
_PROBE_BYTES = 1 << 20
EVENT = r'"ts"\s*:\s*\d+(?:\.\d+)?[^\n]*"type"\s*:\s*"[a-z]\w*"|"type"\s*:\s*"[a-z]\w*"[^\n]*"ts"\s*:\s*\d'

R = PartitionRebalance
_START, _TAKE_OVER, _ACTIVATE = step(R.start), step(R.take_over), step(R.activate)
_MAP, _FINISH, _STOP = step(R.update_map), step(R.finish), step(R.stop)
# Which step an event stands for.
_STEP_OF_KIND = {
    "indexingInitiated": _START,
    "backfillPhaseStarted": _START,
    "takeoverEnded": _TAKE_OVER,
    "updateMap": _MAP,
    "vbucketMoveDone": _FINISH,
    "vbucketMoverTerminate": _STOP,
}
_TYPES = (
    *_STEP_OF_KIND,
    "vbucketStateChange",
    "vbucketMoveStart",
    "waitIndexUpdatedStarted",
    "takeoverStarted",
    "becameMaster",
)
_RELEVANT = rf'"type"\s*:\s*"(?:{"|".join(_TYPES)})"|^\s*[^\s{{]'
_HIDDEN = frozenset(
    {
        *(
            step(action)
            for action in (
                R.create,
                R.write,
                R.replicate,
                R.index,
                R.apply_pending_transition,
                R.pause,
            )
        ),
        *(step(action) for action in (R.release_old, R.resume)),
        step(R.clean),
        _ACTIVATE,  # reported by the node, maybe late
    }
)
_P, _OLD, _NEW = Partition(0).name, Node(0).name, Node(1).name
_MOVE, _MASTER = leaf(R.move, Partition(0)), leaf(R.master, Partition(0))


@dataclass(frozen=True)
class MasterEvent:
    """One event that matters. `node` as the event names it: a node, or its host and port."""

    kind: str
    line: int
    time: int  # microseconds since 1970
    bucket: str = ""
    vbucket: int = -1
    node: str = ""
    name: str = ""  # of the same node, where the event has both
    state: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def check(path: Path) -> None:
    """Raise an `InputError` if no line in the first megabyte is a master event."""
    part = Part(0, str(path), FORM, 0, min(path.stat().st_size, _PROBE_BYTES))
    for lines in lines_of(part):
        if sorted_out(lines, EVENT)[1]:
            return
        break
    raise InputError(
        f"{path} does not look like Couchbase's master events",
        help='its lines have `"type":"vbucketMoveStart"` and the like; is the --format right?',
    )


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines."""
    return line_parts(path)


def extract(part: Part, tally: Tally) -> list[MasterEvent]:
    """The events of a part that say something of moves; the others count as `other`."""
    found: list[MasterEvent] = []
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, "the line is too long")
            continue
        blank, relevant = sorted_out(lines, _RELEVANT)
        tally.blank += blank
        tally.other += len(lines) - blank - len(relevant)
        for index in relevant:
            number = lines.first + index
            event = parse_event(lines.text(index), number)
            if isinstance(event, str):
                tally.refuse(number, event)
                continue
            tally.other += 1  # until it is known to be an event
            if event is not None:
                found.append(event)
    return found


def parse_event(text: bytes, line: int) -> MasterEvent | str | None:
    """What a line says of moves; None if nothing, a reason if it should but cannot be understood."""
    try:
        parsed: object = json.loads(text)
    except UnicodeDecodeError as error:
        return f"not UTF-8 text at byte {error.start + 1}"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(parsed, dict):
        return "not a JSON object"
    event = cast("dict[str, Any]", parsed)
    kind, time = event.get("type"), event.get("ts")
    if kind not in _TYPES:
        return None
    if isinstance(time, bool) or not isinstance(time, int | float):
        return f"`{kind}` without a time `ts`"
    node, name = event.get("host", event.get("node", "")), event.get("node", "")
    chains = event.get("chainBefore", []), event.get("chainAfter", [])
    if kind == "vbucketMoveStart":  # its node is the one that has the partition
        node = chains[0][0] if isinstance(chains[0], list) and chains[0] else ""
    texts = (event.get("bucket", ""), node, name, event.get("state", event.get("reason", "")))
    vbucket = event.get("vbucket", -1)
    if not all(isinstance(t, str) for t in texts) or not isinstance(vbucket, int):
        return f"`{kind}` with a bucket, partition or node that is none"
    if kind != "becameMaster" and (not texts[0] or vbucket < 0):
        return f"`{kind}` without its bucket and partition"
    for chain in chains:
        if not isinstance(chain, list) or not all(isinstance(n, str) for n in chain):
            return f"`{kind}` with a chain that is none"
    if kind in ("vbucketMoveStart", "updateMap") and not all(chains):
        return f"`{kind}` without chainBefore or chainAfter"
    return MasterEvent(
        str(kind), line, round(time * 1_000_000), texts[0], vbucket, *texts[1:], *map(tuple, chains)
    )


def interpret(files: Sequence[Sequence[tuple[int, MasterEvent]]], profile: str = "") -> Interpreted:
    """What the events of all files, each a list of (part, event) in order, mean together."""
    keyed: list[tuple[tuple[int, int, int], int, MasterEvent]] = []
    for number, events in enumerate(files):
        latest = 0
        for position, (part, event) in enumerate(events):
            latest = max(latest, event.time)
            keyed.append(((latest, number, position), part, event))
    keyed.sort(key=lambda k: k[0])
    kinds = {event.kind for _, _, event in keyed}
    steps = {step for kind, step in _STEP_OF_KIND.items() if kind in kinds}
    hidden = _HIDDEN | (set(_STEP_OF_KIND.values()) - steps)
    moves = _Moves(profile, steps)
    for _, part, event in keyed:
        moves.take(part, event)
    recording = Recording(
        HiddenSteps(hidden),
        False,
        False,
        FrozenMap(sizes({Partition: 1})),
        FrozenMap({R.queries.name: 0}),
        numbered=frozenset(sizes({Node: 2, Partition: 1})),
    )
    return Interpreted(moves.events, {MACHINE: recording}, moves.notes())


@dataclass
class _Move:
    """One move that is going on."""

    entity: str
    old: str
    new: str
    steps: set[str] = field(default_factory=set[str])
    sequence: int = 0
    paused: bool = False
    done: tuple[int, MasterEvent] | None = None


class _Moves:
    """Follows the moves of all partitions."""

    def __init__(self, profile: str, steps: Iterable[str]) -> None:
        self.events: list[tuple[int, Event]] = []
        self._profile = profile
        self._logged = frozenset(steps)
        self._moves: dict[tuple[str, int], _Move] = {}
        self._numbers: Counter[tuple[str, int]] = Counter()
        self._names: dict[str, str] = {}  # of hosts, where nodes have two names
        self._counts: Counter[str] = Counter()

    def notes(self) -> list[str]:
        """What was noticed."""
        open_ = len(self._moves)
        counts = self._counts + Counter({"moves are not at their end": open_})
        return [f"{count} {what}" for what, count in sorted(counts.items())]

    def take(self, part: int, event: MasterEvent) -> None:
        """Go on with the next event."""
        if event.name and event.node and event.kind in ("vbucketMoveStart", "becameMaster"):
            self._names.setdefault(event.name, event.node)
        key = event.bucket, event.vbucket
        if event.kind == "vbucketMoveStart":
            self._begin(part, event, key)
            return
        move = self._moves.get(key)
        if move is None:
            return
        match event.kind:
            case "indexingInitiated" | "backfillPhaseStarted":
                self._once(part, event, move, _START, {_MOVE: Move.indexing.name})
            case "waitIndexUpdatedStarted" | "takeoverStarted":
                if not move.paused:
                    move.paused = True
                    self._event(part, event, move, None, {_MOVE: Move.paused.name})
            case "takeoverEnded":
                self._once(part, event, move, _TAKE_OVER, {_MOVE: Move.taken_over.name})
            case "vbucketStateChange":
                self._changed(part, event, move)
            case "updateMap":
                self._mapped(part, event, move, key)
            case "vbucketMoveDone":
                move.done = part, event
            case "vbucketMoverTerminate":
                self._terminated(part, event, move, key)
            case _:
                pass
        self._maybe_finished(move, key)

    def _begin(self, part: int, event: MasterEvent, key: tuple[str, int]) -> None:
        if key in self._moves:
            self._finish(self._moves.pop(key))
        old, new = self._node(event.before[0]), self._node(event.after[0])
        if old in ("", "undefined") or old == new:
            return  # it begins, or only its replicas move
        self._numbers[key] += 1
        number = self._numbers[key]
        move = _Move(f"{event.bucket}/{event.vbucket}/move{number}", old, new)
        self._moves[key] = move
        self._event(part, event, move, None, {_MASTER: _OLD, _MOVE: Move.none.name})

    def _changed(self, part: int, event: MasterEvent, move: _Move) -> None:
        if self._node(event.node) != move.new or event.state != "active":
            return
        if _MAP in move.steps and _ACTIVATE not in move.steps:
            self._counts["nodes reported late that a partition is active there"] += 1
            move.steps.add(_ACTIVATE)
            return
        self._once(part, event, move, _ACTIVATE, {_MOVE: Move.activated.name})

    def _mapped(self, part: int, event: MasterEvent, move: _Move, key: tuple[str, int]) -> None:
        if self._node(event.after[0]) == move.new:
            seen = {_MOVE: Move.mapped.name, _MASTER: _NEW}
            self._once(part, event, move, _MAP, seen)
        elif self._node(event.after[0]) != move.old:
            self._counts["moves were overtaken by another change of the map"] += 1
            del self._moves[key]

    def _terminated(self, part: int, event: MasterEvent, move: _Move, key: tuple[str, int]) -> None:
        if event.state == "normal" or move.done is not None:
            return
        del self._moves[key]
        if _START in move.steps and _TAKE_OVER not in move.steps:
            self._once(part, event, move, _STOP, {_MOVE: Move.none.name})
        self._counts["moves were stopped"] += 1

    def _maybe_finished(self, move: _Move, key: tuple[str, int]) -> None:
        """The map may be changed before a move is done, or (in older versions) after that."""
        if move.done is not None and (_MAP in move.steps or _MAP not in self._logged):
            self._moves.pop(key, None)
            self._finish(move)

    def _finish(self, move: _Move) -> None:
        if move.done is None:
            self._counts["moves have no end in the log"] += 1
            return
        part, event = move.done
        self._once(part, event, move, _FINISH, {_MOVE: Move.none.name})

    def _once(
        self, part: int, event: MasterEvent, move: _Move, step: str, seen: Mapping[str, object]
    ) -> None:
        if step not in move.steps:
            move.steps.add(step)
            self._event(part, event, move, step, seen)

    def _event(
        self,
        part: int,
        event: MasterEvent,
        move: _Move,
        action: str | None,
        seen: Mapping[str, object],
    ) -> None:
        nodes = {_START: {"old": _OLD, "new": _NEW}, _TAKE_OVER: {"old": _OLD, "new": _NEW}}
        nodes |= {step: {"new": _NEW} for step in (_ACTIVATE, _MAP, _STOP)}
        nodes[_FINISH] = {"old": _OLD}
        found = Event(
            trace="",
            machine=MACHINE,
            profile=self._profile,
            definition="",
            entity=move.entity,
            sequence=move.sequence,
            node=event.node,
            action=action,
            parameters={"p": _P, **nodes[action]} if action else {},
            observed=dict(seen),
            time=event.time,
            line=event.line,
        )
        move.sequence += 1
        self.events.append((part, found))

    def _node(self, name: str) -> str:
        return self._names.get(name, name)
