"""What every answer must be: map/reduce over the documents at what it reports, each partition once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import zip_longest
from typing import Any

from stagewright.impl.view_engine import View
from stagewright.impl.view_engine.campaign.copies import History
from stagewright.impl.view_engine.campaign.map_reduce import groups, rows_of, selected
from stagewright.impl.view_engine.cluster.coordinator import ClusterAnswer
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.documents.store import partition_of
from stagewright.impl.view_engine.query.params import Query


def numbers(document: Any, _meta: Any) -> Iterator[tuple[object, object]]:
    for number in document["numbers"]:
        yield [number % 3, number % 5], number


def names(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    if document["numbers"]:
        yield meta["id"], len(document["numbers"])


VIEWS = {"numbers": View(numbers, "_sum"), "names": View(names, "_count")}
FUNCTIONS = {"numbers": numbers, "names": names}


class WrongAnswerError(AssertionError):
    """The text says what was asked, what came, and what should have."""


def check_answer(
    history: History,
    partitions: int,
    view: str,
    query: Query,
    answer: ClusterAnswer,
    acknowledged: Mapping[int, Position],
    now: Mapping[int, Position],
) -> None:
    """Raises WrongAnswerError. `acknowledged` is what was written before the query, `now` the histories."""
    wanted = set(range(partitions) if query.partitions is None else query.partitions)
    covered = set(answer.indexed)
    if covered - wanted or (wanted - covered and not answer.errors):
        raise WrongAnswerError(
            f"{_asked(view, query)}: partitions {sorted(covered)} instead of {sorted(wanted)}"
        )
    if query.stale == "false":
        _check_age(history, answer, acknowledged, now)
    documents: dict[str, Any] = {}
    for partition, at in answer.indexed.items():
        documents.update(history.documents(partition, at.history, at.seq))
    rows = rows_of(documents, FUNCTIONS[view])
    expected = _expected(rows, view, query)
    found = [(row.key, row.value, row.id) for row in answer.rows]
    if answer.errors:
        if query.reduce is False and query.skip == 0 and query.limit is None:
            _check_part(found, expected)
        return
    if found != expected:
        raise WrongAnswerError(f"{_asked(view, query)}: {_difference(found, expected)}")
    if query.reduce is False and answer.total_rows is not None:
        met = len(selected(rows, _each_key_once(query)))
        if answer.total_rows < met:
            raise WrongAnswerError(
                f"{_asked(view, query)}: total_rows {answer.total_rows} for {met} rows that fit"
            )


def _asked(view: str, query: Query) -> str:
    """The query, in brackets: what differs only in that is the same failure."""
    plain = Query()
    given = {f.name: getattr(query, f.name) for f in fields(query)}
    words = [f"{n}={v!r}" for n, v in given.items() if v != getattr(plain, n)]
    return f"an answer ({', '.join([view, *words])})"


def _difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    """Where rows begin to differ from those that they should be."""
    pairs = zip_longest(found, expected, fillvalue="no row")
    at, (got, right) = next((at, pair) for at, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"row {at} is {got} instead of {right}"


def _each_key_once(query: Query) -> Query:
    """Rows of a key that is asked for twice come twice, and count once."""
    keys = query.keys
    if keys is None:
        return query
    return replace(query, keys=[key for i, key in enumerate(keys) if key not in keys[:i]])


def _check_part(found: Sequence[Any], expected: Sequence[Any]) -> None:
    left = [*expected]
    for row in found:
        if row not in left:
            raise WrongAnswerError(f"{row} is not there, or twice, in an answer with errors")
        left.remove(row)


def _check_age(
    history: History,
    answer: ClusterAnswer,
    acknowledged: Mapping[int, Position],
    now: Mapping[int, Position],
) -> None:
    for partition, at in answer.indexed.items():
        if not at.indexable or partition not in acknowledged:
            continue
        before = acknowledged[partition]
        if at.history is None and partition not in now:
            continue  # a failover without replicas: nobody has its documents any more
        known = at.history or now[partition].uuid
        needed = min(before.seq, history.shared(partition, before.uuid, known))
        if at.seq < needed:
            raise WrongAnswerError(
                f"partition {partition} is indexed up to {at.seq}; {needed} was written before"
            )


def _expected(rows: list[Any], view: str, query: Query) -> list[tuple[Any, Any, Any]]:
    stop = None if query.limit is None else query.skip + query.limit
    chosen = selected(rows, query)
    if query.reduce is False:
        return chosen[query.skip : stop]
    if query.keys is not None:  # one group each, also of a key that is asked for twice
        each = [selected(rows, replace(query, keys=[key])) for key in query.keys]
        found = [(of[0][0], _reduced(view, [row[1] for row in of]), None) for of in each if of]
    elif query.grouped:
        found = [(key, _reduced(view, values), None) for key, values in groups(chosen, query)]
    else:
        found = [(None, _reduced(view, [row[1] for row in chosen]), None)] if chosen else []
    return found[query.skip : stop]


def _reduced(view: str, values: list[Any]) -> object:
    return sum(values) if view == "numbers" else len(values)


def partition_of_document(doc_id: str, partitions: int) -> int:
    return partition_of(doc_id.encode(), partitions)
