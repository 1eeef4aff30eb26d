"""A query over all nodes: each wanted partition is asked of one node, and the answers are merged.

Every node is asked for one batch at a time, and for the next when the merge has taken up the last: a slow
reader holds all of them, a slow node holds the reader, and neither needs memory for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Literal, TypeVar

from stagewright.impl.view_engine.cluster.merging import merged
from stagewright.impl.view_engine.cluster.messages import (
    Batch,
    Indexed,
    Node,
    NodeUnavailableError,
    Opened,
    OutdatedError,
    Placed,
    ViewRequest,
)
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.index.queues import BoundedQueue, QueueClosedError
from stagewright.impl.view_engine.query.local import QueryError, Row, reduces
from stagewright.impl.view_engine.query.params import Query
from stagewright.impl.view_engine.scheduling import THREADS, Running, Scheduler
from stagewright.impl.view_engine.trace.answer_trace import AnswerTrace
from stagewright.impl.view_engine.trace.trace import NO_TRACE, Trace

OnError = Literal["continue", "stop"]
_Result = TypeVar("_Result")
MAPS_TRIED = 30  # times that a newer map is looked up, as nodes do not serve what the last one said
CALLS_TRIED = 4


class ClusterQueryError(Exception):
    """The query has no answer; the text says what to do."""


@dataclass(frozen=True)
class ClusterAnswer:
    """Rows of all nodes, and what they are an answer about.

    `errors` names the nodes whose rows are missing, or end early, and why: only with on_error="continue".
    """

    rows: Sequence[Row]
    total_rows: int | None
    indexed: Mapping[int, Indexed]
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Streaming:
    """An answer whose rows come one after the other; `errors` is complete when they have ended."""

    rows: Iterator[Row]
    total_rows: int | None
    indexed: Mapping[int, Indexed]
    errors: dict[str, str]


class Coordinator:
    """Answers queries for clients: any node can be one."""

    def __init__(
        self,
        name: str,
        nodes: Callable[[str], Node],
        placement: Callable[[], Mapping[int, str]],
        *,
        scheduler: Scheduler = THREADS,
        pause: Callable[[], None] = lambda: None,
        trace: Trace = NO_TRACE,
    ) -> None:
        """`placement` gives the node that answers for each partition; `pause` passes before it is asked again."""
        self._name = name
        self._nodes = nodes
        self._placement = placement
        self._scheduler = scheduler
        self._pause = pause
        self._trace = trace
        self._numbers = count(1)

    def query(
        self,
        design: DesignDocument,
        view: str,
        query: Query,
        on_error: OnError = "continue",
    ) -> ClusterAnswer:
        """All rows at once. Raises as `streaming`; with on_error="stop" also where a node fails later."""
        with self.streaming(design, view, query, on_error) as found:
            rows = [*found.rows]
        return ClusterAnswer(rows, found.total_rows, found.indexed, found.errors)

    @contextmanager
    def streaming(
        self, design: DesignDocument, view: str, query: Query, on_error: OnError = "continue"
    ) -> Iterator[Streaming]:
        """One snapshot of each node, open until the end of `with`.

        Raises QueryError, and ClusterQueryError where no map says who serves the partitions, or where a
        node fails and on_error is "stop".
        """
        if view not in design.places:
            raise QueryError(f"{design.name} has no view {view}; it has {', '.join(design.places)}")
        place = design.places[view]
        reducer = (
            design.shapes[place.tree].reducers[place.reducer or 0]
            if reduces(place, query)
            else None
        )
        for _ in range(MAPS_TRIED):
            traced = AnswerTrace(self._trace, f"{self._name}:{next(self._numbers)}", query)
            producers: list[_Producer] = []
            for node, request in self._requests(design.name, view, query):
                traced.asked(request.query)
                stream = f"{self._name}:{next(self._numbers)}"
                producers.append(_Producer(self._nodes(node), node, stream, request))
            gathered = _Gathered(producers, on_error, self._scheduler, traced)
            try:
                if gathered.open():
                    merge = partial(merged, query=query, reducer=reducer)
                    yield gathered.streaming(merge, counted=reducer is None)
                    return
            finally:
                gathered.close()
            self._pause()
        raise ClusterQueryError(
            "the nodes do not serve the partitions that the map says: ask again"
        )

    def _requests(self, design: str, view: str, query: Query) -> Iterator[tuple[str, ViewRequest]]:
        placement = self._placement()
        wanted = placement if query.partitions is None else dict.fromkeys(query.partitions, "")
        if unplaced := sorted(set(wanted) - set(placement)):
            raise ClusterQueryError(f"no node serves the partitions {unplaced}")
        by_node: dict[str, list[int]] = {}
        for partition in sorted(wanted):
            by_node.setdefault(placement[partition], []).append(partition)
        limit = None if query.limit is None else query.skip + query.limit
        skip = 0
        if has(Defect.merge_skips_at_each_node):
            skip = query.skip
        if has(Defect.merge_limits_nodes_to_the_page):
            limit = query.limit
        for node, partitions in sorted(by_node.items()):
            asked = replace(query, partitions=partitions, skip=skip, limit=limit)
            yield node, ViewRequest(design, view, asked)


class _Producer:
    """Gets the rows of one node, a batch ahead of the merge."""

    def __init__(self, node: Node, name: str, stream: str, request: ViewRequest) -> None:
        self.node = node
        self.name = name
        self.stream = stream
        self.request = request
        self.opened: Opened | None = None
        self.failure: Exception | None = None

    def open(self) -> None:
        try:
            self.opened = self.call(lambda: self.node.open(self.stream, self.request))
        except (OutdatedError, NodeUnavailableError, IndexNotReadyError, QueryError) as error:
            self.failure = error

    def fetch(self, into: BoundedQueue[Batch]) -> None:
        """Until the queue's reader has gone, or this node."""
        try:
            for number in count():
                batch = self.call(partial(self.node.batch, self.stream, number))
                into.put(batch, 1)
                if batch.last:
                    break
            into.end()
        except QueueClosedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised where the merge waits
            into.close(error)

    def call(self, ask: Callable[[], _Result]) -> _Result:
        """Asked again where no answer came: requests may be repeated."""
        for _ in range(CALLS_TRIED - 1):
            with suppress(NodeUnavailableError):
                return ask()
        return ask()


