"""Barriers as they are recorded: at each node, from what the coordinator asks to what it counts.

A barrier has two phases. In the first a node learns what is committed and drains requests that began before;
in the second it learns the new fence.
"""

from __future__ import annotations

from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    Machine,
    action,
    flag,
    invariant,
    require,
    sometimes,
)

COORDINATOR = Actor("topology coordinator")
NODE = Actor("node")


class NodeBarrier(Machine):
    """One barrier at one node, from what the coordinator asks to what it counts."""

    learned: FlagVar = flag()  # the node has learned what was committed when the barrier began
    drained: FlagVar = flag()  # requests that it began before have ended
    fenced: FlagVar = flag()  # it refuses what is older than the barrier
    drain_answered: FlagVar = flag()
    fence_answered: FlagVar = flag()
    passed: FlagVar = flag()

    @action(by=NODE)
    def learn(self) -> None:
        """The node knows what was committed when the barrier began."""
        self.learned = True

    @action(by=NODE)
    def drain(self) -> None:
        """No request goes on that began under an older version."""
        self.drained = True

    @action(by=NODE)
    def answer_drain(self) -> None:
        """The node acknowledges the first phase."""
        require(self.learned, "the node has learned what is committed")
        require(self.drained, "the node has drained older requests")
        self.drain_answered = True

    @action(by=NODE)
    def learn_fence(self) -> None:
        """The node knows that the fence is at the barrier's version."""
        self.fenced = True

    @action(by=NODE)
    def answer_fence(self) -> None:
        """The node acknowledges the second phase."""
        require(self.fenced, "the node knows the fence")
        self.fence_answered = True

    @action(by=COORDINATOR)
    def end(self) -> None:
        """The coordinator takes the barrier for passed, though the node is not ignored."""
        require(self.drain_answered, "the node has acknowledged that it drained")
        require(self.fence_answered, "the node has acknowledged the fence")
        self.passed = True

    @invariant
    def nothing_older_goes_on_after_the_barrier(self) -> Bool:
        """After a barrier the node coordinates nothing that is older, and serves nothing that is."""
        return self.passed.implies(self.learned & self.drained & self.fenced)

    @sometimes
    def a_barrier_can_pass(self) -> Bool:
        """A node that learns and drains lets the barrier pass."""
        return self.passed
