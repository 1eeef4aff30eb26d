"""The group process of an index and the two workers that change its B-trees: updater and cleaner.

Each works on a snapshot of the group, as its own process, and hands back a group that the group process
takes over, while the bitmasks may have changed under it. `partition_index.py` adds compactor, file and
crashes, and the promises.
"""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition
from stagewright.machines.couchbase.partitions.partition_states import (
    LAST_SEQ,
    MANAGER,
    OF_THE_GROUP,
    Content,
    Entry,
    PartitionGroup,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    Machine,
    SetVar,
    Term,
    action,
    bounded,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_without,
    equivalents,
    flag,
    number,
    part,
    per,
    profiles,
    record,
    require,
    set_of,
    some,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
UPDATER = Actor("updater")
CLEANER = Actor("cleaner")
AGAIN = "what is clean may be cleaned again"


class PartitionWorkers(Machine):
    """One index whose partitions change their state while workers update it and clean it up."""

    release = profiles(SEED, COUCHBASE)
    writes = budget(2, doc="mutations of documents")
    requests = budget(3, doc="requests of the cluster manager")
    interruptions = budget(1, doc="workers that the group process stops before they are done")

    index = part(PartitionGroup, without=(PartitionGroup.index, PartitionGroup.clean))
    source = per(Partition, number(0, LAST_SEQ))  # the highest sequence number of the partition
    down: FlagVar = flag()  # the group process has crashed, and is starting again
    unwritten: FlagVar = flag()  # the group process is about to write a header
    updater: FlagVar = flag()
    updating = per(Partition, record(Entry))  # the updater's group
    told: SetVar[Partition] = set_of(
        Partition
    )  # messages to the updater: partitions that are new, and passive
    cleaner: FlagVar = flag()
    cleaning = per(Partition, record(Entry))  # the cleaner's group
    compactor: FlagVar = flag()
    blank = constant(record(Entry))

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes."""
        bounded(self.source[p] < LAST_SEQ, "a sequence number is left")
        self.source[p] = self.source[p] + 1

    # -- requests: the group process stops the workers whose result would be of another index -------------

    @action(by=MANAGER, spends=requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active; one that was passive does not disturb the updater."""
        require(~self.updater | self._has(p), "updater is stopped, or knows the partition")
        self._change_states()
        self.index.set_active(p)

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive; the updater, if it runs, will be told of a new one."""
        self._change_states()
        new = ~self._has(p) & ~self.index.group[p].content.cbit
        self.told.put(p, self.told.has(p) | (self.updater & new))
        self.index.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed: the updater has to start again without it."""
        require(~self.updater | ~self._has(p), "updater is stopped, or does not know the partition")
        self._change_states()
        self.index.set_cleanup(p)

    @action(by=MANAGER, spends=requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater must not go on with the partition; the mark is written with the next header."""
        self._change_marks()
        self.index.mark_unindexable(p)

    @action(by=MANAGER, spends=requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The next updater goes on with the partition."""
        self._change_marks()
        self.index.mark_indexable(p)

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        """Once the cleaner is done, what waited for it happens."""
        self._change_states()
        require(~self.updater, "updater is stopped")
        self.index.apply_pending_transition()

    # -- updater -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """A query, or the daemon that triggers updates, finds the index behind the documents."""
        self._group_process_is_free()
        require(~self.updater & ~self.cleaner, "updater does not run, cleaner is stopped")
        require(some(self._is_behind(self.index.group[p], p) for p in Partition), "index is behind")
        self.updater = True
        for p in Partition:
            self.updating[p] = self.index.group[p]

    @action(by=UPDATER, fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """The updater writes the rows of the next mutation, and purges the rows of partitions in cleanup."""
        entry = self.updating[p]
        require(self._is_behind(entry, p), "a mutation is left")
        newer = entry.content.rows <= entry.content.seq
        entry.content.rows = choose(newer, entry.content.seq + 1, entry.content.rows)
        entry.content.seq = entry.content.seq + 1

    @action(by=UPDATER)
    def purge(self, p: Term[Partition]) -> None:
        """A bulk insert drops what it meets of partitions in cleanup."""
        require(self.updating[p].content.cbit, "partition is in cleanup")
        self.updating[p].content.cbit = False
        self.updating[p].content.rows = 0

    @action(by=UPDATER)
    def learn_of_new_partition(self, p: Term[Partition]) -> None:
        """The updater gets the message that a passive partition is new, in time to index it."""
        entry = self.updating[p]
        require(self.told.has(p), "the updater is told of the partition")
        entry.pbit = True
        entry.content = self.index.group[p].content
        self.told.discard(p)

    @action
    def checkpoint(self) -> None:
        """The group process takes over what the updater has written so far."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        require(some(self._has_written(p) for p in Partition), "updater has written a batch")
        self._take_over_update()

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """The updater has come to the end of all partitions that it knows of."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        behind = some(self._is_behind(self.updating[p], p) for p in Partition)
        require(~behind, "nothing is left to index")
        self._take_over_update()
        self._forget_updater()

    @action(spends=interruptions)
    def stop_updater(self) -> None:
        """The updater is stopped for a request; what it has written is taken over."""
        self._group_process_is_free()
        require(self.updater, "updater runs")
        self._take_over_update()
        self._forget_updater()

    # -- cleaner -----------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_cleaner(self) -> None:
        """No other worker runs and there is something to clean up."""
        self._group_process_is_free()
        require(~self.cleaner, "cleaner does not run")
        require(~self.updater & ~self.compactor, "no other worker runs")
        require(
            some(self.index.group[p].content.cbit for p in Partition), "a partition is in cleanup"
        )
        self.cleaner = True
        for p in Partition:
            self.cleaning[p] = self.index.group[p]

    @action(by=CLEANER, fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The cleaner has removed the rows of a partition."""
        require(self.cleaning[p].content.cbit, "partition is in cleanup")
        self.cleaning[p].content.cbit = False
        self.cleaning[p].content.rows = 0

    @action(fair=WEAK)
    def finish_cleaner(self) -> None:
        """The cleaner has removed all that it had to."""
        self._group_process_is_free()
        require(self.cleaner, "cleaner runs")
        require(
            ~some(self.cleaning[p].content.cbit for p in Partition), "nothing is left to clean up"
        )
        self._take_over_cleanup()

    @action(spends=interruptions)
    def stop_cleaner(self) -> None:
        """The cleaner is stopped for a request or another worker; what it has removed stays removed."""
        self._group_process_is_free()
        require(self.cleaner, "cleaner runs")
        self._take_over_cleanup()

    # -- what recurs -------------------------------------------------------------------------------------

    def _has(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].abit | self.index.group[p].pbit

    def _is_behind(self, entry: Entry, p: Term[Partition]) -> Bool:
        return entry.content.in_seqs & (entry.content.seq < self.source[p])

    def _has_written(self, p: Term[Partition]) -> Bool:
        return self.updating[p].content.rows != self.index.group[p].content.rows

    def _group_process_is_free(self) -> None:
        require(~self.down & ~self.unwritten, "group process is up, its header is written")

    def _change_states(self) -> None:
        self._group_process_is_free()
        require(~self.cleaner, "cleaner is stopped")
        self.unwritten = True
        self._stop_compactor()

    def _change_marks(self) -> None:
        self._group_process_is_free()
        require(~self.updater, "updater is stopped")
        self._stop_compactor()

    def _stop_compactor(self) -> None:
        self.compactor = False

    def _take_over_update(self) -> None:
        """The updater's group, under the bitmasks and the pending transition that we have by now."""
        for p in Partition:
            self.index.group[p].content = self._merged(p, self.updating[p])
        self.unwritten = True

    def _merged(self, p: Term[Partition], theirs: Entry) -> Content:
        """A worker's content of the partition; ours, if the partition is newer than the worker."""
        known = theirs.content.in_seqs | theirs.content.in_unindexable_seqs
        new = self._has(p) & (self.index.group[p].content.seq == 0)
        return choose(new & ~known, self.index.group[p].content, theirs.content)

    def _take_over_cleanup(self) -> None:
        """The cleaner's B-trees; partitions may have been marked since it started, so the rest is ours."""
        for p in Partition:
            self.index.group[p].content.cbit = self.cleaning[p].content.cbit
            self.index.group[p].content.rows = self.cleaning[p].content.rows
        self.unwritten = True
        self._forget_cleaner()

    def _forget_updater(self) -> None:
        self.updater = False
        self.told = frozenset()
        for p in Partition:
            self.updating[p] = self.blank

    def _forget_cleaner(self) -> None:
        self.cleaner = False
        for p in Partition:
            self.cleaning[p] = self.blank

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_without(
            PartitionGroup.set_active,
            PartitionGroup.set_passive,
            PartitionGroup.set_cleanup,
            PartitionGroup.mark_unindexable,
            PartitionGroup.mark_indexable,
            because="a request that is not heard is one that nobody made",
        ),
        equivalent_loss(write, source, because="what clients write is theirs"),
        equivalent_drop(mark_indexable, "partition is unindexable", because=OF_THE_GROUP),
        equivalent_loss(
            mark_indexable,
            Entry.pending_unindexable,
            Content.in_seqs,
            Content.in_unindexable_seqs,
            PartitionGroup.paused,
            because=OF_THE_GROUP,
        ),
        equivalent_loss(
            index_mutation,
            Content.rows,
            because="there are more rows only under the seed, of an earlier time",
        ),
        equivalent_loss(purge, Content.cbit, because=AGAIN),
        equivalent_loss(
            learn_of_new_partition,
            Entry.pbit,
            Entry.content,
            because="otherwise it will see it the next time it is started",
        ),
        equivalent_drop(
            _group_process_is_free,
            "group process is up, its header is written",
            because="what comes while a header is written, or a file opened, would do no harm",
        ),
        equivalent_drop(
            _change_states,
            "cleaner is stopped",
            because="the cleaner does no harm to what is added",
        ),
        equivalent_loss(_take_over_cleanup, Content.cbit, because=AGAIN),
        equivalent_loss(
            _forget_updater, told, updating, because="the next one works on a snapshot of its own"
        ),
        equivalent_loss(
            _forget_cleaner, cleaning, because="the next one works on a snapshot of its own"
        ),
    )
