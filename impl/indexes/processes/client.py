"""A client of an indexed table in processes: it asks any server that answers, and tries again at another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.wire import (
    AskHowFar,
    BuildDeferred,
    Changes,
    Failed,
    Halved,
    HalveTablet,
    HowFar,
    LookUp,
    MakeIndex,
    Question,
    RemoveIndex,
    RowKeys,
    RowsAt,
    Scan,
    TabletsNow,
    Transact,
    Transacted,
    WhichTablets,
    outer_codec,
)
from stagewright.impl.indexes.schema import row_key
from stagewright.impl.indexes.splits.tablet_map import TabletMap
from stagewright.impl.processes.asking import Asking
from stagewright.impl.processes.errors import ClusterError
from stagewright.spec.errors import InputError

PAGE = 500  # rows of a scan at a time
_Reply = TypeVar("_Reply")


@dataclass(frozen=True)
class Committed:
    """A transaction has committed at a hybrid time; or, with None, it has not, and why."""

    time: int | None
    refused: str = ""


class IndexClient(Asking):
    """One client; it has one question under way."""

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        secret: bytes,
        tablets: int,
        seconds: float = 30.0,
    ) -> None:
        """`addresses`: of the servers that run, asked for at each connection; `tablets` that the table began with."""
        super().__init__(addresses, secret, seconds, 5.0, outer_codec())
        self._tablets = TabletMap(tablets)  # an older one will do: who has split says so

    # -- rows --------------------------------------------------------------------------------------------------

    def write(self, changes: Mapping[int, Mapping[str, int] | None]) -> Committed:
        """Write rows, or delete them with None, in one transaction.

        Raises:
            ClusterError: the server did not answer: it may have committed.
        """
        rows: Changes = tuple((k, None if v is None else dict(v)) for k, v in changes.items())
        found = self._ask(Transact(self._numbered(), rows), Transacted, once=True)
        return Committed(found.time or None, found.refused if not found.time else "")

    def get(self, key: int, at: int = 0) -> Mapping[str, int] | None:
        """The columns of a row, now or as of a hybrid time.

        Raises:
            ClusterError: (as of all that follow) no server answers.
        """
        while True:
            found = self._read(self._tablets.of(row_key(key)), key, 1, at)
            if found is not None:
                return dict(found.rows).get(key)

    def scan(self, at: int = 0) -> Iterator[tuple[int, Mapping[str, int]]]:
        """All rows as of one time, tablet by tablet, in the order of their keys."""
        left: list[tuple[int, int | None]] = [(t, None) for t in self._tablets.numbers]
        while left:
            tablet, first = left.pop(0)
            found = self._read(tablet, first, PAGE, at)
            if found is None:  # it has split meanwhile: what is left is at its children
                left[:0] = [(heir, first) for heir in self._tablets.heirs(tablet)]
                continue
            at = at or found.at
            yield from found.rows
            if len(found.rows) == PAGE:
                left.insert(0, (tablet, found.rows[-1][0] + 1))

    def _read(self, tablet: int, first: int | None, limit: int, at: int) -> RowsAt | None:
        """Rows of a tablet; None: it has split, and the map is the newest one."""
        question = Scan(self._numbered(), tablet, first, limit, at)
        reply = self._answer(question, _fault)
        if isinstance(reply, TabletsNow):
            self._tablets = reply.tablets
            return None
        assert isinstance(reply, RowsAt)
        return reply

    # -- tablets -----------------------------------------------------------------------------------------------

    def tablets(self, index: str = "") -> TabletMap:
        """The tablets of the table, or of an index.

        Raises:
            InputError: there is no such index.
        """
        found = self._ask(WhichTablets(self._numbered(), index), TabletsNow).tablets
        if not index:
            self._tablets = found
        return found

    def split(self, tablet: int, index: str = "") -> tuple[int, ...]:
        """Have a tablet of the table, or of an index, split; returns at once, with those that it splits into.

        Raises:
            InputError: there is no such index or tablet.
            ClusterError: also if a backfill is going on (of the table), or another tablet is splitting.
        """
        return self._ask(HalveTablet(self._numbered(), tablet, index), Halved).children

    # -- indexes -----------------------------------------------------------------------------------------------

    def create(
        self, name: str, column: str, *, unique: bool = False, deferred: bool = False
    ) -> Build:
        """CREATE INDEX, which returns at once; one of that name that is there is left alone."""
        question = MakeIndex(self._numbered(), name, column, unique, deferred)
        (build,) = self._ask(question, HowFar).builds
        return build

    def drop(self, name: str) -> Build:
        """DROP INDEX: it is removed in steps after this has returned."""
        (build,) = self._ask(RemoveIndex(self._numbered(), name), HowFar).builds
        return build

    def backfill(self) -> None:
        """BACKFILL: deferred indexes are built now."""
        self._ask(BuildDeferred(self._numbered()), HowFar)

    def builds(self) -> tuple[Build, ...]:
        """How far the builds of all indexes are, the newest of each name."""
        return self._ask(AskHowFar(self._numbered()), HowFar).builds

    def look_up(self, index: str, value: int, at: int = 0) -> RowKeys:
        """The keys of the rows that an index has for a value, now or as of a hybrid time.

        Raises:
            InputError: there is no such index, or it has nothing from before that time.
            ClusterError: also if the index is not built.
        """
        return self._ask(LookUp(self._numbered(), index, value, at), RowKeys)

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, question: Question, wanted: type[_Reply], *, once: bool = False) -> _Reply:
        reply = self._answer(question, _fault, once=once)
        assert isinstance(reply, wanted)
        return reply


def _fault(reply: object) -> str:
    """Why another server, or another time, may give a better answer; empty if this one counts."""
    if not isinstance(reply, Failed):
        return ""
    if reply.never:
        raise InputError(reply.reason, help=reply.help)
    if not reply.again:
        raise ClusterError(reply.reason, help=reply.help)
    return reply.reason
