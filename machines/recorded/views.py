"""What nodes record of views: the updates that they send, and the batches of their view building workers.

Source: design document 000 (view-building-coordinator, 2025-12), section "View building worker". The parameters say
what was so as it happened.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import Bool, FlagVar, Machine, action, flag, invariant, require, step_property


class RecordedUpdates(Machine):
    """The view updates of one life of a node."""

    changed: FlagVar = flag()
    partial: FlagVar = flag()  # a row changed, and a row of a view was left as it was
    sent: FlagVar = flag()
    astray: FlagVar = flag()  # an update was sent that was not to be sent so
    forgotten: FlagVar = flag()
    lost: FlagVar = flag()  # an update was forgotten that somebody lacks

    @action
    def change_row(self, complete: Bool) -> None:
        """A replica stores a version of a base row; `complete`: it keeps updates of the rows before and after."""
        require(complete, "the view rows before and after are updated")
        self.changed = True
        self.partial = self.partial | ~complete

    @action
    def send_update(self, durable: Bool, timely: Bool, paired: Bool) -> None:
        """It sends one: after its base row is on the disk, with its timestamp, to whom it is paired with.

        A hint that has come with its tablet may be of a version that a newer one has replaced. Who is spared while its
        tablet of a view is rebuilt without it sends the rows that it has to who takes its place.
        """
        require(durable, "the base row is on the disk")
        require(timely, "the update has the timestamp of a base row")
        require(paired, "it goes to the paired view replica, or to one that comes")
        self.sent = True
        self.astray = self.astray | ~(durable & timely & paired)

    @action
    def forget_hint(self, arrived: Bool) -> None:
        """It drops what it keeps of an update; `arrived`: all that it is for have it, or the view is gone."""
        require(arrived, "all that the update is for have it")
        self.forgotten = True
        self.lost = self.lost | ~arrived

    @invariant
    def rows_of_views_follow(self) -> Bool:
        """No row of a view stays as it was when its base row changes."""
        return self.changed.implies(~self.partial)

    @invariant
    def updates_are_right(self) -> Bool:
        """Views have what their base tables have, at the same places."""
        return self.sent.implies(~self.astray)

    @invariant
    def updates_are_kept(self) -> Bool:
        """An update is kept until it has arrived."""
        return self.forgotten.implies(~self.lost)


class RecordedTasks(Machine):
    """The view building tasks of a base table, as each command leaves them in group0."""

    seen: FlagVar = flag()
    misplaced: FlagVar = flag()
    orphaned: FlagVar = flag()
    stranded: FlagVar = flag()

    @action
    def commit(self, placed: Bool, owned: Bool, pending: Bool) -> None:
        """A command is committed that changes tasks of the table, or its tablets.

        `placed`: each task is of a replica that its tablet has, or gets; `owned`: each is of a view that is there;
        `pending`: those that are aborted are of tablets that move.
        """
        require(placed, "each task is of a replica of its tablet")
        require(owned, "each task is of a view that is there")
        require(pending, "tasks are aborted while their tablet moves, and no longer")
        self.seen = True
        self.misplaced = self.misplaced | ~placed
        self.orphaned = self.orphaned | ~owned
        self.stranded = self.stranded | ~pending

    @invariant
    def tasks_move_with_their_tablets(self) -> Bool:
        """000: when an operation ends, its tasks are replaced by ones for the replicas that the tablet has then."""
        return self.seen.implies(~self.misplaced & ~self.stranded)

    @invariant
    def tasks_go_with_their_view(self) -> Bool:
        """000: when a view is dropped, "we simply delete relevant view building tasks"."""
        return ~self.orphaned


class RecordedBatch(Machine):
    """One shard in one life of its node: its batches, one after the other."""

    runs: FlagVar = flag()
    finished: FlagVar = flag()  # the last one
    lacking: FlagVar = flag()  # rows, in a view whose task was finished
    unfounded: FlagVar = flag()  # a batch was started for what is no batch

    @action
    def start(self, stored: Bool, alike: Bool, processed: Bool, flushed: Bool) -> None:
        """A batch starts, of tasks that are `stored` in group0 and `alike`: of one type, table, tablet and replica.

        `processed`: the coordinator processes their table; `flushed`: after their views were created.
        """
        require(~self.runs, "no other batch runs on the shard")
        require(stored, "group0 stores its tasks")
        require(alike, "its tasks are of one type and tablet replica, and this is it")
        require(processed, "their base table is processed")
        require(flushed, "the base table was flushed since their views are there")
        self.unfounded = self.unfounded | ~(stored & alike & processed & flushed)
        self.runs = True
        self.finished = False

    @action
    def finish(self, complete: Bool) -> None:
        """It is through; `complete`: the views have every row that was there when it started."""
        require(self.runs, "a batch runs")
        require(complete, "every row that was there is in the view")
        self.runs = False
        self.finished = True
        self.lacking = self.lacking | ~complete

    @action
    def give_up(self) -> None:
        """Its tasks were aborted, or are gone."""
        require(self.runs, "a batch runs")
        self.runs = False

    @invariant
    def finished_tasks_leave_no_row(self) -> Bool:
        """000, build_range: "generate view updates from the tablet replica": of all its rows."""
        return self.finished.implies(~self.lacking)

    @invariant
    def batches_are_of_tasks(self) -> Bool:
        """000: tasks of one batch are alike, and group0 stores them."""
        return ~self.unfounded

    @step_property
    def one_batch_at_a_time(self, after: Self) -> Bool:
        """000: "it can execute only one batch per shard"."""
        return (self.runs & after.runs).implies(after.finished == self.finished)


class RecordedStaging(Machine):
    """What came by streams to one tablet replica, in one life of its node, and waits in staging until views have it."""

    came: FlagVar = flag()
    passed_over: FlagVar = flag()  # a row went to the base directory that a view may lack
    ended: FlagVar = flag()  # a stream
    untasked: FlagVar = flag()  # it ended, and nothing says that what it staged is to be processed
    # it ended, and what was staged at the old replica is base at the new one
    left_behind: FlagVar = flag()
    processed: FlagVar = flag()
    premature: FlagVar = flag()  # by a replica whose updates reach no view replica
    lacking: FlagVar = flag()  # a row left staging that a view has not

    @action
    def stage(self, whole: Bool) -> None:
        """Rows come; `whole`: all that views may lack, by how far these are built and why the rows come, are staged."""
        require(whole, "the rows that a view may lack go to staging")
        self.came = True
        self.passed_over = self.passed_over | ~whole

    @action
    def end_stream(self, registered: Bool, moved: Bool) -> None:
        """A stream is said to be over; `moved`: what is staged where it came from is staged here."""
        require(registered, "group0 stores a task for what is staged")
        require(moved, "what was staged at the replica that leaves is staged at the one that comes")
        self.ended = True
        self.untasked = self.untasked | ~registered
        self.left_behind = self.left_behind | ~moved

    @action
    def process(self, paired: Bool, updated: Bool) -> None:
        """A row leaves staging for the base directory; `updated`: the views have it, or what it was replaced by."""
        require(paired, "the replica is paired with view replicas")
        require(updated, "the views have the row")
        self.processed = True
        self.premature = self.premature | ~paired
        self.lacking = self.lacking | ~updated

    @invariant
    def rows_that_views_lack_wait(self) -> Bool:
        """000: is a view started, or does a repair come to one that is built: "create view building tasks"."""
        return self.came.implies(~self.passed_over)

    @invariant
    def what_waits_has_a_task(self) -> Bool:
        """000: a task is created when "a staging sstable was registered", and goes where its tablet goes."""
        return self.ended.implies(~self.untasked & ~self.left_behind)

    @invariant
    def views_are_updated_first(self) -> Bool:
        """000: "generate view updates and move to base directory", not "before the writes are directed to the new replica"."""
        return self.processed.implies(~self.premature & ~self.lacking)
