"""A query equals map/reduce over the documents at the sequence numbers that it reports."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.impl.view_engine.memory_source import MemorySource

from stagewright.impl.view_engine import Query, QueryError, View, doc, emit, item, meta_id
from stagewright.impl.view_engine.campaign.map_reduce import groups, rows_of, selected
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.store import partition_of
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.query.local import answer

PARTITIONS = 8
CITIES = ["Berlin", "Oslo", "Paris", "Rome"]


def by_city(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    if "city" in document:
        yield [document["city"], document["age"] % 5, meta["id"]], document["age"]


def ages(document: Any, meta: Any) -> Iterator[tuple[object, object]]:
    for number in document.get("ages", ()):
        yield number, number


DESIGN = {
    "by_city": View(by_city, "_sum"),
    "counted": View(by_city, "_count"),
    "ages": View(emit(item, item, each=doc.ages), "_stats"),
    "plain": View(emit(doc.city, meta_id)),
}
FUNCTIONS = {"by_city": by_city, "counted": by_city, "ages": ages}


class World:
    """One group over a source; updates are incremental after the first."""

    def __init__(self, folder: Path, documents: int) -> None:
        self.source = MemorySource(PARTITIONS)
        chosen = random.Random(3)
        for number in range(documents):
            self.source.put(f"d{number}", _document(chosen))
        self.group = Group(folder, DesignDocument("d", DESIGN), self.source, PARTITIONS)
        self.group.wait_until_current()
        for _ in range(documents // 5):  # and half of it again, in batches
            name = f"d{chosen.randrange(documents)}"
            self.source.put(name, _document(chosen) if chosen.random() < 0.7 else None)
        self.group.wait_until_current()
        written = self.source.documents(self.group.header.seqs)
        self.partition = {name: partition_of(name.encode(), PARTITIONS) for name in written}
        self.rows = {view: rows_of(written, function) for view, function in FUNCTIONS.items()}


def _document(chosen: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "age": chosen.randrange(100),
        "ages": chosen.choices(range(-20, 20), k=3),
    }
    if chosen.random() < 0.9:
        made["city"] = chosen.choice(CITIES)
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("views"), 900)
    yield made
    made.group.close()


CITY_KEYS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(CITIES).map(lambda c: [c]),
    st.tuples(st.sampled_from(CITIES), st.integers(0, 5)).map(list),
    st.sampled_from([None, 7, "x", [], {}, ["Paris", 2, "d7"]]),
)
AGES = st.integers(-25, 25)


def queries(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Query]:
    given_keys = st.fixed_dictionaries(
        {},
        optional={
            "startkey": keys,
            "endkey": keys,
            "startkey_docid": st.sampled_from(["d1", "d300"]),
            "endkey_docid": st.sampled_from(["d5", "d2999"]),
            "inclusive_end": st.booleans(),
        },
    )
    which = (
        given_keys
        | keys.map(lambda k: {"key": k})
        | st.lists(keys, max_size=4).map(lambda k: {"keys": k})
    )
    rest = st.fixed_dictionaries(
        {"descending": st.booleans()},
        optional={
            "skip": st.integers(0, 30),
            "limit": st.integers(0, 40),
            "partitions": st.sets(st.integers(0, PARTITIONS - 1)).map(sorted),
            "reduce": st.just(False),
            "group": st.just(True),
            "group_level": st.integers(0, 3),
        },
    )
    return st.builds(lambda a, b: Query(**a, **b), which, rest)


def reduced(view: str, values: list[int]) -> object:
    if view == "by_city":
        return sum(values)
    if view == "counted":
        return len(values)
    return {
        "sum": sum(values),
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "sumsqr": sum(v * v for v in values),
    }


@settings(max_examples=120)
@given(
    st.one_of(
        st.tuples(st.just("by_city") | st.just("counted"), queries(CITY_KEYS)),
        st.tuples(st.just("ages"), queries(AGES)),
    )
)
def test_answer_is_map_reduce_over_the_documents(world: World, asked: tuple[str, Query]) -> None:
    view, query = asked
    refused = query.grouped if query.reduce is False else query.keys is not None and not query.group
    with world.group.reading() as snapshot:
        if refused:
            with pytest.raises(QueryError):
                answer(snapshot, view, query)
            return
        found = answer(snapshot, view, query)
    wanted = range(PARTITIONS) if query.partitions is None else query.partitions
    assert set(found.seqs) == set(wanted)
    of_wanted = [row for row in world.rows[view] if world.partition[row[2]] in wanted]
    rows = selected(of_wanted, query)
    stop = None if query.limit is None else query.skip + query.limit
    if query.reduce is False:
        expected = [(row[0], row[1], row[2]) for row in rows][query.skip : stop]
        assert [(row.key, row.value, row.id) for row in found] == expected
        return
    if query.grouped:
        answers = [(key, reduced(view, values)) for key, values in groups(rows, query)]
    else:
        answers = [(None, reduced(view, [row[1] for row in rows]))] if rows else []
    assert [(row.key, row.value) for row in found] == answers[query.skip : stop]


def test_views_without_reduce_have_rows_and_a_total(world: World) -> None:
    with world.group.reading() as snapshot:
        found = answer(snapshot, "plain", Query(key="Rome"))
        documents = world.source.documents(found.seqs)
        assert [row.id for row in found] == sorted(
            (d for d, body in documents.items() if body.get("city") == "Rome"), key=str.encode
        )
        assert found.total_rows == sum(1 for body in documents.values() if "city" in body)
        assert all(row.value == row.id for row in found)
        with pytest.raises(QueryError, match="has no view nothing; it has ages, by_city"):
            answer(snapshot, "nothing", Query())
        with pytest.raises(QueryError, match="no reduce function"):
            answer(snapshot, "plain", Query(reduce=True))
        with pytest.raises(QueryError, match="not in the index"):
            answer(snapshot, "plain", Query(partitions=[PARTITIONS]))


@pytest.mark.parametrize(
    "wrong",
    [{"skip": -1}, {"limit": -1}, {"group_level": -1}, {"key": 1, "keys": [2]}, {"stale": "x"}],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"skip|group_level|key|stale"):
        Query(**wrong)
