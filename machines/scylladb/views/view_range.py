"""The view builder of vnode-based tables: it scans the node's range once round, from a token on.

000: "In contrast to vnode-based views, which are built by node-local view builder": this is that builder,
for one view. It starts at some token, goes on at the beginning when the ring ends, and is done when it has
come round. Its progress is saved after every batch, so that it is taken up after a restart; with another
number of shards it begins anew.
"""

from __future__ import annotations

from enum import Enum
from typing import Self

from stagewright.machines.scylladb.views.view_task import WORKER
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
END = 3


class Token(Enum):
    """A place in the ring, in order."""

    a = 0
    b = 1
    c = 2


class Progress(Record):
    """How far a scan is."""

    next: NumberVar = number(0, END, init=ANY)  # what to read next
    wrapped: FlagVar = flag()  # it has passed the end of the ring


class ViewRange(Machine):
    """A scan for one view, that is interrupted."""

    restarts = fault_budget(2, doc="restarts of the node")
    reshardings = budget(1, doc="restarts with another number of shards")

    exercised_at = scopes({}, {reshardings: 2})

    rows: SetVar[Token] = constant(set_of(Token, init=ANY))
    view: SetVar[Token] = set_of(Token)
    first: NumberVar = number(0, END - 1, init=ANY)  # the token at which the scan began
    scan = record(Progress)
    saved = record(Progress)  # system.scylla_views_builds_in_progress
    built: FlagVar = flag()
    resharded: FlagVar = history(flag())  # the scan has begun anew

    @initially
    def scan_begins(self) -> Bool:
        """The builder joins a scan of its base table that is somewhere; that is where its own begins."""
        return (self.scan.next == self.first) & (self.saved.next == self.first)

    @action(by=WORKER, fair=WEAK)
    def read_partition(self, t: Term[Token]) -> None:
        """The reader returns the next partition: the view is updated from it."""
        self._is_next(t)
        come_round = self.scan.wrapped & (self._number(t) >= self.first)
        require(~come_round, "the scan has not come round")
        self.view.add(t)
        self.scan.next = self._number(t) + 1

    @action(by=WORKER, fair=WEAK)
    def wrap(self) -> None:
        """The reader returns no partition: go on at the beginning of the ring."""
        require(~self.scan.wrapped, "the scan has not passed the end of the ring")
        require(~some(self._is_ahead(t) for t in self.rows), "no partition is left up to the end")
        self.scan.next = 0
        self.scan.wrapped = True

    @action(by=WORKER, fair=WEAK)
    def finish(self) -> None:
        """The scan has come round: no partition is left before the token at which it began."""
        require(~self.built, "the view is not built yet")
        self._whole_range_is_scanned()
        self.built = True

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """After a batch, the progress is written to the system table."""
        require(~self.built & (self.saved != self.scan), "there is progress")
        self.saved.next = self.scan.next
        self.saved.wrapped = self.scan.wrapped

    @action(by=WORKER, spends=restarts)
    def restart(self) -> None:
        """The node restarts: the scan goes on from the saved progress."""
        self.scan.next = self.saved.next
        self.scan.wrapped = self.saved.wrapped

    @action(by=WORKER, spends=reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The node restarts with another number of shards: the shard's scan begins anew, at its own token."""
        self.first = self._number(t)
        self.resharded = True
        for progress in (self.scan, self.saved):
            progress.next = self._number(t)
            progress.wrapped = False

    # -- helpers ---------------------------------------------------------------------------------------

    def _number(self, t: Term[Token]) -> Number:
        return t.number_column(lambda token: token.value)

    def _is_ahead(self, t: Term[Token]) -> Bool:
        return self._number(t) >= self.scan.next

    def _is_next(self, t: Term[Token]) -> None:
        require(self.rows.has(t), "the token has a partition")
        require(self._is_ahead(t), "it is ahead")
        nearer = some(self._is_ahead(u) & (self._number(u) < self._number(t)) for u in self.rows)
        require(~nearer, "it is the next one")

    def _whole_range_is_scanned(self) -> None:
        require(self.scan.wrapped, "the scan has passed the end of the ring")
        left = some(self._is_ahead(t) & (self._number(t) < self.first) for t in self.rows)
        require(~left, "no partition is left before the first token")

    def _is_behind(self, progress: Progress, t: Term[Token]) -> Bool:
        """The progress says that the token was read."""
        number = self._number(t)
        since_first = number >= self.first
        return (since_first & (progress.wrapped | (number < progress.next))) | (
            progress.wrapped & ~since_first & (number < progress.next)
        )

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self) -> Bool:
        """SUCCESS of a view means that the whole range was scanned (scylladb #26523)."""
        return self.built.implies(self.rows <= self.view)

    @invariant
    def view_rows_are_rows_of_the_base(self) -> Bool:
        """The view has no row that its base table does not have."""
        return self.view <= self.rows

    @invariant
    def progress_is_true(self) -> Bool:
        """What the progress says was read, here and in the system table, is in the view."""
        return every(
            (self._is_behind(self.scan, t) | self._is_behind(self.saved, t)).implies(
                self.view.has(t)
            )
            for t in self.rows
        )

    @invariant
    def saved_progress_is_taken_up(self) -> Bool:
        """000: this is the "node-local view builder": where its node restarts the scan goes on from the saved progress, and
        what was read up to there is not read again.
        """
        return every(
            self._is_behind(self.saved, t).implies(self._is_behind(self.scan, t)) for t in self.rows
        )

    @step_property
    def built_views_stay_built(self, after: Self) -> Bool:
        """A view that was built is not scanned anew, with whatever number of shards the node starts."""
        return self.built.implies(after.built)

    @sometimes
    def progress_is_saved_on_the_way(self, wrapped: Bool, anew: Bool) -> Bool:
        """After every batch, so that a restart costs no more than one: before the end of the ring and after it, and not when
        the scan has come to an end; the same of one that was begun anew.
        """
        begun = choose(wrapped, self.saved.next > 0, self.saved.next > self.first)
        return (self.saved.wrapped == wrapped) & begun & (self.resharded == anew)

    @accepts(reshard)
    def shards_are_added_at_any_time(self, t: Term[Token]) -> Bool:
        """A node starts with as many shards as it is given, also while a view is built."""
        return every(())

    @final
    def view_is_built(self) -> Bool:
        """A built view may stay as it is."""
        return self.built

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end."""
        return leads_to(~self.built, self.built)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            read_partition, "the scan has not come round", because="a partition may be read twice"
        ),
        equivalent_drop(
            finish, "the view is not built yet", because="a view that is built stays so"
        ),
        equivalent_drop(
            save_progress,
            "there is progress",
            because="progress may be written again, and of a view that is built",
        ),
        equivalent_weakening(_is_next, "it is ahead", because="a partition may be read twice"),
    )
