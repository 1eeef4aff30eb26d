"""Steps that only a coordinator's memory knows, since the last commit: what is tried again and again is kept once.

While a node is down, a barrier fails and is retried ten times a second. The next command would have to name, and each
look at the machine to take, every one of these steps, although they lead from one state back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stagewright.impl.runtime import Instance
from stagewright.spec.values import State, Value
from stagewright.spec.verdict import Step


class Uncommitted:
    """The steps of one machine since its last commit, and the machine after them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._states: list[State] = []  # before the first one, and after each
        self._committed: tuple[Any, ...] | None = None
        self._instance: Instance | None = None
        self._known: dict[tuple[Any, ...], Any] = {}  # of the instance, until its next step

    def resume(self, committed: tuple[Any, ...], made: Callable[[], Instance]) -> None:
        """Have the machine after these steps: the one of before, or, if something else is committed, they are taken again.

        Raises:
            RefusedError: what was committed meanwhile does not allow them.
        """
        if self._instance is not None and self._committed == committed:
            return
        self._instance, instance = None, made()
        self._states = [instance.state]
        for step in self.steps:
            instance.fire(step)
            self._states.append(instance.state)
        self._committed, self._instance = committed, instance
        self._known.clear()

    def take(self, step: Step) -> None:
        """Take one more.

        Raises:
            RefusedError: it is not enabled.
        """
        self.now.fire(step)
        self._known.clear()
        self.steps.append(step)
        self._states.append(self.now.state)
        self._forget_repeat()

    @property
    def now(self) -> Instance:
        """The machine after these steps, which only they change."""
        assert self._instance is not None, "it was resumed"
        return self._instance

    def can(self, action: str, **arguments: Value) -> bool:
        """Whether a step is enabled now."""
        asked = (action, *arguments.values())
        if asked not in self._known:
            self._known[asked] = self.now.can(action, **arguments)
        found: bool = self._known[asked]
        return found

    def first(self, actions: Iterable[str]) -> Step | None:
        """The first step that is enabled now, of the first of some actions that has one."""
        asked = (self.first, *actions)
        if asked not in self._known:
            steps = (step for action in actions for step in self.now.choices(action))
            self._known[asked] = next(steps, None)
        found: Step | None = self._known[asked]
        return found

    def _forget_repeat(self) -> None:
        """The same steps as just before, which led to the same state: they say nothing new."""
        for length in range(1, len(self.steps) // 2 + 1):
            same = self.steps[-length:] == self.steps[-2 * length : -length]
            if same and self._states[-1] == self._states[-1 - length]:
                del self.steps[-length:], self._states[-length:]
                return
