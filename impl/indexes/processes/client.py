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
    HowFar,
    LookUp,
    MakeIndex,
    Question,
    RemoveIndex,
    RowKeys,
    RowsAt,
    Scan,
    Transact,
    Transacted,
    outer_codec,
)
from stagewright.impl.indexes.schema import row_key, tablet_of
from stagewright.impl.processes.asking import Asking
from stagewright.impl.processes.errors import ClusterError

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
        """`addresses`: of the servers that run, asked for at each connection; `tablets` of the table."""
        super().__init__(addresses, secret, seconds, 5.0, outer_codec())
        self._tablets = tablets

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
        tablet = tablet_of(row_key(key), self._tablets)
        found = self._ask(Scan(self._numbered(), tablet, key, 1, at), RowsAt)
        return dict(found.rows).get(key)

    def scan(self, at: int = 0) -> Iterator[tuple[int, Mapping[str, int]]]:
        """All rows as of one time, tablet by tablet, in the order of their keys."""
        for tablet in range(self._tablets):
            first: int | None = None
            while True:
                found = self._ask(Scan(self._numbered(), tablet, first, PAGE, at), RowsAt)
                at = at or found.at
                yield from found.rows
                if len(found.rows) < PAGE:
                    break
                first = found.rows[-1][0] + 1

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
            ClusterError: also if the index is not built, or has nothing from before that time.
        """
        return self._ask(LookUp(self._numbered(), index, value, at), RowKeys)

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, question: Question, wanted: type[_Reply], *, once: bool = False) -> _Reply:
        reply = self._answer(question, _fault, once=once)
        assert isinstance(reply, wanted)
        return reply


def _fault(reply: object) -> str:
    """Why another server, or another time, may give a better answer; empty if none will."""
    if not isinstance(reply, Failed):
        return ""
    if not reply.again:
        raise ClusterError(reply.reason, help=reply.help)
    return reply.reason
