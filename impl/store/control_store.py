"""Committed control state in SQLite: a log of steps, one transaction each, that survives a crash.

The log is also what the nodes of a cluster learn from, in order of `position`. A term keeps a deposed
coordinator from committing. Only what the definition commits is written: whoever loads a state finds the
rest as it was initially.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from stagewright.impl.store.observed import state_of
from stagewright.spec.definition import Definition, Kept
from stagewright.spec.errors import StagewrightError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.trace import observation
from stagewright.spec.values import FrozenMap, State

_SCHEMA = """
CREATE TABLE IF NOT EXISTS identity (
    machine TEXT NOT NULL, profile TEXT NOT NULL, definition TEXT NOT NULL, volatile TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS term (number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS log (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    entity TEXT NOT NULL,      -- empty: an entry about the whole system
    sequence INTEGER NOT NULL, -- of the entity's committed states, from 0
    action TEXT,
    observed TEXT NOT NULL,    -- JSON: the committed variables after the step
    attached TEXT NOT NULL,    -- JSON: what the system commits with it
    UNIQUE (entity, sequence)
);
"""


class StoreError(StagewrightError):
    """A store cannot be used: another definition's, damaged, or held by a later coordinator."""

    code = "SW410"


@dataclass(frozen=True)
class Entry:
    """One committed step: `observed` are its entity's committed variables after it."""

    position: int
    entity: str
    sequence: int
    action: str | None
    observed: Mapping[str, object]
    attached: Mapping[str, object]


class ControlStore:
    """The committed states of the entities of one definition.

    `synchronous` makes every commit reach the disk itself, not only the operating system.

    Raises:
        StoreError: the file belongs to another definition, or is no store.
    """

    def __init__(
        self,
        path: Path,
        definition: Definition,
        scope: Scope,
        *,
        synchronous: bool = True,
    ) -> None:
        self.path = path
        self.definition = definition
        self.scope = scope
        self.volatile = frozenset(
            v.name for v in definition.variables if v.kept is not Kept.COMMITTED
        )
        self.listeners: list[Callable[[Entry], None]] = []  # called after each commit
        self._spelled_out = within_budgets(definition, scope)
        start = next(Interpreter(definition, scope).initial_states())
        self._fresh = observation(FrozenMap({n: v for n, v in start.items() if n in self.volatile}))
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'OFF'}")
            self._db.executescript(_SCHEMA)
            self._identify()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} is not a store: {error}", help="name another file") from None

    def _identify(self) -> None:
        """Claim an empty file for the definition; refuse one that belongs to another."""
        mine = (
            self.definition.name,
            self.definition.profile,
            self.definition.fingerprint(),
            ",".join(sorted(self.volatile)),
        )
        found = self._db.execute(
            "SELECT machine, profile, definition, volatile FROM identity"
        ).fetchone()
        if found is None:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO identity VALUES (?, ?, ?, ?)", mine)
            self._db.execute("INSERT INTO term VALUES (0)")
            self._db.execute("COMMIT")
        elif found != mine:
            self._db.close()
            raise StoreError(
                f"{self.path} holds states of {_described(found)}, not of {_described(mine)}",
                help="use the definition that wrote it, or another file",
            )

    # -- who may write -------------------------------------------------------------------------------

    def new_term(self) -> int:
        """Depose every earlier coordinator: commits in an older term are refused from now on."""
        self._db.execute("UPDATE term SET number = number + 1")
        return self.term

    @property
    def term(self) -> int:
        """The term of the coordinator that may commit."""
        return int(self._db.execute("SELECT number FROM term").fetchone()[0])

    def check_term(self, term: int) -> None:
        """Refuse a coordinator that was deposed.

        Raises:
            StoreError: a later coordinator has taken over.
        """
        now = self.term
        if term != now:
            raise StoreError(
                f"the coordinator of term {term} was deposed: the term is {now}",
                help="what it had in memory is lost; the new coordinator goes on from what is committed",
            )

    # -- states --------------------------------------------------------------------------------------

    def commit(
        self,
        entity: str,
        action: str | None,
        state: State,
        attached: Mapping[str, object] | None = None,
    ) -> Entry:
        """Write one step's state in one transaction; when this returns, it is committed."""
        assert entity, "an entry without an entity has no state: use `note`"
        kept = {n: v for n, v in state.items() if n not in self.volatile}
        return self._append(entity, action, observation(FrozenMap(kept)), attached or {})

    def note(self, attached: Mapping[str, object]) -> Entry:
        """Write an entry about the whole system."""
        return self._append("", None, {}, attached)

    def load(self, entity: str) -> State | None:
        """The last committed state of an entity, its volatile variables as they were initially.

        Raises:
            StoreError: what is stored is not a state of the definition.
        """
        row = self._db.execute(
            "SELECT observed FROM log WHERE entity = ? ORDER BY sequence DESC LIMIT 1", (entity,)
        ).fetchone()
        if row is None:
            return None
        try:
            return state_of(self._spelled_out, self.scope, {**self._fresh, **json.loads(row[0])})
        except ValueError as error:
            raise StoreError(
                f"{self.path}: the state of {entity} is damaged: {error}", help="restore a copy"
            ) from None

    def entities(self) -> list[str]:
        """Every entity that has a committed state, in the order in which they came."""
        rows = self._db.execute(
            "SELECT entity FROM log WHERE entity != '' AND sequence = 0 ORDER BY position"
        )
        return [row[0] for row in rows]

    def entries(self, after: int = 0) -> list[Entry]:
        """The log after a position."""
        rows = self._db.execute("SELECT * FROM log WHERE position > ? ORDER BY position", (after,))
        return [
            Entry(position, entity, sequence, action, json.loads(observed), json.loads(attached))
            for position, entity, sequence, action, observed, attached in rows
        ]

    def _append(
        self,
        entity: str,
        action: str | None,
        observed: Mapping[str, object],
        attached: Mapping[str, object],
    ) -> Entry:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            last = self._db.execute(
                "SELECT max(sequence) FROM log WHERE entity = ?", (entity,)
            ).fetchone()[0]
            sequence = 0 if last is None else int(last) + 1
            row = (entity, sequence, action, json.dumps(observed), json.dumps(attached))
            position = self._db.execute(
                "INSERT INTO log (entity, sequence, action, observed, attached) VALUES (?, ?, ?, ?, ?)",
                row,
            ).lastrowid
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        assert position is not None
        entry = Entry(position, entity, sequence, action, observed, attached)
        for listener in self.listeners:
            listener(entry)
        return entry

    def close(self) -> None:
        """Close the file; everything that was committed is in it."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()


def _described(identity: tuple[str, str, str, str]) -> str:
    machine, profile, fingerprint, volatile = identity
    name = f"{machine} ({profile})" if profile else machine
    return f"{name}, definition {fingerprint}" + (f", volatile {volatile}" if volatile else "")
