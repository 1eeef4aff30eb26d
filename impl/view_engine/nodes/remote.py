"""A node as others reach it: questions over sockets, and answers or their errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import fields
from itertools import count
from typing import Any, NoReturn, TypeVar

from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.errors import WireError
from stagewright.impl.view_engine.cluster.messages import (
    Batch,
    Indexed,
    NodeUnavailableError,
    Opened,
    OutdatedError,
    Placed,
    ViewRequest,
)
from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.group.partitions import PartitionStateError
from stagewright.impl.view_engine.nodes.messages import (
    CloseStream,
    Failed,
    NextBatch,
    OpenStream,
    Question,
    Rows,
    StreamOpened,
    view_codec,
)
from stagewright.impl.view_engine.query.local import QueryError, Row
from stagewright.impl.view_engine.query.params import UNSET, Query

_Reply = TypeVar("_Reply")
_numbers = count(1)  # of questions, in this process

_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (IndexNotReadyError, QueryError, KeyError, PartitionStateError)
}


def numbered() -> int:
    """A number for a question."""
    return next(_numbers)


class RemoteNode:
    """One node. Any thread may ask; each conversation has one question at a time."""

    def __init__(self, name: str, address: Callable[[str], str], secret: bytes) -> None:
        """`address` says where the node listens now; raises OSError if it does not run."""
        self.name = name
        self._address = address
        self._secret = secret
        self._lock = threading.Lock()
        self._idle: list[tuple[str, Conversation]] = []

    def ask(self, question: Question, wanted: type[_Reply], seconds: float = 10.0) -> _Reply:
        """The answer. Raises NodeUnavailableError, or what went wrong at the node."""
        try:
            address = self._address(self.name)
            conversation = self._conversation(address)
        except (OSError, WireError) as error:
            raise NodeUnavailableError(f"{self.name}: {error}") from error
        try:
            answer = conversation.ask(question, seconds)
        except (OSError, WireError) as error:
            conversation.close()
            raise NodeUnavailableError(f"{self.name}: {error}") from error
        with self._lock:
            self._idle.append((address, conversation))
        if isinstance(answer, Failed):
            _raise(answer)
        if not isinstance(answer, wanted):
            raise NodeUnavailableError(f"{self.name} answers {type(answer).__name__}")
        return answer

    def close(self, stream: str = "") -> None:
        """The stream is not wanted any more; without one, hang up."""
        if stream:
            self.ask(CloseStream(numbered(), stream), object)
            return
        with self._lock:
            for _, conversation in self._idle:
                conversation.close()
            self._idle = []

    def open(self, stream: str, request: ViewRequest) -> Opened:
        """As `Node.open`."""
        query = _text(request.query)
        question = OpenStream(numbered(), stream, request.design, request.view, query)
        opened = self.ask(question, StreamOpened, seconds=60)
        return Opened(
            {p: Indexed(*at) for p, at in opened.indexed.items()},
            opened.total_rows,
        )

    def batch(self, stream: str, number: int) -> Batch:
        """As `Node.batch`."""
        found = self.ask(NextBatch(numbered(), stream, number), Rows)
        rows = [Placed(range_, Row(*row)) for range_, *row in json.loads(found.rows)]
        return Batch(rows, found.last)

    def _conversation(self, address: str) -> Conversation:
        with self._lock:
            while self._idle:
                where, conversation = self._idle.pop()
                if where == address:
                    return conversation
                conversation.close()
        return Conversation(address, self._secret, 5.0, view_codec())


def query_of(text: bytes) -> Query:
    """The query that `_text` wrote."""
    given: dict[str, Any] = json.loads(text)
    return Query(**given)


def _text(query: Query) -> bytes:
    values = {field.name: getattr(query, field.name) for field in fields(query)}
    given = {name: value for name, value in values.items() if value is not UNSET}
    return json.dumps(given).encode()


def _raise(failed: Failed) -> NoReturn:
    if failed.error == OutdatedError.__name__:
        raise OutdatedError(failed.partitions)
    raise _ERRORS.get(failed.error, NodeUnavailableError)(failed.reason)
