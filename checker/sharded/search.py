"""The search over hash shards, level by level: one task a shard a level, and files in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.exploration import Noted, Tally, Watch
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.limits import OnProgress, Progress, Stop
from stagewright.checker.sharded.exploration import ShardedExploration, States, explored
from stagewright.checker.sharded.files import sending, sent_file
from stagewright.checker.sharded.observations import joined, settle, settle_states
from stagewright.checker.sharded.program import Compiled, Program
from stagewright.checker.sharded.scheduler import InThisProcess, Scheduler
from stagewright.checker.sharded.tables import SHELF
from stagewright.checker.sharded.tasks import (
    LevelPart,
    LevelTask,
    ParentsTask,
    Router,
    least_parents,
    search_level,
)
from stagewright.checker.sharded.work import Level, WorkDirectory
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.reduced import Reduced

OnLevel = Callable[[int, list[LevelPart]], None]
"""Told of each level that was searched now, for measurements."""


@dataclass(frozen=True)
class Place:
    """Where a search runs and keeps its files."""

    scheduler: Scheduler
    folder: Path
    shards: int
    at_once: int  # tasks
    lasting: bool = True  # the folder is kept, so that the search can go on after a crash
    alone: int = 50_000  # states up to which this process does the tasks itself: it is faster
    on_level: OnLevel | None = None


def explore(
    engine: NativeEngine,
    watch: Watch,
    stop: Stop,
    place: Place,
    settings: dict[str, str],
    progress: OnProgress | None = None,
    symmetry: Symmetry | None = None,
) -> ShardedExploration:
    """Search from the initial states, or go on with what the folder holds, until `stop` says so.

    Limits of states and depth are looked at between levels; a level that is broken off is lost.

    Raises:
        InputError: the folder cannot be used for this.
    """
    assert not watch.graph, "no shard knows the whole graph"
    program = Program.of(engine, watch, symmetry)
    stored = engine if symmetry is None else Reduced(engine, symmetry)
    work = WorkDirectory.opened(
        place.folder, program, place.shards, settings, lasting=place.lasting
    )
    search = _Search(engine, stored, watch, stop, place, work, progress)
    search.run()
    return search.explored()


class _Search:
    """The search under way."""

    def __init__(
        self,
        engine: NativeEngine,
        stored: Engine,
        watch: Watch,
        stop: Stop,
        place: Place,
        work: WorkDirectory,
        progress: OnProgress | None,
    ) -> None:
        self._engine, self._stop, self._place, self._work = engine, stop, place, work
        self._stored, self._progress = stored, progress
        self.tally = Tally.empty(engine, watch)
        self.tally.levels.clear()
        self._noted: dict[int, States] = {}
        self._alone = False
        self._complete = False
        self._held: dict[str, int] = {}  # bytes of tables, by process
        self._sent: tuple[int, ...] = ()  # states sent to the next level, by sender

    def run(self) -> None:
        """Search until there is nothing new, or no time for it."""
        self._replay()
        if not self.tally.levels:
            self._seed()
        while not self._complete:
            last = self._last_level()
            reason = self._stop.reason(self.tally.states)
            if reason and not last:
                self.tally.stopped = reason
                return
            level = len(self.tally.levels)
            found = self._searched(level, look_only=bool(last))
            if found is None:
                return
            if last:
                self._look(level, found, last)
                return
            self._work.finish(level, found)
            self._count(level, found)

    def _replay(self) -> None:
        """Count the levels that are done already."""
        while (found := self._work.level(len(self.tally.levels))) is not None:
            self._count(len(self.tally.levels), found)
            if self._complete:
                return

    def _seed(self) -> None:
        """Send the initial states to their shards."""
        self._work.prepare(-1)
        program = self._work.program
        states = np.ascontiguousarray(self._engine.layout.pack(self._stored.model.initial).T)
        router = Router(Compiled(program), self._place.shards, 1, program.observed.block())
        with sending(sent_file(self._work.folder, -1, 0)) as file:
            router.send(states, file)
        self._sent = (file.states,)

    def _last_level(self) -> str:
        """Why the next level is only to be looked at, and no further one searched; or nothing."""
        limits, level = self._stop.limits, len(self.tally.levels)
        if limits.depth is not None and level >= limits.depth:
            return f"the depth limit of {limits.depth} was reached"
        if limits.stop_at_first and self.tally.violated:
            return "a violation was found"
        if limits.states is not None and self.tally.states >= limits.states:
            return self._stop.reason(self.tally.states)
        return ""

    def _searched(self, level: int, *, look_only: bool) -> Level | None:
        """What a level's tasks found; None if they were broken off."""
        self._work.prepare(level)
        scheduler = self._scheduler(self.tally.states + sum(self._sent))
        everything = tuple(range(self._place.shards))
        parts: dict[int, LevelPart] = {}
        offers = [everything] * len(everything)
        while offers:
            tasks = [
                self._task(level, number, offered, look_only=look_only)
                for number, offered in enumerate(offers)
            ]
            found = scheduler.map(search_level, tasks, self._give_up)
            parts.update({part.shard: part for part in found or () if part is not None})
            refused = next((part.refused for part in parts.values() if part.refused), "")
            if found is None or refused:
                self.tally.stopped = refused or self._stop.reason() or "interrupted"
                return None
            # The tasks of these died. Whoever runs a task that is bound to its shard runs it to its end.
            offers = [(shard,) for shard in everything if shard not in parts]
        return self._joined(level, [parts[shard] for shard in everything])

    def _task(
        self, level: int, number: int, offered: tuple[int, ...], *, look_only: bool
    ) -> LevelTask:
        tally, place = self.tally, self._place
        return LevelTask(
            str(self._work.folder.resolve()),
            self._work.run,
            number,
            offered,
            place.shards,
            tuple(shard for shard, sent in enumerate(self._sent) if sent),
            level,
            -(-place.shards // place.at_once) + 1,
            self._stop.limits.memory,
            look_only,
            tuple(i for i, note in enumerate(tally.state_notes) if note is not None),
            tuple(i for i, note in enumerate(tally.step_notes) if note is not None),
        )

    def _scheduler(self, states: int) -> Scheduler:
        """Who does tasks that have to do with so many states."""
        alone = states <= self._place.alone
        if self._alone and not alone:
            SHELF.clear()  # from now on tables lie elsewhere
        self._alone = alone
        return InThisProcess() if alone else self._place.scheduler

    def _joined(self, level: int, parts: list[LevelPart]) -> Level:
        """What the tasks of all shards found."""
        if self._place.on_level is not None:
            self._place.on_level(level, parts)
        self._held.update({part.process: part.held for part in parts})
        blocks = [np.array(part.observed, dtype=np.int64) for part in parts]
        return Level(
            tuple(part.states for part in parts),
            tuple(part.sent for part in parts),
            sum(part.transitions for part in parts),
            tuple(joined(self._work.program.observed, blocks).tolist()),
        )

    def _give_up(self) -> bool:
        """Whether the level under way is to be broken off; reports progress, too."""
        if self._progress is not None:
            self._progress(self._so_far())
        return bool(self._stop.reason())

    def _count(self, level: int, found: Level) -> None:
        """Add a level that was searched."""
        states = sum(found.states)
        self._complete = not any(found.sent)
        tally = self.tally
        if not states:
            self._complete = True
            return
        tally.levels.append(tally.states)
        tally.states += states
        tally.expanded += states
        tally.transitions += found.transitions
        self._sent = found.sent
        numbers = np.array(found.observed, dtype=np.int64)
        place = self._work.program.observed
        settle(tally, self._engine, place, numbers, states, level)
        self._remember(level)
        if self._progress is not None:
            self._progress(self._so_far())

    def _look(self, level: int, found: Level, why: str) -> None:
        """Add a level that was only looked at, with which the search ends."""
        states = sum(found.states)
        if not states:
            self._complete = True
            return
        self.tally.stopped = why
        self.tally.levels.append(self.tally.states)
        self.tally.states += states
        numbers = np.array(found.observed, dtype=np.int64)
        settle_states(self.tally, self._work.program.observed, numbers, level)
        self._remember(level)

    def _remember(self, level: int) -> None:
        """Keep the depth of what was noted in this level."""
        tally = self.tally
        known = set().union(*self._noted.values())
        notes = (*tally.state_notes, *tally.step_notes, tally.deadlock, tally.overflow)
        words = {note.words for note in notes if note is not None} - known
        if words:
            self._noted[level] = words

    def _so_far(self) -> Progress:
        tally, depth = self.tally, max(0, len(self.tally.levels) - 1)
        return Progress(
            tally.states,
            tally.transitions,
            sum(self._sent),
            depth,
            self._stop.seconds,
            memory=sum(self._held.values()),
        )

    def explored(self) -> ShardedExploration:
        """What was found, with the runs to what was noted."""
        return explored(
            self._stored, self.tally, self._noted, self._parents, complete=self._complete
        )

    def _parents(self, depth: int, wanted: list[tuple[int, ...]]) -> list[Noted]:
        work = self._work
        tasks = [
            ParentsTask(str(work.folder.resolve()), work.run, shard, depth, tuple(wanted))
            for shard in range(self._place.shards)
        ]
        first, after = [*self.tally.levels, self.tally.states][depth : depth + 2]
        scheduler = self._scheduler(after - first)
        found = scheduler.map(least_parents, tasks, lambda: False)
        assert found is not None
        parents: list[Noted] = []
        for candidates in zip(*found, strict=True):
            known = [c for c in candidates if c is not None]
            assert known, "every state but the initial ones has a parent one level up"
            parents.append(min(known))
        return parents
