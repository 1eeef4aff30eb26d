"""Breadth-first search with any engine, a batch of states at a time: every reachable state once.

The native engine has a search of its own; this one serves where it is not to be had, and as its interpreter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.checkpoint import Checkpoint
from stagewright.checker.explicit.engine import Engine, Expansion
from stagewright.checker.explicit.exploration import (
    Exploration,
    Noted,
    Tally,
    Watch,
    in_order,
    least,
)
from stagewright.checker.explicit.packing import Words
from stagewright.checker.explicit.states import StateTable
from stagewright.checker.limits import OnProgress, Stop

_SMALLEST_BATCH = 64


def explore(
    engine: Engine,
    watch: Watch,
    stop: Stop,
    progress: OnProgress | None = None,
    *,
    checkpoint: Checkpoint | None = None,
) -> Exploration:
    """Search from the initial states until nothing is new, or `stop` says so.

    `checkpoint`: take up what is written there, if anything, and write there from time to time.
    """
    search = _Search(engine, watch, stop, progress)
    search.run(checkpoint)
    return Exploration(
        engine, search.tally, lambda found: in_order(search.table.states, found.segments())
    )


class _Search:
    """The search under way."""

    def __init__(
        self, engine: Engine, watch: Watch, stop: Stop, progress: OnProgress | None
    ) -> None:
        self._engine, self._watch, self._stop, self._progress = engine, watch, stop, progress
        self._state_conditions = engine.state_conditions(watch.states.all)
        self._step_conditions = engine.step_conditions(watch.steps.all)
        self._final = engine.state_conditions([engine.model.final])
        constraint = engine.model.constraint
        self._constraint = None if constraint is None else engine.state_conditions([constraint])
        self._beyond = 0
        self._counts = np.array([not s.action.spends for s in engine.model.steps], dtype=np.bool_)
        self.table = StateTable(engine.layout.words)
        self.tally = Tally.empty(engine, watch)
        self._level = Notes()

    def run(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is not None and checkpoint.exists:
            self.tally, levels = checkpoint.load(self._engine, self._watch)
            self._beyond = self.tally.beyond
            for level in levels:
                self.table.add(level)
        else:
            self.table.add(self._engine.layout.pack(self._engine.model.initial))
        tally = self.tally
        tally.states = self.table.count
        boundary, complete = tally, True
        while not tally.exhausted and not self._over():
            end = tally.states
            if checkpoint is not None and checkpoint.due():
                checkpoint.save(tally, self._log)
            boundary = tally.copy()
            complete = self._expand_level(end)
            self._settle_level()
            if tally.states > end:
                tally.levels.append(end)
            if not complete:
                break
        if checkpoint is not None:
            checkpoint.save(tally if complete else boundary, self._log)
        self._look_at_rest()

    def _log(self, first: int, after: int) -> Words:
        return self.table.states[:, first:after]

    def _over(self) -> bool:
        """Whether the search is to stop between two levels."""
        limits = self._stop.limits
        if limits.depth is not None and len(self.tally.levels) > limits.depth:
            self.tally.stopped = f"the depth limit of {limits.depth} was reached"
        else:
            self.tally.stopped = self.tally.enough(limits)
        return bool(self.tally.stopped)

    def _expand_level(self, end: int) -> bool:
        """Expand the states before `end`; False if the search is to stop."""
        tally = self.tally
        while tally.expanded < end:
            reason = self._stop.reason(tally.states, self.table.bytes)
            if reason:
                tally.stopped = reason
                return False
            self._batch(min(end, tally.expanded + self._batch_size()))
            if self._progress is not None:
                self._progress(tally.progress(self._stop.seconds, memory=self.table.bytes))
        return True

    def _batch_size(self) -> int:
        limit = self._stop.limits.states
        if limit is None:
            return self._engine.batch
        room = max(_SMALLEST_BATCH, limit - self.tally.states)
        return min(self._engine.batch, room)

    def _batch(self, end: int) -> None:
        tally = self.tally
        states = self.table.states[:, tally.expanded : end]
        if self._constraint is not None:
            (within,) = self._constraint(states)
            self._beyond += int(np.count_nonzero(~within))
        self._look_at_states(states)
        expansion = self._engine.expand(states)
        self.table.add(expansion.successors)
        tally.states, tally.expanded = self.table.count, end
        tally.transitions += expansion.steps.size
        tally.fired += np.bincount(expansion.steps, minlength=tally.fired.size)
        tally.false_counts += expansion.false_counts
        self._look_at_steps(states, expansion)
        self._look_for_stuck(states, expansion)

    def _look_at_rest(self) -> None:
        """Look at the states that are known but were not expanded, depth by depth."""
        for first, after in self.tally.segments():
            if first >= self.tally.expanded:
                for start in range(first, after, self._engine.batch):
                    end = min(after, start + self._engine.batch)
                    self._look_at_states(self.table.states[:, start:end])
                self._settle_level()

    def _look_at_states(self, states: Words) -> None:
        for i, holds in enumerate(self._state_conditions(states)):
            if holds.all():
                continue
            if i >= len(self.tally.state_notes):
                self.tally.met_states[i - len(self.tally.state_notes)] = True
            elif self.tally.state_notes[i] is None:
                row = least(states, np.flatnonzero(~holds))
                self._level.note(("state", i), _noted(states, row))

    def _look_at_steps(self, states: Words, expansion: Expansion) -> None:
        if not self._watch.steps.all or not expansion.steps.size:
            return
        old = states[:, expansion.sources]
        for i, holds in enumerate(self._step_conditions(old, expansion.successors)):
            if holds.all():
                continue
            if i >= len(self.tally.step_notes):
                self.tally.met_steps[i - len(self.tally.step_notes)] = True
            elif self.tally.step_notes[i] is None:
                bad = np.flatnonzero(~holds)
                self._level.note(
                    ("step", i),
                    _least_step(states, expansion.sources[bad], expansion.steps[bad]),
                )

    def _look_for_stuck(self, states: Words, expansion: Expansion) -> None:
        moving = np.zeros(states.shape[1], dtype=np.bool_)
        moving[expansion.sources[self._counts[expansion.steps]]] = True
        if expansion.overflow_sources.size:
            moving[expansion.overflow_sources[self._counts[expansion.overflow_steps]]] = True
            if self.tally.overflow is None:
                note = _least_step(states, expansion.overflow_sources, expansion.overflow_steps)
                self._level.note(("overflow", 0), note)
        stuck = np.flatnonzero(~moving)
        if self._watch.deadlock and self.tally.deadlock is None and stuck.size:
            (final,) = self._final(states[:, stuck])
            if not final.all():
                row = least(states, stuck[~final])
                self._level.note(("deadlock", 0), _noted(states, row))

    def _settle_level(self) -> None:
        """What was noted in this level is the nearest of its kind, and stays."""
        tally = self.tally
        tally.count_beyond(self._beyond, len(tally.levels) - 1)
        for (kind, i), note in self._level.least.items():
            match kind:
                case "state":
                    tally.state_notes[i] = note
                case "step":
                    tally.step_notes[i] = note
                case "deadlock":
                    tally.deadlock = note
                case _:
                    tally.overflow = note
        self._level = Notes()


class Notes:
    """The least violation of each kind within one level."""

    def __init__(self) -> None:
        self.least: dict[tuple[str, int], Noted] = {}

    def note(self, what: tuple[str, int], noted: Noted) -> None:
        """Keep it if it is less than what was noted before."""
        before = self.least.get(what)
        if before is None or noted < before:
            self.least[what] = noted


def _noted(states: Words, row: int, step: int = 0) -> Noted:
    return Noted(tuple(states[:, row].tolist()), step)


def _least_step(states: Words, sources: NDArray[np.int64], steps: NDArray[np.int32]) -> Noted:
    """Of the steps of the least of the source states, the first."""
    source = least(states, sources)
    return _noted(states, source, int(steps[sources == source].min()))
