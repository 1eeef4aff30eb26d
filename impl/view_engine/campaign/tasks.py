"""Workers of which one runs at a time, in an order that a seed decides, under a clock of their own.

Each task is a thread that goes on only when it is given the baton, and gives it up where it waits: for a
lock, a notification, another task, or a time. The code that runs is that which threads run otherwise.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable
from types import TracebackType


class TaskKilledError(BaseException):
    """The task's node has crashed: raised where it waits, and wherever it would wait afterwards."""


class DeadlockError(Exception):
    """Nobody can go on; the text names who waits."""


class Task:
    """Work that was started; its thread is taken from a pool when it first goes on."""

    def __init__(self, tasks: Tasks, work: Callable[[], None], name: str, owner: str) -> None:
        self._tasks = tasks
        self.work = work
        self.name = name
        self.owner = owner
        self.worker: _Worker | None = None
        self.killed = False
        self.ended = False
        self.joining: list[Task] = []
        self.waits = False  # in none of the lists of those that can go on
        self.wake = 0  # counts waits: a timer of an earlier one is void

    def join(self) -> None:
        """Return when the work has ended."""
        while not self.ended:
            self.joining.append(self._tasks.current)
            self._tasks.block()


class _Worker:
    """A thread that runs one task after the other."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.baton = threading.Lock()
        self.baton.acquire()
        self.task: Task | None = None
        threading.Thread(target=self._run, name="view-task", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.baton.acquire()
            task = self.task
            if task is None:
                return
            try:
                if not task.killed:
                    task.work()
            except TaskKilledError:
                pass
            except BaseException as error:  # noqa: BLE001 - raised by `Tasks.run`
                self._tasks.failures.append(error)
            self._tasks.end(task, self)


class Tasks:
    """A scheduler; `run` gives the baton away and gets it back when the first task has ended."""

    def __init__(self, seed: int | str, switching: float = 0.3) -> None:
        """`switching`: how likely another task goes on where one takes a lock."""
        self._random = random.Random(seed)
        self._switching = switching
        self._ready: list[Task] = []
        self._timers: list[tuple[float, int, int, Task]] = []
        self._timer_count = 0
        self._idle: list[_Worker] = []
        self._all: dict[Task, None] = {}
        self._main = threading.Lock()
        self._main.acquire()
        self._current: Task | None = None
        self._first: Task | None = None
        self._owner = ""
        self.now = 0.0
        self.switches = 0
        self.failures: list[BaseException] = []

    @property
    def current(self) -> Task:
        """The task that has the baton."""
        assert self._current is not None
        return self._current

    def condition(self) -> TaskCondition:
        return TaskCondition(self)

    def start(self, work: Callable[[], None], name: str, owner: str | None = None) -> Task:
        """`owner` is whoever's crash ends the task; that of the current one if none is given."""
        if owner is None:
            owner = "" if self._current is None else self._current.owner
        task = Task(self, work, name, owner)
        self._all[task] = None
        self._ready.append(task)
        return task

    def run(self, work: Callable[[], None]) -> None:
        """Run work and what it starts until it ends; then all else is killed. Raises what any of it raised."""
        self._first = self.start(work, "first", "")
        self._hand_over(self._next())
        self._main.acquire()
        for worker in self._idle:
            worker.task = None
            worker.baton.release()
        if self.failures:
            raise self.failures[0]

    # -- what a task calls ---------------------------------------------------------------------------------

    def pause(self) -> None:
        """A place where another task may go on."""
        self._check()
        if self._ready and self._random.random() < self._switching:
            self._ready.append(self.current)
            self._switch()

    def step(self) -> None:
        """Long work takes its time now and then."""
        if self._random.random() < self._switching:
            self.sleep(self._random.random())

    def sleep(self, seconds: float) -> None:
        """Go on after a time."""
        self._check()
        self.wake_at(self.now + seconds)
        self.block()

    def wake_at(self, when: float) -> None:
        """Let the current task go on at a time, unless it does before."""
        self._timer_count += 1
        task = self.current
        heapq.heappush(self._timers, (when, self._timer_count, task.wake, task))

    def block(self) -> None:
        """Wait until woken, or for the timer that was set before."""
        self._check()
        self.current.waits = True
        self._switch()

    def wake(self, task: Task) -> None:
        """Let a task that waits go on."""
        if task.waits:
            task.waits = False
            task.wake += 1
            self._ready.append(task)

    def kill(self, owner: str) -> None:
        """Crash: no task of this owner does anything more. Not to be called by one of them."""
        mine = [task for task in self._all if task.owner == owner]
        for task in mine:
            task.killed = True
            self.wake(task)
        for task in mine:
            task.join()

    # -- the baton ---------------------------------------------------------------------------------------------

    def end(self, task: Task, worker: _Worker) -> None:
        """The thread of a task has nothing to do any more."""
        task.ended = True
        del self._all[task]
        for waiting in task.joining:
            self.wake(waiting)
        worker.task = None
        self._idle.append(worker)
        if task is self._first or self.failures:
            self._first = None
            for other in self._all:
                other.killed = True
                self.wake(other)
        self._current = None
        if self._all:
            self._hand_over(self._next())
        else:
            self._main.release()

    def _check(self) -> None:
        if self.current.killed:
            raise TaskKilledError

    def _switch(self) -> None:
        me = self.current
        other = self._next()
        if other is not me:
            assert me.worker is not None
            self._hand_over(other)
            me.worker.baton.acquire()
            self._current = me
        if me.killed:
            raise TaskKilledError

    def _hand_over(self, task: Task) -> None:
        self.switches += 1
        self._current = task
        if task.worker is None:
            task.worker = self._idle.pop() if self._idle else _Worker(self)
            task.worker.task = task
        task.worker.baton.release()

    def _next(self) -> Task:
        while True:
            if self._ready:
                at = self._random.randrange(len(self._ready))
                self._ready[at], self._ready[-1] = self._ready[-1], self._ready[at]
                return self._ready.pop()
            if not self._timers:
                self._give_up()
                continue
            when, _, wake, task = heapq.heappop(self._timers)
            if task.waits and task.wake == wake:
                self.now = max(self.now, when)
                self.wake(task)

    def _give_up(self) -> None:
        names = ", ".join(sorted(f"{task.owner}/{task.name}" for task in self._all))
        self.failures.append(DeadlockError(f"these wait for each other: {names}"))
        for task in self._all:
            task.killed = True
            self.wake(task)


class TaskCondition:
    """A lock that its holder may take again, with waiters."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._holder: Task | None = None
        self._depth = 0
        self._entering: list[Task] = []
        self._waiting: list[Task] = []

    def __enter__(self) -> None:
        if self._holder is not self._tasks.current:
            self._tasks.pause()
            self._acquire()
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        if self._holder is self._tasks.current:  # not so if it was killed while it waited
            self._depth -= 1
            if self._depth == 0:
                self._release()

    def wait(self, timeout: float | None = None) -> bool:
        depth, self._depth = self._depth, 0
        self._release()
        me = self._tasks.current
        self._waiting.append(me)
        if timeout is not None:
            self._tasks.wake_at(self._tasks.now + timeout)
        self._tasks.block()
        timed_out = me in self._waiting
        if timed_out:
            self._waiting.remove(me)
        self._acquire()
        self._depth = depth
        return not timed_out

    def notify_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._tasks.wake(task)

    def _acquire(self) -> None:
        while self._holder is not None:
            self._entering.append(self._tasks.current)
            self._tasks.block()
        self._holder = self._tasks.current

    def _release(self) -> None:
        self._holder = None
        entering, self._entering = self._entering, []
        for task in entering:
            self._tasks.wake(task)
