"""Tasks that a worker does at once, until it is down: with a property of each kind beside invariants."""

from __future__ import annotations

from typing import Self

import stagewright.spec as sw


class Task(sw.Entity, scope=2):
    """Something to do."""


class Worker(sw.Machine):
    """A worker that does several tasks at once, and loses them when it crashes."""

    crashes = sw.fault_budget(1)
    busy: sw.SetVar[Task] = sw.set_of(Task)
    down: sw.FlagVar = sw.flag()

    @sw.action
    def start(self, t: sw.Term[Task]) -> None:
        """A task begins."""
        sw.require(~self.busy.has(t), "the task is not under way")
        sw.require(~self.down, "the worker is up")
        self.busy.add(t)

    @sw.action(fair=sw.Fairness.WEAK)
    def finish(self, t: sw.Term[Task]) -> None:
        """A task ends."""
        sw.require(self.busy.has(t), "the task is under way")
        self.busy.discard(t)

    @sw.action(spends=crashes)
    def crash(self) -> None:
        """The worker goes down; what was under way is lost."""
        sw.require(~self.down, "the worker is up")
        self.down = True
        self.busy = frozenset()

    @sw.final
    def it_is_down(self) -> sw.Bool:
        return self.down

    @sw.sometimes
    def all_tasks_at_once(self) -> sw.Bool:
        """The worker does all tasks at the same time."""
        return sw.every(self.busy.has(t) for t in Task)

    @sw.sometimes(at={Task: 3, crashes: 0})
    def three_at_once(self) -> sw.Bool:
        """The worker does three tasks at the same time."""
        return self.busy.size() >= 3

    @sw.sometimes
    def a_crash_loses_work(self, after: Self) -> sw.Bool:
        """A crash in the midst of a task."""
        return ~self.busy.is_empty() & after.down

    @sw.accepts(start)
    def tasks_are_independent(self, t: sw.Term[Task]) -> sw.Bool:
        """A task can begin while others are under way."""
        return ~self.down & ~self.busy.has(t)

    @sw.lemma
    def nothing_runs_when_down(self) -> sw.Bool:
        return self.down.implies(self.busy.is_empty())

    @sw.wording("the manual, 2: a worker that is down stays down")
    @sw.step_property
    def down_stays_down(self, after: Self) -> sw.Bool:
        return self.down.implies(after.down)


class OneAtATime(Worker):
    """The same worker, which does one task at a time."""

    @sw.action
    def start(self, t: sw.Term[Task]) -> None:
        """A task begins."""
        sw.require(~self.busy.has(t), "the task is not under way")
        sw.require(~self.down, "the worker is up")
        sw.require(self.busy.is_empty(), "nothing else is under way")
        self.busy.add(t)


class Clock(sw.Machine):
    """What ticks beside the worker."""

    ticks: sw.NumberVar = sw.number(0, 1)

    @sw.action
    def tick(self) -> None:
        """Time goes on."""
        sw.require(self.ticks == 0, "it has not ticked yet")
        self.ticks = 1


class WatchedWorker(Worker):
    """The same worker, beside a clock, with somebody who looks at it."""

    watched: sw.FlagVar = sw.flag()
    clock = sw.part(Clock)

    @sw.action
    def watch(self) -> None:
        """Somebody begins to look, or looks away."""
        sw.require(~self.down | self.watched, "there is something to be seen")
        self.watched = ~self.watched

    @sw.independent(Worker.start, Worker.finish, of=(watched, clock))
    def nobody_waits_for_who_watches(self) -> None:
        """Tasks begin and end whoever watches, and at any time."""

    @sw.independent(Worker.start, Worker.finish, of=Task)
    def no_task_waits_for_another(self) -> None:
        """Tasks begin and end each for itself."""
