"""The native search: Python sets the stage level by level, compiled workers do what there is to do.

Workers share the table and the log and take blocks of the level as they come; nothing else is shared, so
that counts are sums and notes are minima, whoever found them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.exploration import (
    Exploration,
    Noted,
    Tally,
    Watch,
    in_order,
    least,
)
from stagewright.checker.explicit.native import worker
from stagewright.checker.explicit.native.code import observed as block
from stagewright.checker.explicit.native.code.expansion import Plan, expansion_source
from stagewright.checker.explicit.native.code.observed import Numbers
from stagewright.checker.explicit.native.code.tiers import Tiered
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.native.visited_set import buckets
from stagewright.checker.explicit.native.visited_set.visited import Visited
from stagewright.checker.explicit.packing import Words
from stagewright.checker.limits import Limits, OnProgress, Stop

_FIRST_BUDGET, _LARGEST_BUDGET = 1 << 12, 1 << 20  # states a round
_ROUND_SECONDS = 0.1  # so long may a Ctrl-C or a limit wait, about
_SMALLEST_ROUND = 64
_NO_SPACE = "the system grants no more address space"


def explore(
    engine: NativeEngine,
    watch: Watch,
    stop: Stop,
    progress: OnProgress | None = None,
    *,
    workers: int = 1,
    keep: bool = True,
    checkpoint: Checkpoint | None = None,
    stored: Stored | None = None,
) -> Exploration:
    """Search from the initial states until nothing is new, or `stop` says so.

    `checkpoint`: take up what is written there, if anything, and write there from time to time.

    Without `keep` the states of a level are forgotten once they are expanded, unless questions are asked
    afterwards; if a promise is broken, its levels are searched once more for the run that shows it.
    """
    keep = keep or watch.graph
    stored = stored or Stored(engine)
    search = _Search(engine, watch, stop, progress, workers, stored, keep=keep)
    search.run(checkpoint)
    if keep or search.visited.kind.knows_places:  # then nothing was forgotten
        return Exploration(stored.engine, search.tally, lambda _: search.words)

    def once_more(found: Exploration) -> Words:
        """The states of all depths up to the one behind the last violation, in order."""
        depth = found.tally.noted_depth
        limits = Limits(depth=depth + 1, memory=stop.limits.memory)
        unwatched = Watch(deadlock=False)
        again = _Search(engine, unwatched, Stop(limits), progress, workers, stored, keep=True)
        again.run(None)
        if len(again.tally.levels) <= depth:
            raise MemoryError(f"for the run to a violation: {again.tally.stopped}")
        return again.words

    return Exploration(stored.engine, search.tally, once_more, kept=False)


@dataclass(frozen=True)
class Stored:
    """The engine over the states that are stored, if these are not those that steps lead to.

    `canonical`: LLVM text of `canonical(states, count)`, which makes the ones of the others.
    """

    engine: Engine
    canonical: str = ""


class _Search:
    """The search under way."""

    def __init__(
        self,
        engine: NativeEngine,
        watch: Watch,
        stop: Stop,
        progress: OnProgress | None,
        workers: int,
        stored: Stored,
        *,
        keep: bool,
    ) -> None:
        self._engine, self._watch, self._stop, self._progress = engine, watch, stop, progress
        self._keep, self._stored = keep, stored
        self._plan = engine.plan(watch)
        self._expansion = Tiered(expansion_source(self._plan))
        self.visited = Visited(
            engine.layout,
            workers=workers,
            canonical=stored.canonical,
            memory=stop.memory_left(0),
        )
        self.visited.shared[buckets.EXPAND] = self._expansion.address("expand")
        self._workers = [_Worker(self._plan) for _ in range(workers)]
        self.tally = Tally.empty(engine, watch)
        self._budget = _FIRST_BUDGET

    def run(self, checkpoint: Checkpoint | None) -> None:
        self._begin(checkpoint)
        tally, boundary, complete = self.tally, self._base, True
        with self._threads() as pool:
            while not tally.exhausted and not self._over():
                end = tally.states
                if checkpoint is not None:
                    boundary = self._counted()
                    unwritten = end - checkpoint.written if self._forgetful else 0
                    if checkpoint.due(unwritten):
                        checkpoint.save(boundary, self.visited.states)
                if self._forgetful:
                    self.visited.release(self._dispensable(checkpoint))
                complete = self._expand_level(end, pool)
                self._settle_level()
                if tally.states > end:
                    tally.levels.append(end)
                if not complete:
                    break
        self.tally = self._counted()
        if checkpoint is not None:
            checkpoint.save(self.tally if complete else boundary, self.visited.states)
        self._look_at_rest()

    def _begin(self, checkpoint: Checkpoint | None) -> None:
        """The initial states, or all that an earlier search found."""
        if checkpoint is not None and checkpoint.exists:
            self.tally, levels = checkpoint.load(self._engine, self._watch)
            for level in levels:
                self.visited.add(level)
            self._forget_settled()
        else:
            self.visited.add(self._engine.layout.pack(self._stored.engine.model.initial))
        self.tally.states = self.visited.count
        self._base = self.tally.copy()

    def _forget_settled(self) -> None:
        """No worker need note a violation of what is settled."""
        place = self._plan.observed
        for live, notes in (
            (place.live_states, self.tally.state_notes),
            (place.live_steps, self.tally.step_notes),
        ):
            for i, note in enumerate(notes):
                if note is not None:
                    self._clear(live, i)

    @property
    def _forgetful(self) -> bool:
        """Whether states can be, and are to be, forgotten once they are expanded."""
        return not self._keep and not self.visited.kind.knows_places

    def _dispensable(self, checkpoint: Checkpoint | None) -> int:
        """Up to which state nothing will be read again."""
        if checkpoint is None or checkpoint.failed:
            return self.tally.expanded
        return max(self.visited.released, min(checkpoint.written, self.tally.expanded))

    @property
    def words(self) -> Words:
        """All states, in the order of their ids."""
        return in_order(self.visited.states(0, self.tally.states), self.tally.segments())

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor | None]:
        threads = self.visited.threads
        if threads < 2:
            yield None
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool

    def _over(self) -> bool:
        """Whether the search is to stop between two levels."""
        limits = self._stop.limits
        if limits.depth is not None and len(self.tally.levels) > limits.depth:
            self.tally.stopped = f"the depth limit of {limits.depth} was reached"
        else:
            self.tally.stopped = self.tally.enough(limits)
        return bool(self.tally.stopped)

    def _expand_level(self, end: int, pool: ThreadPoolExecutor | None) -> bool:
        """Expand the states before `end`; False if the search is to stop."""
        shared, tally = self.visited.shared, self.tally
        shared[buckets.CURSOR], shared[buckets.END] = tally.expanded, end
        while True:
            reason = self._stop.reason(tally.states, self.visited.bytes)
            reason = reason or self._make_room()
            if reason:
                tally.stopped = reason
                return False
            done = self._round(pool)
            tally.states = self.visited.count
            tally.expanded = min(int(shared[buckets.CURSOR]), end)
            new = sum(int(w.own[worker.TRANSITIONS]) for w in self._workers)
            tally.transitions = self._base.transitions + new
            if self._progress is not None:
                memory = self.visited.bytes
                self._progress(tally.progress(self._stop.seconds, memory=memory))
            if done:
                return True

    def _make_room(self) -> str:
        """Grow the table if it is nearly full; returns why there can be no more room."""
        slack = len(self._workers) * self._plan.most_successors(worker.BLOCK)
        if self.visited.count + slack >= self.visited.log_capacity:
            return _NO_SPACE
        while self.visited.count >= self.visited.capacity - slack:
            grown = self.visited.bytes + self.visited.bytes_to_grow
            if reason := self._stop.reason(memory=grown):
                return reason
            if not self.visited.may_grow:
                return _NO_SPACE
            self.visited.grow()
        room = self._stop.memory_left(self.visited.bytes) // (8 * self.visited.kind.words) + 1
        most = min(
            self.visited.capacity - slack,
            self.visited.log_capacity - slack,
            self.visited.count + room,
        )
        self.visited.shared[buckets.LIMIT] = most
        return ""

    def _round(self, pool: ThreadPoolExecutor | None) -> bool:
        """Let every worker work for a while; True if the level is done."""
        started = time.monotonic()
        budget = self._states_of_round()
        for one in self._workers:
            one.own[worker.BUDGET] = budget
        outcomes = self._work(pool)
        while any(one.pending for one in self._workers):  # a state found no place near its home
            self.visited.grow()
            self.visited.shared[buckets.LIMIT] = 0  # finish the block, begin no other
            outcomes = self._work(pool)
        seconds = time.monotonic() - started
        if self._expansion.ran(seconds):
            self.visited.shared[buckets.EXPAND] = self._expansion.address("expand")
        if seconds < _ROUND_SECONDS / 2:
            self._budget = min(2 * self._budget, _LARGEST_BUDGET)
        else:
            self._budget = max(self._budget // 2, _SMALLEST_ROUND)
        return all(outcome == worker.LEVEL_DONE for outcome in outcomes)

    def _states_of_round(self) -> int:
        limit = self._stop.limits.states
        if limit is None:
            return self._budget
        room = max(_SMALLEST_ROUND, limit - self.tally.states)
        return min(self._budget, -(-room // len(self._workers)))

    def _work(self, pool: ThreadPoolExecutor | None) -> list[int]:
        work, shared = self.visited.code.work, self.visited.shared.ctypes.data
        if pool is None:
            return [work(shared, one.own.ctypes.data) for one in self._workers]
        owns = [one.own.ctypes.data for one in self._workers]
        return list(pool.map(lambda own: work(shared, own), owns))

    def _settle_level(self) -> None:
        """What was noted in this level is the nearest of its kind, and stays."""
        self.visited.settle([one.own for one in self._workers])
        self.tally.states = self.visited.count
        tally, place = self.tally, self._plan.observed
        depth = len(tally.levels) - 1
        new = sum(int(one.block[place.beyond]) for one in self._workers)
        tally.count_beyond(self._base.beyond + new, depth)
        for i, note in enumerate(tally.state_notes):
            if note is None:
                tally.state_notes[i] = self._settled(place.state_note(i), depth)
                if tally.state_notes[i] is not None:
                    self._clear(place.live_states, i)
        for i, note in enumerate(tally.step_notes):
            if note is None:
                tally.step_notes[i] = self._settled(place.step_note(i), depth)
                if tally.step_notes[i] is not None:
                    self._clear(place.live_steps, i)
        if tally.deadlock is None:
            tally.deadlock = self._settled(place.deadlock, depth)
        if tally.overflow is None:
            tally.overflow = self._settled(place.overflow, depth)

    def _settled(self, place: int, depth: int) -> Noted | None:
        """The least of what the workers noted at a place."""
        notes = [self._plan.observed.noted(one.block, place) for one in self._workers]
        nearest = min((n for n in notes if n is not None), default=None)
        if nearest is not None:
            self.tally.noted_depth = depth
        return nearest

    def _clear(self, place: int, index: int) -> None:
        for one in self._workers:
            block.clear(one.block, place, index)

    def _counted(self) -> Tally:
        """What was found until now, with the sums of the workers' counters."""
        tally, base, place = self.tally.copy(), self._base, self._plan.observed
        total = np.sum([one.block for one in self._workers], axis=0)
        tally.fired = base.fired + total[place.fired : place.false]
        if self._watch.coverage:
            new = tally.expanded - base.expanded
            false = self._engine.false_counts(total[place.false :], new)
            tally.false_counts = base.false_counts + false
        for met, where in (
            (tally.met_states, place.seen_states),
            (tally.met_steps, place.seen_steps),
        ):
            for i in range(len(met)):
                met[i] |= any(block.is_set(one.block, where, i) for one in self._workers)
        return tally

    def _look_at_rest(self) -> None:
        """Look at the states that are known but were not expanded, depth by depth."""
        tally, noted = self.tally, len(self.tally.state_notes)
        if tally.exhausted or not self._watch.states.all:
            return
        evaluate = self._engine.state_conditions(self._watch.states.all)
        for first, after in tally.segments():
            if first < tally.expanded:
                continue
            nearest: dict[int, Noted] = {}
            for start in range(first, after, self._engine.batch):
                states = self.visited.states(start, min(after, start + self._engine.batch))
                for i, holds in enumerate(evaluate(states)):
                    if holds.all():
                        continue
                    if i >= noted:
                        tally.met_states[i - noted] = True
                        continue
                    row = least(states, np.flatnonzero(~holds))
                    note = Noted(tuple(states[:, row].tolist()))
                    nearest[i] = min(note, nearest.get(i, note))
            depth = tally.depth_of(first)
            for i, note in nearest.items():
                if tally.state_notes[i] is None:
                    tally.state_notes[i] = note
                    tally.noted_depth = depth


class _Worker:
    """One worker's own memory."""

    def __init__(self, plan: Plan) -> None:
        most = plan.most_successors(worker.BLOCK) + 1
        words = plan.layout.words
        self.block: Numbers = plan.observed.block()
        self._out = np.zeros(most * words, dtype=np.uint64)
        self._hashes = np.zeros(most, dtype=np.uint64)
        self._new = np.zeros(most, dtype=np.uint64)
        self.own: Numbers = np.zeros(worker.OWN_SIZE, dtype=np.int64)
        self.own[worker.SPARE] = -1
        self.own[worker.OUT] = self._out.ctypes.data
        self.own[worker.HASHES] = self._hashes.ctypes.data
        self.own[worker.NEW] = self._new.ctypes.data
        self.own[worker.OBSERVED] = self.block.ctypes.data

    @property
    def pending(self) -> bool:
        """Whether a block's successors are still to be entered."""
        return bool(self.own[worker.NEXT] < self.own[worker.COUNT])
