"""Barriers as they are recorded: by the coordinator for each tablet, and by each node for each barrier.

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
)

COORDINATOR = Actor("topology coordinator")
NODE = Actor("node")


class StageBarrier(Machine):
    """The barriers of one tablet: the coordinator counts the barrier of a stage when it has passed."""

    passed: FlagVar = flag()  # a barrier that began in this stage has passed
    counted: FlagVar = flag()  # so the tablet's machine was told

    @action(by=COORDINATOR)
    def enter(self) -> None:
        """The tablet enters a stage; barriers of the last one say nothing of it."""
        self.passed = False
        self.counted = False

    @action(by=COORDINATOR)
    def end(self) -> None:
        """A barrier ends that began after the stage was committed: it has passed."""
        self.passed = True

    @action(by=COORDINATOR)
    def count(self) -> None:
        """The tablet's machine takes the barrier for passed."""
        require(self.passed, "a barrier of this stage has passed")
        self.counted = True

    @action(by=COORDINATOR)
    def forget(self) -> None:
        """Another coordinator takes over, which knows of no barrier."""
        self.passed = False
        self.counted = False

    @invariant
    def only_passed_barriers_count(self) -> Bool:
        """What the machine was told is so."""
        return self.counted.implies(self.passed)


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
