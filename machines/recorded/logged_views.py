"""View building as the logs of a cluster's nodes tell of it: batches by the lines of one worker, tasks by who finished them.

Source: design document 000 (view-building-coordinator, 2025-12). The words are ScyllaDB's: `Starting view building batch for
tasks [...]. Task type ...`, `Batch with tasks [...] finished`, `Removing finished task with ID: ...`.
"""

from __future__ import annotations

from stagewright.spec import Actor, Bool, FlagVar, Machine, action, flag, invariant, require

WORKER = Actor("view building worker")
COORDINATOR = Actor("view building coordinator")


class LoggedBatches(Machine):
    """The batches of one shard, in one life of its node, in the order of the worker's own lines."""

    runs: FlagVar = flag()
    crowded: FlagVar = flag()  # a batch started beside another one

    @action(by=WORKER)
    def start(self) -> None:
        """The worker says that a batch starts."""
        require(~self.runs, "no other batch runs on the shard")
        self.crowded = self.crowded | self.runs
        self.runs = True

    @action(by=WORKER)
    def finish(self) -> None:
        """It says that the batch has finished, or that it was aborted."""
        self.runs = False

    @invariant
    def one_batch_a_shard(self) -> Bool:
        """000: "it can execute only one batch per shard"."""
        return ~self.crowded


class LoggedTask(Machine):
    """A task that the coordinator removes as finished, beside what the worker that was called for it says."""

    finished: FlagVar = flag()  # a batch with it has finished
    removed: FlagVar = flag()

    @action(by=WORKER)
    def finish(self) -> None:
        """The worker's log says that a batch with the task has finished."""
        self.finished = True

    @action(by=COORDINATOR)
    def remove(self) -> None:
        """The coordinator commits that it is finished. The log of the worker goes on after that."""
        require(self.finished, "the worker has finished it")
        self.removed = True

    @invariant
    def finished_tasks_were_executed(self) -> Bool:
        """000: after "the response from the worker" the coordinator "removes those tasks from group0 state"."""
        return self.removed.implies(self.finished)


class LoggedScan(Machine):
    """The reads of one base table by the worker of one node, in one life of it."""

    flushed: FlagVar = flag()
    missed: FlagVar = flag()  # sstables were read, and a memtable may have had more

    @action(by=WORKER)
    def flush(self) -> None:
        """The log says "Flushed base table … for views: …"."""
        self.flushed = True

    @action(by=WORKER)
    def read(self) -> None:
        """The log says "Starting range … building for base table: …"."""
        require(self.flushed, "the base table was flushed")
        self.missed = self.missed | ~self.flushed

    @invariant
    def sstables_have_all_that_was_written(self) -> Bool:
        """What was in memory when the building began is read, too."""
        return ~self.missed
