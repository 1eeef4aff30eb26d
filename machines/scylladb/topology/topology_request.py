"""One row of `system.topology_requests`: a request of a node or of the cluster, until it is done.

Source: ScyllaDB's `topology_request_tracking_mutation_builder` (since 6.0); `topology_control.py` says why and
when. The row expires a month after it was made.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    Machine,
    action,
    equivalent_disabled,
    equivalent_drop,
    equivalents,
    final,
    flag,
    invariant,
    require,
    sometimes,
    step_property,
    unexercised,
    vacuous,
)

COORDINATOR = Actor("topology coordinator")
CLIENT = Actor("client")


class TopologyRequest(Machine):
    """One request, by its id."""

    asked: FlagVar = flag()  # its row is there
    started: FlagVar = flag()  # it has a start_time
    error: FlagVar = flag()  # it has failed, or is bound to: it was rolled back
    done: FlagVar = flag()  # it has an end_time

    @action(by=CLIENT)
    def ask(self) -> None:
        """A node asks to join, an operator has a node leave, a user has a table truncated."""
        require(~self.asked, "it is not made yet")
        self.asked = True

    @action(by=COORDINATOR)
    def start(self) -> None:
        """The coordinator takes it up."""
        self._is_pending()
        require(~self.started, "it is not taken up yet")
        self.started = True

    @action(by=COORDINATOR)
    def refuse(self) -> None:
        """It is rejected, cancelled or aborted: that it is done, and its error, are one commit."""
        self._is_pending()
        require(~self.error, "it has not failed yet")
        self.error = True
        self.done = True

    @action(by=COORDINATOR)
    def fail(self) -> None:
        """It is bound to fail: what it has begun is rolled back, and it is done later."""
        self._is_pending()
        require(~self.error, "it has not failed yet")
        self.error = True

    @action(by=COORDINATOR)
    def finish(self) -> None:
        """It is done; where it has failed, with its error."""
        self._is_pending()
        self.done = True

    def _is_pending(self) -> None:
        require(self.asked & ~self.done, "it is pending")

    @step_property
    def requests_end_once(self, after: Self) -> Bool:
        """What is reported to the client as done stays as it was reported."""
        same = (self.started == after.started) & (self.error == after.error)
        return self.done.implies(after.done & same)

    @step_property
    def nothing_is_taken_back(self, after: Self) -> Bool:
        """A request that was taken up, or has failed, does not wait again."""
        kept = self.asked.implies(after.asked) & self.started.implies(after.started)
        return kept & self.error.implies(after.error)

    @step_property
    def each_step_shows(self, after: Self) -> Bool:
        """Every step changes what a dump reports."""
        begins = (self.asked != after.asked) | (self.started != after.started)
        return begins | (self.error != after.error) | (self.done != after.done)

    @sometimes
    def a_refused_request_ends_with_its_error(self, after: Self) -> Bool:
        """Whoever waits for a request that is turned away is told so when it ends, and nothing was begun for it."""
        refused = ~self.started & ~self.error & after.error
        return refused & after.done

    @invariant
    def only_requests_that_were_made_end(self) -> Bool:
        """A row is created before anything else is written to it."""
        return (self.started | self.error | self.done).implies(self.asked)

    @final
    def may_rest(self) -> Bool:
        """A request may wait for ever, for a node that does not come back."""
        return ~self.asked | self.done

    # A row does not say who wrote it, nor why.
    harmless = equivalents(
        equivalent_disabled(
            because="what is seen here `topology-control` does, whose steps would be none without it"
        ),
        equivalent_drop(
            refuse, "it has not failed yet", because="what has failed is done by `finish`, alike"
        ),
    )

    nothing_follows = unexercised(
        vacuous(requests_end_once, because="no step is left once a request is done"),
    )
