"""One life of a node as it is recorded: what it answers is so, whatever it was asked."""

from __future__ import annotations

from stagewright.spec import Bool, FlagVar, Machine, action, flag, invariant, require


class RecordedLife(Machine):
    """What a node does with rows beside serving requests; the parameters say what was so as it did that."""

    answered: FlagVar = flag()  # for a write
    lossy: FlagVar = flag()  # a row that it answered for was not on the disk
    streamed: FlagVar = flag()
    partial: FlagVar = flag()  # it said that it had streamed what it had not
    fleeting: FlagVar = flag()  # it said so of rows that a crash could still take
    fetched: FlagVar = flag()  # rows, from somebody
    hopes: FlagVar = flag()  # for rows of a node that was given up
    gave: FlagVar = flag()  # rows to a node that streams
    behind: FlagVar = flag()  # it did so without knowing what that node knew
    coordinated: FlagVar = flag()  # it took for done what it had ordered
    deceived: FlagVar = flag()  # it did so untold
    asked: FlagVar = flag()  # for a read
    astray: FlagVar = flag()  # it asked who does not serve reads
    # a client, that its write is written while there are to be fewer replicas
    told: FlagVar = flag()
    forgotten: FlagVar = flag()  # by a quorum of those that are left
    returned: FlagVar = flag()  # rows, to a client
    hasty: FlagVar = flag()  # it did so when fewer replicas had answered than the level asks for
    unkept: FlagVar = flag()  # what it returned, too few replicas may have after others come or go
    settled: FlagVar = flag()  # it told another replica from which version on it has a row
    hurried: FlagVar = flag()  # a crash could still take that, or views lacked something by it
    superseded: FlagVar = flag()
    bereft: FlagVar = flag()  # it removed a version that it may need
    dropped: FlagVar = flag()
    robbed: FlagVar = flag()  # it removed rows of its own

    @action
    def answer_write(self, durable: Bool) -> None:
        """A replica answers that it has stored a row; `durable`: it is on the disk."""
        require(durable, "the row is on the disk")
        self.answered = True
        self.lossy = self.lossy | ~durable

    @action
    def end_streaming(self, complete: Bool, durable: Bool) -> None:
        """It says that it has streamed; `complete`: each range that it gains came from enough replicas.

        `durable`: what came is on the disk.
        """
        require(complete, "each range came from enough replicas")
        require(durable, "what was streamed is on the disk")
        self.streamed = True
        self.partial = self.partial | ~complete
        self.fleeting = self.fleeting | ~durable

    @action
    def begin_to_fetch(self, present: Bool) -> None:
        """It asks a node for rows that it gains; `present`: nobody has given that node up."""
        require(present, "the source is not given up")
        self.fetched = True
        self.hopes = self.hopes | ~present

    @action
    def give_rows(self, current: Bool) -> None:
        """It sends rows to a node that streams; `current`: it knows what that node knew, the fence among it."""
        require(current, "the source knows what the node knew that asks")
        self.gave = True
        self.behind = self.behind | ~current

    @action
    def count_as_done(self, told: Bool) -> None:
        """As a coordinator it goes on; `told`: all whom it has asked in its term said that they have done it."""
        require(told, "all whom it has asked in this term have done it")
        self.coordinated = True
        self.deceived = self.deceived | ~told

    @action
    def ask_for_a_row(self, selected: Bool) -> None:
        """It asks a replica to read; `selected`: the ring that reads use has that replica."""
        require(selected, "the replica is of the ring that reads use")
        self.asked = True
        self.astray = self.astray | ~selected

    @action
    def acknowledge_while_fewer_stay(self, stays: Bool) -> None:
        """It tells a client that a write is written; `stays`: a quorum of the replicas that are left has stored it."""
        require(stays, "a quorum of the replicas that stay has stored it")
        self.told = True
        self.forgotten = self.forgotten | ~stays

    @action
    def return_rows(self, enough: Bool, kept: Bool) -> None:
        """It returns what it has read; `enough`: as many replicas have answered as the level asks for.

        `kept`: whoever comes or goes, a quorum will have a row that was read by itself.
        """
        require(enough, "as many replicas have answered as the level asks for")
        require(kept, "what is returned is on enough replicas, whoever comes or goes")
        self.returned = True
        self.hasty = self.hasty | ~enough
        self.unkept = self.unkept | ~kept

    @action
    def settle(self, durable: Bool, arrived: Bool) -> None:
        """It tells another replica from which version on it has a row; `durable`: that version is on the disk.

        `arrived`: views have all that follows from it and from what it has replaced.
        """
        require(durable, "the version that settles is on the disk")
        require(arrived, "views have what follows from a version that settles")
        self.settled = True
        self.hurried = self.hurried | ~(durable & arrived)

    @action
    def remove_versions(self, newer: Bool, known: Bool) -> None:
        """It removes versions of rows; `newer`: of each row a newer one stays.

        `known`: each other replica of a row that views may be of has one that is newer than those.
        """
        require(newer, "a newer version of the row stays")
        require(known, "all replicas have a newer version of the row")
        self.superseded = True
        self.bereft = self.bereft | ~(newer & known)

    @action
    def drop_rows(self, owned: Bool) -> None:
        """It removes the rows of a range; `owned`: it has a part in the range."""
        require(~owned, "the node has no part in the range")
        self.dropped = True
        self.robbed = self.robbed | owned

    @invariant
    def acknowledged_rows_are_durable(self) -> Bool:
        """What a replica answered for survives its crash."""
        return self.answered.implies(~self.lossy)

    @invariant
    def streams_are_complete(self) -> Bool:
        """After streaming the node has every row that was acknowledged."""
        return self.streamed.implies(~self.partial)

    @invariant
    def streamed_rows_are_durable(self) -> Bool:
        """After streaming no crash takes what came: nobody streams it once more."""
        return self.streamed.implies(~self.fleeting)

    @invariant
    def sources_are_there(self) -> Bool:
        """Streaming waits for nobody who may be gone."""
        return self.fetched.implies(~self.hopes)

    @invariant
    def sources_are_current(self) -> Bool:
        """Nothing that is older than the fence is written at a source behind what it has sent."""
        return self.gave.implies(~self.behind)

    @invariant
    def orders_are_carried_out(self) -> Bool:
        """Nothing that was ordered in an earlier term passes for what is ordered now."""
        return self.coordinated.implies(~self.deceived)

    @invariant
    def reads_ask_their_ring(self) -> Bool:
        """A read asks nobody who may lack rows."""
        return self.asked.implies(~self.astray)

    @invariant
    def acknowledged_rows_stay(self) -> Bool:
        """What a client was told is written survives that replicas go."""
        return self.told.implies(~self.forgotten)

    @invariant
    def reads_are_of_quorums(self) -> Bool:
        """What a quorum has acknowledged is seen by every read of one."""
        return self.returned.implies(~self.hasty)

    @invariant
    def rows_that_were_read_stay(self) -> Bool:
        """What a client has read survives that other replicas are read."""
        return self.returned.implies(~self.unkept)

    @invariant
    def settled_rows_are_settled(self) -> Bool:
        """What is older than a version that has settled is wanted by nobody."""
        return self.settled.implies(~self.hurried)

    @invariant
    def needed_versions_stay(self) -> Bool:
        """The newest version of a row is kept, and others as long as a replica may have nothing newer."""
        return self.superseded.implies(~self.bereft)

    @invariant
    def cleanup_leaves_what_is_owned(self) -> Bool:
        """Only rows of ranges that were lost go."""
        return self.dropped.implies(~self.robbed)
