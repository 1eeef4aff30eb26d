"""Steps that only a coordinator's memory knows, since the last commit: what is tried again and again is kept once.

While a node is down, a barrier fails and is retried ten times a second. The next command would have to name, and each
look at the machine to take, every one of these steps, although they lead from one state back to it.
"""

from __future__ import annotations

from stagewright.impl.runtime import Instance
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class Uncommitted:
    """The steps of one machine since its last commit."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._states: list[State] = []  # before the first one, and after each

    def replay(self, instance: Instance) -> None:
        """Take them on an instance at what is committed.

        Raises:
            RefusedError: what was committed meanwhile does not allow them.
        """
        self._states = [instance.state]
        for step in self.steps:
            instance.fire(step)
            self._states.append(instance.state)

    def take(self, instance: Instance, step: Step) -> None:
        """Take one more on the instance on which they were replayed."""
        instance.fire(step)
        self.steps.append(step)
        self._states.append(instance.state)
        self._forget_repeat()

    def _forget_repeat(self) -> None:
        """The same steps as just before, which led to the same state: they say nothing new."""
        for length in range(1, len(self.steps) // 2 + 1):
            same = self.steps[-length:] == self.steps[-2 * length : -length]
            if same and self._states[-1] == self._states[-1 - length]:
                del self.steps[-length:], self._states[-length:]
                return
