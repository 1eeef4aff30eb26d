"""The leader of a tablet of the table: statements of clients, safe times, and chunks of backfills."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from stagewright.impl.indexes.backfill_worker import BackfillWorker
from stagewright.impl.indexes.bulk.work import GetReady
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    Altered,
    AlterTable,
    Answer,
    Apply,
    AskFate,
    AskSchema,
    AskTablets,
    BackfillChunk,
    BatchDone,
    Divide,
    EntriesWritten,
    Fate,
    Finish,
    GetSafeTime,
    Message,
    Prepare,
    Prepared,
    ReadRows,
    RowsFound,
    SafeTime,
    SchemaKnown,
    TabletHasSplit,
    Tablets,
    Write,
    Written,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import (
    LockAwaited,
    SafeTimeGiven,
    SchemaApplied,
    SplitAwaited,
    StatementCame,
    StatementHeld,
    StatementWaits,
)
from stagewright.impl.indexes.schema import (
    EntryChange,
    Schema,
    Values,
    by_tablet,
    changes,
    key_of,
    row_key,
    stored_row,
)
from stagewright.impl.indexes.splits.divisible import DivisibleTablet
from stagewright.impl.indexes.splits.tablet_map import TabletMap, TabletMaps, place_parts
from stagewright.impl.indexes.tablet import META, ROWS, Intent
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS
from stagewright.impl.indexes.user_enforced import UserEnforced
from stagewright.impl.storage.port import Put, RowStore, Version, live
from stagewright.machines.yugabytedb.indexes.index_states import Permission

_MASTER = "master"
_SCHEMA = b"schema"
_BUILDING = (Permission.delete_only, Permission.write_and_delete, Permission.do_backfill)


@dataclass
class _Statement:
    """A statement under way: it waits for tablets of indexes."""

    sender: str
    write: Write
    participants: tuple[str, ...]
    missing: dict[str, tuple[EntryChange, ...]] = field(
        default_factory=dict[str, tuple[EntryChange, ...]]
    )
    answer: Answer | None = None
    refused: int | None = None  # since when, as tablets of indexes have split


class TableTablet(DivisibleTablet):
    """Its rows are versions by hybrid time; the values are the columns, as JSON."""

    def __init__(self, number: int, port: Port, store: RowStore, settings: Settings) -> None:
        super().__init__(port, store, settings)
        self.number = number
        self.schema = self._stored_schema()
        self.maps = TabletMaps(settings.tablets)  # of indexes
        self._statements: dict[str, dict[int, _Statement]] = defaultdict(dict)
        self._waiting: dict[bytes, list[tuple[str, Write, int]]] = {}
        self._safe_times: dict[int, int] = {}  # since when a job waits
        self.worker = BackfillWorker(self)
        self._enforced = UserEnforced(self)
        if self.is_bulk and self.division.split is None:
            self._get_builder_ready()

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        if self.division.split is not None and self.division.answer(sender, message):
            return
        match message:
            case Write(transaction, statement):
                self.port.note(StatementCame(self.number, transaction, statement))
                self._on_write(sender, message, self.port.now())
            case Prepared(transaction, number, answer):
                self._on_prepared(sender, (transaction, number), answer)
            case Finish():
                self._enforced.finish(sender, message)
            case EntriesWritten():
                self._enforced.on_entries_written(sender, message)
            case Apply():
                self.on_apply(sender, message)
            case Fate():
                self.on_fate(message)
            case AlterTable(schema):
                self._alter(schema)
            case AskSchema(request):
                self.port.send(sender, SchemaKnown(request, self.schema))
            case ReadRows(_, _, _, at):
                self.when_decided(at, lambda: self._read(sender, message))
            case _:
                self._receive_more(sender, message)

    def _receive_more(self, sender: str, message: Message) -> None:
        """Of backfills, and of splits."""
        match message:
            case GetSafeTime(job, indexes):
                self._safe_times.setdefault(job, self.port.now())
                self._answer_safe_time(job, indexes)
            case BackfillChunk():
                self.worker.ask(message)
            case BatchDone():
                self.worker.on_batch_done(sender, message)
            case Divide(split, tablets):
                self.division.begin(split, tablets)
            case TabletHasSplit():
                self._on_refused(sender)
            case Tablets(tablets):
                self._on_tablets(tablets)
            case _:
                pass

    def freeze(self) -> None:
        super().freeze()
        self.worker.leave()
        self._enforced.forget()
        under_way = [one for some in self._statements.values() for one in some.values()]
        self._statements.clear()
        for statement in under_way:
            if statement.answer is None:
                self._end_wait(statement)
                self._refuse(statement.sender, statement.write, Answer.tablet_has_split)
        waiting, self._waiting = self._waiting, {}
        for some in waiting.values():
            for sender, write, since in some:
                self.port.note(LockAwaited(write.transaction, self.port.now() - since))
                self._refuse(sender, write, Answer.tablet_has_split)

    def inherited(self) -> Iterator[Put]:
        schema = self.store.get(META, _SCHEMA)
        if schema is not None:
            yield Put(META, schema)

    # -- tablets of indexes that split -----------------------------------------------------------------------

    def _on_refused(self, place: str) -> None:
        """A tablet of an index has split: the master knows who has its entries, as soon as they are served."""
        for some in self._statements.values():
            for statement in some.values():
                if place in statement.missing and statement.refused is None:
                    statement.refused = self.port.now()
        self.worker.on_refused(place)
        table, _ = place_parts(place)
        self.port.send(_MASTER, AskTablets(table))

    def _on_tablets(self, tablets: TabletMap) -> None:
        """What is under way goes to those that serve now."""
        if not self.maps.learn(tablets):
            return
        for some in self._statements.values():
            for statement in list(some.values()):
                self._send_elsewhere(statement)
        self._enforced.send_elsewhere()
        self.worker.send_elsewhere()

    def _send_elsewhere(self, statement: _Statement) -> None:
        changed = [c for asked in statement.missing.values() for c in asked]
        missing = self.by_tablet(changed)
        if statement.answer is not None or missing.keys() == statement.missing.keys():
            return
        statement.missing = missing
        statement.participants = tuple(dict.fromkeys((*statement.participants, *missing)))
        self._end_wait(statement)
        self._prepare(statement)

    def _end_wait(self, statement: _Statement) -> None:
        if statement.refused is not None:
            waited = self.port.now() - statement.refused
            self.port.note(SplitAwaited(statement.write.transaction, waited))
            statement.refused = None

    def by_tablet(self, changed: Iterable[EntryChange]) -> dict[str, tuple[EntryChange, ...]]:
        """Changes of entries by the tablet that they are for, as far as this one knows."""
        if Defect.entries_follow_the_first_child not in self.settings.defects:
            return by_tablet(changed, self.maps)
        found = defaultdict[str, tuple[EntryChange, ...]](tuple)
        for change in changed:
            place = self.maps.first_place_of(change.index, change.entry)
            found[place] += (change,)
        return found

    # -- schemas -------------------------------------------------------------------------------------------

    def _stored_schema(self) -> Schema:
        found = self.store.get(META, _SCHEMA)
        return Schema() if found is None else Schema.decoded(found.value or b"[0, []]")

    def _alter(self, schema: Schema) -> None:
        if schema.version > self.schema.version:
            self.put([Put(META, Version(_SCHEMA, schema.version, schema.encoded()))])
            before, self.schema = self.schema, schema
            self.port.note(SchemaApplied(self.number, before, schema))
            known = {index.number for index in before.indexes}
            if self.is_bulk and any(i.number not in known for i in schema.indexes):
                self._get_builder_ready()  # it has time until the backfill
        self.port.send(_MASTER, Altered(self.number, self.schema.version))

    def _get_builder_ready(self) -> None:
        self.port.elsewhere(GetReady(), lambda _: None)

    @property
    def is_building(self) -> bool:
        """Whether an index is being built, as far as it knows."""
        return any(i.permission in _BUILDING for i in self.schema.indexes)

    @property
    def is_bulk(self) -> bool:
        """Whether a builder reads its rows: there are many, and they are to be read as fast as can be."""
        return not self.settings.rows_per_second and self.rows >= self.settings.bulk

    # -- rows ------------------------------------------------------------------------------------------------

    def _read(self, sender: str, message: ReadRows) -> None:
        low = b"" if message.first is None else row_key(message.first)
        snapshot = self.store.snapshot()
        found = [
            (key_of(v.key), json.loads(v.value or b"{}"))
            for v in islice(live(snapshot, ROWS, low, at=message.at), message.limit)
        ]
        snapshot.close()
        self.port.send(sender, RowsFound(message.request, tuple(found)))

    def apply(self, transaction: str, time: int | None) -> None:
        super().apply(transaction, time)
        for statement in self._statements.pop(transaction, {}).values():
            if statement.answer is None and time is None:
                self._refuse(statement.sender, statement.write, Answer.aborted)

    def when_decided(self, at: int, then: Callable[[], None]) -> None:
        """Go on when nothing commits here at a time or before it any more."""
        self.clock.observe(at)
        pending = {i.transaction for i in self.intents.values()}
        self._enforced.when_stored(at, lambda: self.resolve(pending, at, then))

    def close(self) -> None:
        super().close()
        self.worker.close()

    # -- statements ------------------------------------------------------------------------------------------

    def _on_write(self, sender: str, write: Write, since: int) -> None:
        known = self._statements.get(write.transaction, {}).get(write.statement)
        if known is not None:
            known.sender = sender
            self._answer(known)
            return
        if self.has_ended(write.transaction):
            if self.settings.user_enforced:
                self._enforced.answer_again(sender, write.transaction)
            else:  # of one that has committed, it is a copy, and its client has gone on
                self._refuse(sender, write, Answer.aborted)
            return
        if write.schema.version != self.schema.version:
            checked = Defect.requests_are_not_checked not in self.settings.defects
            if checked or self.schema.version == 0:
                self._refuse(sender, write, Answer.mismatched_schema)
                return
        blocked = Defect.writes_wait_for_the_backfill in self.settings.defects
        if blocked and self.worker.is_busy:
            self.port.after(5, self._on_write, sender, write, since)
            return
        if self.settings.user_enforced:
            self._plan(sender, write)
            return
        key = row_key(write.key)
        holder = self.intents.get(key)
        if holder is not None and holder.transaction != write.transaction:
            self._wait(sender, write, key)
            self.port.send(RECORDS, AskFate(holder.transaction, 0))
            return
        self._execute(sender, write)

    def _plan(self, sender: str, write: Write) -> None:
        old: Values = json.loads(self._now(row_key(write.key)))
        until = self._enforced.plan(sender, write, old)
        self._note_planned(write, until)

    def _note_planned(self, write: Write, until: int | None = None) -> None:
        schema, statement = write.schema, (write.transaction, write.statement)
        planned = tuple((i.number, i.permission.number) for i in schema.indexes)
        note = StatementHeld(
            self.number, *statement, schema.version, planned, write.key, until=until
        )
        self.port.note(note)

    def _wait(self, sender: str, write: Write, key: bytes) -> None:
        """For the row's lock; a copy of a statement that waits already changes nothing."""
        waiting = self._waiting.setdefault(key, [])
        if all(other != write for _, other, _ in waiting):
            now = self.port.now()
            waiting.append((sender, write, now))
            note = StatementWaits(self.number, write.transaction, write.statement, key)
            self.port.note(note)
            self.port.after(self.settings.lock_wait, self._give_up, key, write, now)

    def _refuse(self, sender: str, write: Write, answer: Answer) -> None:
        schema = self.schema if answer is Answer.mismatched_schema else None
        here = (self.port.address,)
        self.port.send(sender, Written(write.transaction, write.statement, answer, here, schema))

    def _give_up(self, key: bytes, write: Write, since: int) -> None:
        waiting = self._waiting.get(key, [])
        for one in waiting:
            if one[1] is write:
                waiting.remove(one)
                self.port.note(LockAwaited(write.transaction, self.port.now() - since))
                self._refuse(one[0], write, Answer.conflict)
                return

    def released(self, keys: Iterable[bytes]) -> None:
        """Statements that waited for these rows go on, in their order."""
        for key in keys:
            for sender, write, since in self._waiting.pop(key, []):
                now = self.port.now()
                self.port.note(LockAwaited(write.transaction, now - since))
                self._on_write(sender, write, now)

    def _execute(self, sender: str, write: Write) -> None:
        key = row_key(write.key)
        held = self.intents.get(key)
        if held is not None and write.statement in held.statements:
            before = held.before  # asked again, of another leader
        else:
            before = self._now(key) if held is None else (held.value or "{}")
        statements = (*(held.statements if held else ()), write.statement)
        planned = [(i.number, i.permission.number) for i in write.schema.indexes]
        self._note_planned(write)
        if held is not None:
            planned = [*held.planned, *planned]
        stored = stored_row(write.values)
        value = None if stored is None else stored.decode()
        intent = Intent(write.transaction, statements, value, before=before, planned=tuple(planned))
        self.hold({key: intent})
        old: Values = json.loads(before)
        asked = self.by_tablet(self._changes(write, old))
        statement = _Statement(sender, write, (self.port.address, *asked), dict(asked))
        self._statements[write.transaction][write.statement] = statement
        self._prepare(statement)

    def _changes(self, write: Write, old: Values) -> Iterator[EntryChange]:
        """What a statement does to the indexes."""
        had = set[tuple[int, bytes]]()
        if Defect.unchanged_entries_are_left in self.settings.defects:
            had = {(c.index, c.entry) for c in changes(write.schema, write.key, {}, old)}
        for change in changes(write.schema, write.key, old, write.values or {}):
            if change.row is None or (change.index, change.entry) not in had:
                yield change

    def _now(self, key: bytes) -> str:
        version = self.store.get(ROWS, key)
        return "{}" if version is None or version.value is None else version.value.decode()

    def _prepare(self, statement: _Statement) -> None:
        write = statement.write
        for place, asked in list(statement.missing.items()):
            if self.are_gone(asked):
                del statement.missing[place]
        if not statement.missing and statement.answer is None:
            statement.answer = Answer.done
        if statement.answer is not None:
            self._answer(statement)
            return
        if self.has_ended(write.transaction) or self.division.split is not None:
            return
        for place, asked in statement.missing.items():  # who commits waits for this disk, too
            prepare = Prepare(write.transaction, write.statement, asked)
            self.port.send(place, prepare, early=True)
        self.port.after(self.settings.retry, self._retry, statement)

    def are_gone(self, asked: tuple[EntryChange, ...]) -> bool:
        """Their indexes were deleted meanwhile."""
        known = {i.number for i in self.schema.indexes}
        return self.schema.version > 0 and all(change.index not in known for change in asked)

    def _retry(self, statement: _Statement) -> None:
        if statement.answer is None:
            self._prepare(statement)

    def _on_prepared(self, sender: str, key: tuple[str, int], answer: Answer) -> None:
        statement = self._statements.get(key[0], {}).get(key[1])
        if statement is None or statement.answer is not None or sender not in statement.missing:
            return
        match answer:
            case Answer.done:
                del statement.missing[sender]
                if not statement.missing:
                    self._prepare(statement)
            case Answer.duplicate | Answer.aborted:
                statement.answer = answer
                self._answer(statement)
            case _:  # asked again, until the client gives up
                self.port.note(LockAwaited(key[0], self.settings.retry))

    def _answer(self, statement: _Statement) -> None:
        if statement.answer is not None:
            write = statement.write
            self.port.send(
                statement.sender,
                Written(
                    write.transaction, write.statement, statement.answer, statement.participants
                ),
            )

    # -- safe times ----------------------------------------------------------------------------------------------

    def _answer_safe_time(self, job: int, indexes: tuple[int, ...]) -> None:
        """002, "Waiting for pending transactions to finish": those from before WRITE_AND_DELETE, then abort them."""
        old = sorted({i.transaction for i in self.intents.values() if _is_old(i, indexes)})
        if Defect.old_transactions_are_not_awaited in self.settings.defects:
            old = []
        if not old and self._is_waited_out(job):
            time = self.clock.now()
            self.port.note(SafeTimeGiven(job, self.number, indexes, time))
            self.port.send(_MASTER, SafeTime(job, self.number, time, self.rows))
            return
        waited = self.port.now() - self._safe_times[job] >= self.settings.wait_for_old
        for transaction in old:
            self.port.send(RECORDS, AskFate(transaction, 0, abort=waited))
        # the master asks again

    def _is_waited_out(self, job: int) -> bool:
        """Whether what was planned before the job has been stored or has timed out: no tablet knows of it."""
        careless = Defect.user_enforced_are_not_awaited in self.settings.defects
        since = self.port.now() - self._safe_times[job]
        return not self.settings.user_enforced or careless or since >= self.settings.upper_bound


def _is_old(intent: Intent, indexes: tuple[int, ...]) -> bool:
    """Whether a part of it was planned when one of the indexes did not get new values, or not even known.

    A statement that was planned twice counts twice: its client may have heard of the first plan only.
    """
    write = Permission.write_and_delete.number
    statements = max(len(intent.statements), 1)
    for index in indexes:
        planned = [p for i, p in intent.planned if i == index]
        if len(planned) < statements or min(planned) < write:
            return True
    return False
