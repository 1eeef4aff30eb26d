"""What the definition refuses the coordinator again and again: the log of its node says so once, and once when it is over.

A refusal is nothing strange: something may have been committed since a plan was made. What is planned anew and refused for
the same reason all the time holds the topology up, and only its reason says by what.
"""

from __future__ import annotations

from stagewright.impl.node.context import Context
from stagewright.spec.errors import StagewrightError

TRIES = 20  # as long as so many retries take


class Refusals:
    """The refusals of one coordinator. `lasting` is the reason of the one that lasts, if one does."""

    def __init__(self, node: Context) -> None:
        self.lasting = ""
        self._node = node
        self._reason = ""
        self._since = 0  # microseconds

    def met(self, error: StagewrightError) -> None:
        """A commit is refused."""
        now = self._node.around.now()
        if error.problem != self._reason:
            self._reason, self._since, self.lasting = error.problem, now, ""
        elif now - self._since >= 1000 * TRIES * self._node.timing.retry:
            self.lasting = error.problem

    def over(self) -> None:
        """Something is committed, or nothing is wanted any more."""
        self._reason = self.lasting = ""
