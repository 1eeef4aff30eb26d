"""Follows the stages of tablets through one coordinator's lines: which barrier a stage waited for, whether a cleanup was over.

A stage is entered where its commit is, unless that was lost. A new coordinator knows of no barrier before it: it asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import (
    barriers,
    row_work,
    schema,
    tablets,
    topology,
)
from stagewright.traces.databases.scylladb.log.order import Placed

_BARRIERS_IN_LOG = (6, 0)  # the first release of which it is known
_CLEANUPS_IN_LOG = (2026, 2)  # and that the end of each cleanup leaves a line

# These are entered from one stage only, and after its barrier.
_AFTER_BARRIER = frozenset(
    s.name for s in (Stage.rebuild_repair, Stage.use_new, Stage.cleanup, Stage.revert_migration)
)
# These may be entered without one, too: from other stages than these.
_AFTER_BARRIER_OF = {
    Stage.streaming.name: Stage.write_both_read_old.name,
    Stage.cleanup_target.name: Stage.write_both_read_old_fallback_cleanup.name,
}
_LAST = frozenset(s.name for s in (Stage.end_migration, Stage.revert_migration))
_OVER = "Finished tablet migration"


@dataclass
class _Tenure:
    """What one coordinator has said since it leads."""

    name: str
    line: int = 0  # how many lines have been seen
    began: int = 0  # where the barrier that goes on was executed; 0: there is none
    passed: int = 0  # where the last one that has passed was
    stages: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    planned: dict[str, str] = field(default_factory=dict[str, str])
    failed: set[str] = field(default_factory=set[str])  # whose cleanup has
    evaluated: bool = True  # it is known what was committed

    def forget(self, table: str) -> None:
        """A table was dropped: its tablets have left their stages with it, and it may be that no barrier was waited for."""
        for tablets_of in (self.stages, self.planned):
            for tablet in [t for t in tablets_of if t.startswith(f"{table}:")]:
                del tablets_of[tablet]


class Stages:
    """The entities of tablets, in each tenure anew."""

    def __init__(self, book: Book, placed: Sequence[Placed], releases: Sequence[str]) -> None:
        self._book = book
        known = [v for v in map(versions.version_of, releases) if v is not None]
        # An excerpt of tablets' lines alone has no barriers: their absence says nothing.
        executes = any(_is_of_barriers(p) for p in placed)
        self._executes = executes and (not known or min(known) >= _BARRIERS_IN_LOG)
        self._cleans = bool(known) and min(known) >= _CLEANUPS_IN_LOG
        self._tenures: dict[str, _Tenure] = {}
        self._number: Counter[str] = Counter()
        self._known: set[str] = set()

    def see(self, one: Placed, source: Source) -> None:
        """The next line, whether the reader believes what it says of commits or not."""
        record, node = one.record, one.record.node
        if record.says == versions.STARTS:
            self._tenures.pop(node, None)
            return
        if record.says == topology.LEADER:
            self._number[node] += 1
            self._tenures[node] = _Tenure(f"tenure {self._number[node]} of {node}")
            return
        tenure = self._tenures.get(node)
        if tenure is None or not tenure.evaluated or not self._executes:
            return
        tenure.line += 1
        match record.says:
            case barriers.EXECUTED:
                tenure.began = tenure.line
            case barriers.FENCE_EXECUTED:
                tenure.passed = tenure.line  # after a drain, by this coordinator or one before it
            case tablets.WILL_SET:
                self._plan(tenure, _tablet(one), record.words["stage"], source)
            case tablets.CLEANUP_FAILED:
                tenure.failed.add(_tablet(one))
            case tablets.CLEANUP_ENDED if _tablet(one) in tenure.failed:
                tenure.failed.discard(_tablet(one))
            case tablets.CLEANUP_ENDED:
                self._add(tenure, _tablet(one), "clean", source)
            case schema.DROPPED:
                tenure.forget(one.record.words["table"])
            case topology.COMMIT:
                self._commit(tenure, one, source)
            case topology.FAILED | topology.DEPOSED:
                tenure.planned.clear()
            case _:
                pass

    def _add(self, tenure: _Tenure, tablet: str, action: str, source: Source) -> None:
        key = f"{tablet}, {tenure.name}"
        if key not in self._known:
            self._known.add(key)
            self._book.add(Effect(row_work.STAGE, key, {}, source))
        self._book.add(Effect(row_work.STAGE, key, {}, source, action))

    def _plan(self, tenure: _Tenure, tablet: str, stage: str, source: Source) -> None:
        """A stage is to be entered, if the commit is not lost."""
        tenure.planned[tablet] = stage
        before, _ = tenure.stages.get(tablet, ("", 0))
        if stage in _AFTER_BARRIER or (before and _AFTER_BARRIER_OF.get(stage) == before):
            self._leave(tenure, tablet, source)
        elif stage == Stage.end_migration.name and self._cleans:
            self._add(tenure, tablet, "leave_cleanup", source)

    def _leave(self, tenure: _Tenure, tablet: str, source: Source) -> None:
        _, entered = tenure.stages.get(tablet, ("", 0))
        if tenure.passed > entered:
            self._add(tenure, tablet, "pass_barrier", source)
        self._add(tenure, tablet, "leave", source)

    def _commit(self, tenure: _Tenure, one: Placed, source: Source) -> None:
        reason = one.record.words["reason"]
        if topology.fiber_of(reason):
            return
        if one.lost:
            tenure.planned.clear()
        elif one.unknown or one.left_open or one.tenure == -1:
            tenure.evaluated = False
        elif barriers.fenced_by(reason) is not None:
            tenure.passed, tenure.began = tenure.began or tenure.passed, 0
        elif topology.carries_plans(reason):
            if reason.startswith(_OVER):
                self._end_all(tenure, source)
            for tablet, stage in tenure.planned.items():
                tenure.stages[tablet] = stage, tenure.line
                self._add(tenure, tablet, "enter", source)
            tenure.planned.clear()

    def _end_all(self, tenure: _Tenure, source: Source) -> None:
        """No tablet moves any more: what was in its last stage has left it meanwhile."""
        for tablet, (stage, _) in tenure.stages.items():
            if stage in _LAST:
                self._leave(tenure, tablet, source)
        tenure.stages.clear()


def _is_of_barriers(one: Placed) -> bool:
    record = one.record
    fences = (
        record.says == topology.COMMIT and barriers.fenced_by(record.words["reason"]) is not None
    )
    return fences or record.says == barriers.EXECUTED


def _tablet(one: Placed) -> str:
    return f"{one.record.words['table']}:{one.record.words['tablet']}"
