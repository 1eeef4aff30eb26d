"""Declared maps emit the same from the text of documents as from the objects that Python makes of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.impl.view_engine.design.declaration import Declared, doc, emit, item, meta_id
from stagewright.impl.view_engine.design.declared import DeclaredMapper
from stagewright.impl.view_engine.design.declared_text import declared_text, parse_declared
from stagewright.impl.view_engine.design.emitted import EmittedRows
from stagewright.impl.view_engine.design.mapping import MappedBatch
from stagewright.impl.view_engine.documents.changes import Change, Changes
from stagewright.impl.view_engine.index.packing import pack_batch
from stagewright.impl.view_engine.index.writing import rows_of_document
from stagewright.impl.view_engine.tree.entries import back_key
from stagewright.impl.view_engine.tree.packed import pack

VALUES = st.none() | st.integers(0, 3) | st.text("aå", max_size=2) | st.lists(st.integers(0, 1))
MAPS = [
    emit(doc.a),
    emit([doc.a, doc.b.c, meta_id], doc.b),
    emit([doc.b.c, [1.5, "x"]], [doc.a, None], where=doc.a == "x"),
    emit(doc.b.c, doc.a, where=[doc.a != 1, doc.b.c != None]),  # noqa: E711 - it makes a condition
    emit(meta_id, doc.a.b, where=doc.a == -1.5),
]
NUMBERS = st.sampled_from(
    ["0", "-0", "7", "-12", "1.0", "1.5", "-0.25", "0.0001", "0.00001", "1e3", "1E-2", "2.50", "01", "1.",
     ".5", "-", "9007199254740993", "123456789.1234567", "0.1234567890123456", "1" * 310]
)  # fmt: skip
STRINGS = st.sampled_from(
    ['"x"', '""', '"å€"', '"\\u0061"', '"a\\nb"', '"\t"', '"\\q"', '"\\ud800"', '"']
)
SPACE = st.sampled_from(["", "", "", " ", "\n\t"])
TEXTS = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["null", "true", "false", "nul", "NaN", "", "x"]),
    lambda parts: (
        st.lists(parts, max_size=3).map(lambda found: "[" + ",".join(found) + "]")
        | st.lists(st.tuples(st.sampled_from("abc"), SPACE, parts, SPACE), max_size=4).map(
            lambda found: "{" + ",".join(f'{s}"{n}"{t}:{s}{v}{t}' for n, s, v, t in found) + "}"
        )
    ),
    max_leaves=6,
)
MEMBERS = st.tuples(SPACE, TEXTS, SPACE, TEXTS).map(
    lambda p: f'{p[0]}{{"a":{p[1]}{p[2]},{p[0]}"b":{{"d":[0, {{}}],"c":{p[3]}}}{p[2]}}}'
)


@pytest.mark.parametrize("declared", MAPS, ids=range(len(MAPS)))
@settings(max_examples=examples(150))
@given(st.lists(st.tuples(TEXTS | MEMBERS, st.sampled_from(["d1", 'q"', "å"])), max_size=5))
def test_compiled_maps_emit_what_python_emits(
    declared: Declared, documents: list[tuple[str, str]]
) -> None:
    changes = Changes.of(
        [
            Change(0, n, name.encode(), None if text == "x" else text.encode())
            for n, (text, name) in enumerate(documents)
        ]
    )
    compiled, plain = DeclaredMapper(declared), DeclaredMapper(declared)
    assert compiled._compiled is not None
    plain._compiled = None
    found, expected = compiled.run(changes), plain.run(changes)
    assert [[*rows] for rows in found[0]] == [[*rows] for rows in expected[0]]
    assert found[1] == expected[1]


def test_simple_documents_need_no_python() -> None:
    mapper = DeclaredMapper(MAPS[1])
    assert mapper._compiled is not None
    body = json.dumps({"x": [{"a": 1}], "a": "å", "b": {"c": -2.5}, "z": None}, ensure_ascii=False)
    other = body.replace('"b": {"c": -2.5}', '"b": 4, "b2": {}')
    change = Change(0, 1, b"d", other.encode())
    rows = mapper._compiled.run(Changes.of([change]))
    assert rows is not None
    assert ([*rows[0]], rows[1]) == ([[]], [])  # b has no c: no row, and none for Python either
    broken = Change(0, 2, b"e", b"\xff")
    assert DeclaredMapper(MAPS[0]).run(Changes.of([change, broken]))[1][0][0] == 1


def test_maps_that_need_python_are_run_by_it() -> None:
    for declared in (emit(item, each=doc.tags), emit(doc), emit(doc.a, where=doc.b == True)):  # noqa: E712
        assert DeclaredMapper(declared)._compiled is None


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(VALUES, VALUES), max_size=4), st.lists(st.tuples(VALUES, VALUES), max_size=2)),
        max_size=6,
    ),
    st.booleans(),
)  # fmt: skip
def test_batches_are_packed_as_documents_one_by_one_are(
    documents: list[tuple[list[tuple[object, object]], list[tuple[object, object]]]], many: bool
) -> None:
    columns = [
        EmittedRows.of(
            [
                [(json.dumps(k).encode(), json.dumps(v).encode()) for k, v in of[view]]
                * (200 if many and view == 0 else 1)
                for of in documents
            ]
        )
        for view in (0, 1)
    ]
    changes = [Change(n % 3, n, b"doc%d" % n, b"{}") for n in range(len(documents))]
    batch = MappedBatch(Changes.of(changes), columns)
    expected: list[list[bytes]] = [[], [], []]
    for mapped in batch.documents():
        trees, entry = rows_of_document(mapped)
        if entry:
            expected[0].append(pack(back_key(mapped.change.partition, mapped.change.doc_id), entry))
        for number, rows in enumerate(trees, 1):
            expected[number] += (pack(*row) for row in rows)
    assert pack_batch(batch) == [(b"".join(items), len(items)) for items in expected]


def test_key_that_does_not_fit_is_named_by_its_document() -> None:
    rows = EmittedRows.of([[], [(b'"' + b"x" * 4100 + b'"', b"1")]])
    changes = [Change(0, 1, b"short", b"{}"), Change(0, 2, b"long", b"{}")]
    with pytest.raises(ValueError, match="document long: a key has at most 4,095 bytes"):
        pack_batch(MappedBatch(Changes.of(changes), [rows]))


@pytest.mark.parametrize(
    "declared",
    [
        *MAPS,
        emit([item.x, item["b c"]], item, each=doc["class"].of, where=doc['"'] != False),  # noqa: E712
        emit([], [[None, True, -1.5, "é'\"\\"]]),
        emit(doc, doc["å"]),
    ],
)
def test_text_of_a_declared_map_is_read_as_the_same_map(declared: Declared) -> None:
    assert parse_declared(declared_text(declared)).definition() == declared.definition()
