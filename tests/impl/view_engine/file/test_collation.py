"""Sort keys order JSON values as CouchDB's collation does; the compiled loop and Python agree."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest
from hypothesis import given, strategies as st

from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.tree.entries import view_key
from stagewright.impl.view_engine.tree.packed import Packed

Json: TypeAlias = "bool | float | str | list[Json] | dict[str, Json] | None"

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ["\0", "\1", "a\0", "a", "\2"]
)
NUMBERS = (
    st.integers(-(10**17), 10**17).map(float)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1e22, 1e23, 5e-324, 0.1, 2.0**53, 1.7976931348623157e308])
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def compact(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def rank(value: Json) -> int:
    order = (type(None), bool, float, str, list, dict)
    return next(i for i, kind in enumerate(order) if isinstance(value, kind))


def compare(a: Json, b: Json) -> int:
    """Collation as its definition reads, with no bytes in it."""
    if rank(a) != rank(b):
        return rank(a) - rank(b)
    if isinstance(a, list) and isinstance(b, list):
        return elements(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return elements([x for item in a.items() for x in item], [x for i in b.items() for x in i])
    return 0 if a is None else (a > b) - (a < b)  # type: ignore[operator]


def elements(a: list[Json], b: list[Json]) -> int:
    for x, y in zip(a, b, strict=False):
        if c := compare(x, y):
            return c
    return len(a) - len(b)


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


@given(VALUES, VALUES)
def test_sort_bytes_compare_as_the_values_do(a: Json, b: Json) -> None:
    x, y = sort_bytes(compact(a)), sort_bytes(compact(b))
    assert (x > y) - (x < y) == sign(compare(a, b))
    assert x == y or not x.startswith(y)


@given(st.lists(st.tuples(VALUES, st.binary(max_size=4), st.booleans()), min_size=1, max_size=20))
def test_compiled_sort_keys_are_those_of_python(rows: list[tuple[Json, bytes, bool]]) -> None:
    texts = [
        json.dumps(value, separators=(",", ":"), ensure_ascii=escaped).encode()
        for value, _, escaped in rows
    ]
    packed = Packed.of(
        [(view_key(t, doc), b"") for t, (_, doc, _) in zip(texts, rows, strict=True)], collated=True
    )
    keys, at = packed.sort_keys
    found = [keys[at[i] : at[i + 1]].tobytes() for i in range(len(rows))]
    assert found == [sort_bytes(t) + doc for t, (_, doc, _) in zip(texts, rows, strict=True)]


@pytest.mark.parametrize("text", [b"", b"nonsense", b'"open', b'"\\u12', b"-", b"{]x"])
def test_key_that_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        _ = Packed.of([(view_key(text, b"d"), b"")], collated=True).sort_keys


@given(
    st.lists(
        st.binary(max_size=24) | st.binary(max_size=3).map(lambda b: b"x" * 30 + b), max_size=60
    )
)
def test_packed_rows_are_sorted_stably_and_the_last_of_equal_keys_stays(keys: list[bytes]) -> None:
    rows = [(key, b"%d" % i) for i, key in enumerate(keys)]
    packed = Packed.of(rows, collated=False)
    assert [rows[i] for i in packed.order()] == sorted(rows, key=lambda row: row[0])
    assert list(packed.sorted().rows()) == sorted(dict(rows).items())
