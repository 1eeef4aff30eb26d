"""What is recorded of change logs: log rows as they are sent and stored, sets of streams, and readers.

Source: design document 003 (cdc), sections "Generations" and "Generation switching". The parameters say what was so
as it happened. How many replicas must have a log row, `RecordedWrite` says, as of every row.
"""

from __future__ import annotations

from stagewright.spec import Bool, FlagVar, Machine, action, flag, invariant, require


class RecordedChange(Machine):
    """The log row of one change."""

    logged: FlagVar = flag()
    astray: FlagVar = flag()  # it went where no reader looks for it
    torn: FlagVar = flag()  # a replica got one of the two rows that were both for it
    imaged: FlagVar = flag()
    stale: FlagVar = flag()  # its image of the row before lacks what was acknowledged by then

    @action
    def log(self, operates: Bool, mapped: Bool, timely: Bool) -> None:
        """It is acknowledged, and was sent in the generation that operates at its timestamp, in the stream of its
        token, and in time. A node that is cut off may send others, which the fence refuses.
        """
        require(operates, "the generation of its stream operates at its timestamp")
        require(mapped, "its stream is that of the row's token")
        require(timely, "its timestamp is in the window")
        self.logged = True
        self.astray = self.astray | ~(operates & mapped & timely)

    @action
    def store(self, together: Bool) -> None:
        """A replica stores the row, or the log row, or both; `together`: all of them that are for it."""
        require(together, "a replica of both rows stores both at once")
        self.torn = self.torn | ~together

    @action
    def image(self, newest: Bool) -> None:
        """It says what the row was before; `newest`: as of the newest write that was acknowledged by then."""
        require(
            newest, "the image is of the newest acknowledged version before it, or of a newer one"
        )
        self.imaged = True
        self.stale = self.stale | ~newest

    @invariant
    def readers_find_changes(self) -> Bool:
        """003: "The stream ID is taken from the generation operating at this timestamp"."""
        return self.logged.implies(~self.astray)

    @invariant
    def replicas_get_both_rows_or_none(self) -> Bool:
        """003: "each replica either receives both writes or none of them"."""
        return ~self.torn

    @invariant
    def images_are_of_the_row_before(self) -> Bool:
        """What a change says the row was before it is what a read would have returned."""
        return self.imaged.implies(~self.stale)


class RecordedStreams(Machine):
    """The sets of streams of a table of tablets, or the generations of all tables of the token ring."""

    begun: FlagVar = flag()
    disordered: FlagVar = flag()  # a set begins no later than the one before it
    surprising: FlagVar = flag()  # one begins before every node can know it
    unfit: FlagVar = flag()  # tablets or vnodes and streams are not the same in number and place
    expired_early: FlagVar = flag()
    cleared_early: FlagVar = flag()
    needless: FlagVar = flag()  # a write was refused that each node has to take

    @action
    def begin_set(self, later: Bool, ahead: Bool, fitting: Bool) -> None:
        """A set is committed: with a later timestamp than the last one, ahead of now, and a stream for each place."""
        require(later, "it begins after the set before it")
        require(ahead | ~self.begun, "it begins when every node has had time to learn of it")
        require(fitting, "there is a stream where each tablet, or shard of a vnode, lies")
        self.disordered = self.disordered | ~later
        self.surprising = self.surprising | (self.begun & ~ahead)
        self.unfit = self.unfit | ~fitting
        self.begun = True

    @action
    def change_places(self, followed: Bool) -> None:
        """Tablets are split or merged; `followed`: the same command has the streams for the new ones."""
        require(followed, "the new tablets have their streams in the same command")
        self.unfit = self.unfit | ~followed

    @action
    def expire(self, over: Bool) -> None:
        """A node forgets log rows; `over`: they are older than the table keeps them."""
        require(over, "the rows are older than the log keeps them")
        self.expired_early = self.expired_early | ~over

    @action
    def clear(self, over: Bool) -> None:
        """A set is removed; `over`: no node needs it for writes, or no reader for what logs still keep."""
        require(self.begun, "there is one")
        require(over, "no write is for it any more, and what it has for readers has expired")
        self.cleared_early = self.cleared_early | ~over

    @action
    def lack(self, due: Bool) -> None:
        """A node refuses a write as no set that it knows operated at its timestamp; `due`: there was none."""
        require(due, "no set operated at the timestamp")
        self.needless = self.needless | ~due

    @invariant
    def sets_follow_each_other(self) -> Bool:
        """003: a generation operates "in a time interval [T, T')", T' being "the following generation's timestamp"."""
        return ~self.disordered

    @invariant
    def nodes_learn_in_time(self) -> Bool:
        """003: the time is a while ahead "so that other nodes have a chance to learn about this generation"."""
        return ~self.surprising

    @invariant
    def log_rows_lie_with_their_rows(self) -> Bool:
        """003: base and log write have "the same set of replicas"; for this there is a stream in each place."""
        return self.begun.implies(~self.unfit)

    @invariant
    def what_may_be_needed_is_kept(self) -> Bool:
        """003: of a generation that is superseded the entry "will be gone"; not before it is needed no more
        (scylladb PR #17374).
        """
        return ~self.cleared_early

    @invariant
    def nodes_have_what_writes_need(self) -> Bool:
        """Each node takes what the others take (scylladb #17184)."""
        return ~self.needless

    @invariant
    def rows_are_kept_as_long_as_said(self) -> Bool:
        """A reader who is behind by less than that finds them."""
        return ~self.expired_early


class RecordedReader(Machine):
    """One consumer of one log, over its restarts."""

    reads: FlagVar = flag()
    apart: FlagVar = flag()  # what it read did not begin where it stood
    hasty: FlagVar = flag()  # it read what may be written still
    lacking: FlagVar = flag()  # it read what may be expired, and did not say so

    @action
    def read(self, follows: Bool, confident: Bool, there: Bool) -> None:
        """It reads a span of time of one set; `there`: nothing of it has expired."""
        require(follows, "it begins where the reader stands, with the set that operates then")
        require(confident, "nothing can be written to it any more")
        require(there, "nothing of it has expired")
        self.reads = True
        self.apart = self.apart | ~follows
        self.hasty = self.hasty | ~confident
        self.lacking = self.lacking | ~there

    @invariant
    def each_change_is_read_once(self) -> Bool:
        """003: clients read the streams of each generation and "the time intervals they are operating at"."""
        return self.reads.implies(~self.apart)

    @invariant
    def nothing_comes_behind_the_reader(self) -> Bool:
        """A change that is written where the reader has been is lost to it."""
        return self.reads.implies(~self.hasty)

    @invariant
    def gaps_are_not_passed_over(self) -> Bool:
        """A reader who is too late learns that changes are gone."""
        return self.reads.implies(~self.lacking)
