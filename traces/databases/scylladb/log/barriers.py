"""Follows barriers and fences through the lines of each node; nothing depends on the clocks of several nodes.

Whether a node had answered before its fence rose, the node's own log says. Which fences need every answer the
coordinators' lines say: those that advance after a barrier which excluded nobody and did not fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import barriers, tablets, topology
from stagewright.traces.databases.scylladb.log.order import Placed

_IN_FLIGHT = 1_000_000  # microseconds for which a deposed coordinator may end what it has begun
_EXECUTES_IN_LOG = (6, 0)  # the first release of which it is known


@dataclass
class _Shard:
    """What one shard of a node has said in one life."""

    acknowledged: int = -1  # the latest version
    got: set[int] = field(default_factory=set[int])


@dataclass
class _Tenure:
    """The tenure that a node's coordinator is in; `evaluated` ends where it is not known what was committed."""

    key: str
    evaluated: bool = True
    lost_at: int | None = None
    entered: str = ""  # the state that it entered last
    fence: int = 0  # to which it has advanced
    grown: bool = False  # a node has been accepted since


class Barriers:
    """The entities of barriers, fences and tenures."""

    def __init__(self, book: Book, placed: Sequence[Placed], parts: Sequence[str]) -> None:
        self._book = book
        self._full = _full_fences(placed)
        done = any(p.record.says == barriers.DONE for p in placed)
        self._says_done = done and len(parts) <= 1  # releases of which some do not say it: unknown
        known = [v for v in map(versions.version_of, parts) if v is not None]
        executes = any(p.record.says == barriers.EXECUTED for p in placed)
        self._executes = min(known) >= _EXECUTES_IN_LOG if known else executes
        self._shards: dict[tuple[str, str], _Shard] = {}
        self._ever: set[tuple[str, str, int]] = set()  # acknowledged, in any life
        self._started: set[str] = set()
        self._tenures: dict[str, _Tenure] = {}
        self._number: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()

    def see(self, one: Placed, source: Source) -> None:
        """The next line, whether the reader believes what it says of commits or not."""
        record, says = one.record, one.record.says
        match says:
            case versions.STARTS:
                self._start(record.node)
            case barriers.GOT:
                self._got(one, source)
            case barriers.DONE:
                self._done(one, source)
            case barriers.FENCED:
                self._fenced(one, source)
            case topology.LEADER:
                self._lead(record.node)
            case topology.COMMIT:
                self._commit(one, source)
            case barriers.LOST:
                if (tenure := self._tenures.get(record.node)) is not None:
                    tenure.lost_at = one.time
            case barriers.FAILED:
                self._act(record.node, "fail_barrier", source)
            case barriers.EXECUTED:
                self._outlast(one, source)
                self._act(record.node, "execute_barrier", source)
            case topology.ENTERED:
                self._outlast(one, source)
                if (tenure := self._tenures.get(record.node)) is not None:
                    tenure.entered = record.words["state"]
            case topology.FOUND:
                self._outlast(one, source)
            case tablets.WILL_SET | tablets.IS_IN:
                self._move_tablet(record.node, source)
            case _:
                pass

    def _add(self, machine: str, key: str, action: str, source: Source) -> None:
        if (machine, key) not in self._known:
            self._known.add((machine, key))
            self._book.add(Effect(machine, key, {}, source))
        self._book.add(Effect(machine, key, {}, source, action))

    # -- nodes ---------------------------------------------------------------------------------------------

    def _start(self, node: str) -> None:
        """A process starts: what it was asked before is forgotten, the banner stands twice."""
        self._started.add(node)
        for key in [k for k in self._shards if k[0] == node]:
            del self._shards[key]
        self._tenures.pop(node, None)

    def _shard(self, one: Placed) -> _Shard:
        return self._shards.setdefault((one.record.node, one.record.shard), _Shard())

    def _barrier(self, one: Placed, version: int, action: str, source: Source) -> None:
        key = f"version {version} at {one.record.node}, shard {one.record.shard}"
        self._add(barriers.BARRIER, key, action, source)

    def _got(self, one: Placed, source: Source) -> None:
        words, shard = one.record.words, self._shard(one)
        version = int(words["version"])
        shard.got.add(version)
        if int(words["current"]) >= version:
            self._barrier(one, version, "learn", source)
        older = barriers.versions_in(words.get("stale", ""))
        if older and min(older) < shard.acknowledged:
            self._barrier(one, shard.acknowledged, "find_older_request", source)

    def _done(self, one: Placed, source: Source) -> None:
        version, shard = int(one.record.words["version"]), self._shard(one)
        if version not in shard.got:  # the log begins in the middle
            self._barrier(one, version, "learn", source)
        self._barrier(one, version, "acknowledge", source)
        shard.acknowledged = max(shard.acknowledged, version)
        self._ever.add((one.record.node, one.record.shard, version))

    def _fenced(self, one: Placed, source: Source) -> None:
        words, node = one.record.words, one.record.node
        if "before" not in words:
            return
        version, before = int(words["version"]), int(words["before"])
        name = f"fence of {node}, shard {one.record.shard}"
        self._add(barriers.FENCE, name, "learn", source)
        if version <= before:  # the line itself says that there was a later one
            self._add(barriers.FENCE, name, "learn_earlier", source)
        known = node in self._started or self._shard(one).acknowledged >= 0
        if before and known and self._says_done and version in self._full:
            self._barrier(one, version, "learn_fence", source)

    # -- coordinators --------------------------------------------------------------------------------------

    def _lead(self, node: str) -> None:
        self._number[node] += 1
        self._tenures[node] = _Tenure(f"tenure {self._number[node]} of {node}")

    def _act(self, node: str, action: str, source: Source) -> None:
        tenure = self._tenures.get(node)
        if tenure is not None and tenure.evaluated and self._executes:
            self._add(barriers.TENURE, tenure.key, action, source)

    def _move_tablet(self, node: str, source: Source) -> None:
        """A tablet moves, in the state that the log says was entered last, if it says so."""
        tenure = self._tenures.get(node)
        if tenure is None or not tenure.entered:
            return
        moves = tenure.entered in barriers.TABLETS_MOVE_IN
        self._act(node, "enter_tablet_track" if moves else "enter_another_state", source)
        self._act(node, "move_tablet", source)

    def _outlast(self, one: Placed, source: Source) -> None:
        """A coordinator that was deposed a while ago goes on."""
        tenure = self._tenures.get(one.record.node)
        if tenure is None or tenure.lost_at is None or one.time is None:
            return
        if one.time - tenure.lost_at > _IN_FLIGHT:
            self._act(one.record.node, "lose_leadership", source)
            tenure.lost_at = None
            if one.record.says in (topology.ENTERED, topology.FOUND):
                self._act(one.record.node, "change", source)

    def _commit(self, one: Placed, source: Source) -> None:
        reason, node = one.record.words["reason"], one.record.node
        tenure = self._tenures.get(node)
        if tenure is None or one.lost or topology.fiber_of(reason):
            return
        if one.unknown or one.left_open or one.tenure == -1:
            tenure.evaluated = False
            return
        if (version := barriers.fenced_by(reason)) is not None:
            # Else it stays, and all have acknowledged it.
            if version != tenure.fence or tenure.grown:
                self._act(node, "advance_fence", source)
            tenure.fence, tenure.grown = version, False
            return
        tenure.grown |= barriers.accepts_a_node(reason)
        if barriers.leaves_a_state(reason):
            self._act(node, "leave_state", source)
        elif barriers.changes_who_takes_part(reason):
            self._act(node, "change", source)


def _full_fences(placed: Sequence[Placed]) -> set[int]:
    """The versions of which every coordinator that fenced them had the answers of all nodes."""
    full, partial = set[int](), set[int]()
    left_out: dict[str, bool] = {}  # by node: whether its last barrier left somebody out
    for one in placed:
        record = one.record
        match record.says:
            case barriers.EXECUTED:
                left_out[record.node] = bool(record.words.get("excluded", "?"))
            case barriers.PROCEEDS:
                left_out[record.node] = True
            case topology.COMMIT:
                version = barriers.fenced_by(record.words["reason"])
                if version is not None and not one.lost:
                    (partial if left_out.get(record.node) else full).add(version)
            case _:
                pass
    return full - partial
