"""A client of an indexed table in processes: it asks any server that answers, and tries again at another one."""

from __future__ import annotations

import time
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
from stagewright.impl.processes.client import Conversation, RefusedRequestError
from stagewright.impl.processes.errors import ClusterError, WireError

PAGE = 500  # rows of a scan at a time
_Reply = TypeVar("_Reply")


@dataclass(frozen=True)
class Committed:
    """A transaction has committed at a hybrid time; or, with None, it has not, and why."""

    time: int | None
    refused: str = ""


class IndexClient:
    """One client; it has one question under way."""

    def __init__(
        self,
        addresses: Callable[[], Sequence[str]],
        secret: bytes,
        tablets: int,
        seconds: float = 30.0,
    ) -> None:
        """`addresses`: of the servers that run, asked for at each connection; `tablets` of the table."""
        self._addresses = addresses
        self._secret = secret
        self._tablets = tablets
        self._seconds = seconds
        self._conversation: Conversation | None = None
        self._number = 0
        self._turn = 0

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

    def close(self) -> None:
        """Hang up."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    def _numbered(self) -> int:
        self._number += 1
        return self._number

    def _ask(self, question: Question, wanted: type[_Reply], *, once: bool = False) -> _Reply:
        until, why, pause = time.monotonic() + self._seconds, "no server runs", 0.02
        while time.monotonic() < until:
            sent = False
            try:
                if self._conversation is None:
                    self._conversation = self._connect()
                sent = True
                reply = self._conversation.ask(question, max(0.1, until - time.monotonic()))
                if isinstance(reply, wanted):
                    return reply
                assert isinstance(reply, Failed)
                if not reply.again:
                    raise ClusterError(reply.reason, help="see `build status`")
                why = reply.reason
            except RefusedRequestError:
                self.close()
                raise
            except (OSError, WireError) as error:
                self.close()
                why = str(error) or type(error).__name__
                if once and sent:
                    break  # a second transaction would not be the same
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
        raise ClusterError(
            f"not answered within {self._seconds:g} s: {why}",
            help="see `stagewright cluster status`",
        )

    def _connect(self) -> Conversation:
        addresses = self._addresses()
        if not addresses:
            raise ConnectionRefusedError("no server runs")
        self._turn += 1
        return Conversation(
            addresses[self._turn % len(addresses)], self._secret, 5.0, outer_codec()
        )