class _Gathered:
    """The producers of one attempt at a query."""

    def __init__(
        self,
        producers: Sequence[_Producer],
        on_error: OnError,
        scheduler: Scheduler,
        trace: AnswerTrace,
    ) -> None:
        self._producers = producers
        self._on_error = on_error
        self._scheduler = scheduler
        self._trace = trace
        self._errors: dict[str, str] = {}
        self._queues: list[BoundedQueue[Batch]] = []
        self._running: list[Running] = []

    def open(self) -> bool:
        """Whether all nodes serve what is wanted from them, but for those that are errors."""
        opening = [
            self._scheduler.start(producer.open, "view-open") for producer in self._producers
        ]
        for one in opening:
            one.join()
        failures = {p.name: p.failure for p in self._producers if p.failure is not None}
        for failure in failures.values():
            if isinstance(failure, QueryError):
                raise failure
        if any(isinstance(failure, OutdatedError) for failure in failures.values()):
            return False
        for name, failure in failures.items():
            self._note(name, failure)
        return True

    def streaming(
        self,
        merge: Callable[[Sequence[Iterator[Placed]]], Iterator[Row]],
        *,
        counted: bool,
    ) -> Streaming:
        opened = [(p, p.opened) for p in self._producers if p.opened is not None]
        nodes = [self._rows(producer) for producer, _ in opened]
        totals = [found.total_rows or 0 for _, found in opened]
        indexed = {p: at for _, found in opened for p, at in found.indexed.items()}
        rows = self._trace.given(merge(nodes), self._errors, reduced=not counted)
        return Streaming(rows, sum(totals) if counted else None, indexed, self._errors)

    def _rows(self, producer: _Producer) -> Iterator[Placed]:
        queue: BoundedQueue[Batch] = BoundedQueue(1, self._scheduler)
        self._queues.append(queue)
        fetching = self._scheduler.start(partial(producer.fetch, queue), "view-producer")
        self._running.append(fetching)
        return self._taken(queue, producer.name)

    def _taken(self, queue: BoundedQueue[Batch], node: str) -> Iterator[Placed]:
        try:
            for batch in queue:
                yield from batch.rows
        except (NodeUnavailableError, IndexNotReadyError, KeyError) as error:
            self._note(node, error)

    def _note(self, node: str, error: Exception) -> None:
        self._trace.lacks_node()
        if has(Defect.node_is_left_out):
            return
        if self._on_error == "stop":
            raise ClusterQueryError(f"{node}: {error}") from error
        self._errors[node] = f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """End all streams; nodes that hear nothing of it close theirs after a while."""
        for queue in self._queues:
            queue.close()
        for running in self._running:
            running.join()
        for producer in self._producers:
            with suppress(NodeUnavailableError):
                producer.node.close(producer.stream)
