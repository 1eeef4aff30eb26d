"""View updates: a base row changes while a task builds its view, and updates arrive late and out of order.

Source: design document 000 (view-building-coordinator, 2025-12): build_range tasks "generate view updates from the
tablet replica of the base table", and where what was done is forgotten we "have to redo the work. However, view
building tasks are idempotent". An update has the timestamp of the base row that it is made from.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated

from stagewright.machines.scylladb.views.view_task import WORKER, Work
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    accepts,
    action,
    between,
    bounded,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    greatest,
    independent,
    invariant,
    leads_to,
    least,
    lemma,
    liveness,
    number,
    numbers,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    sometimes,
)

LAST = 3  # timestamp of the base row; the first is 1
WEAK = Fairness.WEAK
CLIENT = Actor("client")
NETWORK = Actor("network")


class Key(Enum):
    """A key of the view: the value of a column of the base row."""

    first = auto()
    second = auto()


class ViewUpdates(Machine):
    """One base row and its row in one view, which has another key whenever the base row's value changes."""

    redos = fault_budget(1, doc="executions of the task whose end is forgotten")

    exercised_at = scopes({}, {redos: 2})

    # the base replica
    value: OptionalVar[Key] = optional(Key)  # none: there is no row
    timestamp: NumberVar = number(0, LAST)
    # the task, and what its batch has read
    created: FlagVar = flag()
    work: OneVar[Work] = one_of(Work, init=Work.none)
    read: OptionalVar[Key] = optional(Key)
    read_at: NumberVar = number(0, LAST)
    # updates on their way, by their timestamps
    puts = per(number(1, LAST), set_of(Key))
    deletes = per(number(1, LAST), set_of(Key))
    # the view replica: a row is there if it was put after it was deleted
    put_at = per(Key, number(0, LAST))
    deleted_at = per(Key, number(0, LAST))

    @action(by=CLIENT)
    def write(self, k: Term[Key]) -> None:
        """The base row is written: its view row is put, and that of the value before deleted."""
        bounded(self.timestamp < LAST, "a timestamp is left")
        now = self._now()
        self.puts[now].put(k, self._has_live_updates())
        for old in Key:
            gone = self._is_replaced(old) & (k != old)
            self.deletes[now].put(old, gone & self._has_live_updates())
        self.value = k
        self.timestamp = now

    @action(by=CLIENT)
    def delete(self) -> None:
        """The base row is deleted, and its view row."""
        bounded(self.timestamp < LAST, "a timestamp is left")
        require(self.value.is_some(), "there is a row")
        now = self._now()
        for old in Key:
            self.deletes[now].put(old, self._is_replaced(old) & self._has_live_updates())
        self.value = None
        self.timestamp = now

    @action(by=CLIENT)
    def create_view(self) -> None:
        """A view is created, with its task; every write from now on updates it, too."""
        require(~self.created, "not created yet")
        self.created = True

    @action(by=WORKER, fair=WEAK)
    def execute(self) -> None:
        """The batch reads the base row."""
        require(self.created & (self.work == Work.none), "the task is to be executed")
        self.work = Work.executing
        self.read = self.value
        self.read_at = self.timestamp

    @action(by=WORKER, fair=WEAK)
    def finish(self) -> None:
        """The batch sends the update that it has made of what it read."""
        require(self.work == Work.executing, "it is executed")
        self.work = Work.done
        for k in self.read:
            self.puts[greatest(self._batch_timestamp(), 1)].add(k)

    @action(by=WORKER, spends=redos)
    def forget(self) -> None:
        """Coordinator and worker restart: the work has to be done again."""
        require(self.work != Work.none, "it is executed, or done")
        self.work = Work.none

    @action(by=NETWORK, fair=WEAK)
    def put(self, k: Term[Key], t: Annotated[Number, between(1, LAST)]) -> None:
        """An update arrives: an older one changes nothing."""
        require(self.puts[t].has(k), "it is on its way")
        self.puts[t].discard(k)
        self.put_at[k] = greatest(self.put_at[k], t)

    @action(by=NETWORK, fair=WEAK)
    def remove(self, k: Term[Key], t: Annotated[Number, between(1, LAST)]) -> None:
        """A deletion arrives."""
        require(self.deletes[t].has(k), "it is on its way")
        self.deletes[t].discard(k)
        self.deleted_at[k] = greatest(self.deleted_at[k], t)

    # -- helpers -----------------------------------------------------------------------------------------

    def _now(self) -> Number:
        return least(self.timestamp + 1, LAST)

    def _has_live_updates(self) -> Bool:
        """Writes update every view that there is, also one that is not built."""
        return self.created

    def _is_replaced(self, old: Key) -> Bool:
        """The value that the base replica reads before it writes."""
        return self.value == old

    def _batch_timestamp(self) -> Number:
        """The batch's updates have the timestamp of the row that was read."""
        return self.read_at

    def _is_there(self, k: Term[Key]) -> Bool:
        return self.put_at[k] > self.deleted_at[k]

    def _nothing_is_under_way(self) -> Bool:
        return every(self.puts[t].is_empty() & self.deletes[t].is_empty() for t in numbers(1, LAST))

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(write)
    def rows_are_written_while_views_are_built(self, k: Term[Key]) -> Bool:
        """A client writes the base row whatever the worker does with it."""
        return (self.timestamp < LAST) & (self.value != k)

    @accepts(delete)
    def rows_are_deleted_while_views_are_built(self) -> Bool:
        """The same of a deletion."""
        return (self.timestamp < LAST) & self.value.is_some()

    @accepts(create_view)
    def views_are_created_at_any_time(self) -> Bool:
        """000: tasks are created when "a view/index is created", of a table with rows and of one without."""
        return ~self.created

    @independent(execute, finish, of=(value, timestamp, puts, deletes, put_at, deleted_at))
    def tasks_wait_for_no_write(self) -> None:
        """000: "the worker will eventually reply that the task was finished": however often the row is written meanwhile, and
        whichever updates are on their way.
        """

    @independent(put, remove, of=(created, work, read, read_at, value, timestamp))
    def updates_wait_for_no_task(self) -> None:
        """000: "view building tasks are idempotent": updates arrive before, while and after one is executed."""

    @invariant
    def the_view_is_what_the_base_row_says(self, k: Term[Key]) -> Bool:
        """000: "view building tasks are idempotent": once executed, and however often and late, the view has the
        row of the base row's value, and no other.
        """
        at_rest = (self.work == Work.done) & self._nothing_is_under_way()
        return at_rest.implies(self._is_there(k) == (self.value == k))

    @lemma
    @liveness
    def rows_come_into_the_view(self, k: Term[Key]) -> LeadsTo:
        """000, build_range: every row of the base table reaches the view that is built. A lemma: tasks and updates
        end, and where they have, the view is what the base row says.
        """
        lacks = self.created & (self.value == k)
        return leads_to(lacks, self._is_there(k) | (self.value != k))

    @sometimes
    def a_row_leaves_the_view(self, k: Term[Key]) -> Bool:
        """A row that was in the view, from the task or a write, is deleted with its base row."""
        return self.value.is_none() & (self.deleted_at[k] > self.put_at[k]) & (self.put_at[k] > 0)

    @liveness
    def tasks_and_updates_end(self) -> LeadsTo:
        """000: "the worker will eventually reply that the task was finished"; no update is on its way for ever."""
        done = (self.work == Work.done) & self._nothing_is_under_way()
        return leads_to(self.created, done)

    @final
    def at_rest(self) -> Bool:
        """There may be no view; else its task is done."""
        done = ~self.created | (self.work == Work.done)
        return done & self._nothing_is_under_way()

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(delete, "there is a row", because="what is not there is deleted in vain"),
        equivalent_drop(create_view, "not created yet", because="a view that is there stays there"),
        equivalent_loss(
            execute,
            read_at,
            because="what is deleted later is later; what is written later has an update of its own",
        ),
        equivalent_replacement(
            finish,
            "least of (read_at, 1) for greatest of (read_at, 1)",
            because="what is deleted later is later; what is written later has an update of its own",
        ),
        equivalent_replacement(
            write,
            "puts[least of (timestamp + 1, 3)][k] is assigned: 2 for 1",
            because="the next write's deletion is no older, and of an update and a deletion of one time the deletion holds",
        ),
        equivalent_replacement(
            write, "timestamp becomes", because="timestamps between two writes may be left out"
        ),
        equivalent_replacement(
            delete, "timestamp becomes", because="timestamps between two writes may be left out"
        ),
        equivalent_drop(
            forget, "it is executed, or done", because="where nothing was done nothing is forgotten"
        ),
        equivalent_loss(forget, work, because="work that is not forgotten is not done again"),
    )
