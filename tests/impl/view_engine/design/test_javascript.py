"""JavaScript map and reduce functions: pure, within limits, and equal to the same functions in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stagewright.impl.view_engine import View, ViewEngine
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.design.javascript import JavaScriptError, JavaScriptFunctions
from stagewright.impl.view_engine.documents.changes import Change

pytest.importorskip("py_mini_racer", reason="the extra js is not installed")

CITY = "function (doc, meta) { if (doc.city) emit([doc.city, meta.id], doc.n); }"
LONGEST = """function (keys, values, rereduce) {
  return values.reduce(function (a, b) { return a > b ? a : b; });
}"""


@pytest.fixture
def functions() -> Iterator[list[JavaScriptFunctions]]:
    made: list[JavaScriptFunctions] = []
    yield made
    for one in made:
        one.close()


def test_index_of_javascript_functions(tmp_path: Path) -> None:
    with ViewEngine(tmp_path) as engine:
        engine.put_many((f"d{n:03}", {"city": "Ab"[n % 2], "n": n * 7 % 101}) for n in range(400))
        engine.put("other", {"town": "x"})
        engine.define("d", {"most": View(CITY, LONGEST), "sum": View(CITY, "_sum")})
        assert engine.query("d", "most").rows[0].value == 100
        found = engine.query("d", "most", group_level=1, endkey=["a"])
        assert [(row.key, row.value) for row in found] == [(["A"], 100)]
        assert engine.query("d", "sum").rows[0].value == sum(n * 7 % 101 for n in range(400))
    with ViewEngine(tmp_path) as engine:  # the text says all: nothing to define again
        assert engine.query("d", "most", stale="ok").rows[0].value == 100


def test_document_on_which_a_function_fails_keeps_its_rows_in_other_views() -> None:
    design = DesignDocument(
        "d", {"a": View(CITY), "b": View("function (doc) { emit(doc.x.y, 1); }")}
    )
    changes = [
        Change(0, 1, b"d", b'{"city": "\xc3\x85", "n": 1.5}'),
        Change(0, 2, b"e", b"no JSON"),
    ]
    mapped, errors = design.map(changes)
    first, second = mapped.documents()
    assert first.rows == ([('["Å","d"]'.encode(), b"1.5")], [])
    assert second.rows == ([], [])
    assert [(e.doc_id, e.map_number, e.message.partition(":")[0]) for e in errors] == [
        ("e", 0, "SyntaxError"), ("d", 1, "TypeError"), ("e", 1, "SyntaxError"),
    ]  # fmt: skip
    design.close()


@pytest.mark.parametrize(
    "body",
    [
        "emit(Date.now())",
        "emit(Math.random())",
        "leak = 1; emit(1)",
        "globalThis.leak = 1; emit(1)",
        "Object.prototype.leak = 1; emit(1)",
        "emit.leak = 1",
        "emit(new Function('return 1')())",
        "emit((function () {}).constructor('return 1')())",
        "emit(eval('1'))",
    ],
)
def test_function_that_is_not_pure_fails(body: str, functions: list[JavaScriptFunctions]) -> None:
    functions.append(JavaScriptFunctions([f"function (doc) {{ {body}; }}"]))
    [(rows, [(number, why)])] = functions[0].map([Change(0, 1, b"d", b"{}")])
    assert ([*rows], number) == ([[]], 0)
    assert "Error" in why


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "(function () { var n = 0; return function () { emit(n++); }; })()",
            "without anything around it",
        ),
        ("17", "not a function"),
        ("function (", "SyntaxError|Unexpected"),
    ],
)
def test_text_that_is_not_one_function_is_refused(source: str, why: str) -> None:
    with pytest.raises(JavaScriptError, match=why):
        JavaScriptFunctions([source])


def test_endless_function_ends_and_the_other_documents_are_indexed(
    functions: list[JavaScriptFunctions],
) -> None:
    source = "function (doc) { while (doc.n == 3) {} emit(doc.n); }"
    functions.append(JavaScriptFunctions([source], time_limit=0.2))
    changes = [Change(0, n, b"d%d" % n, b'{"n": %d}' % n) for n in range(8)]
    [(rows, failed)] = functions[0].map(changes)
    assert failed == [(3, "the function ran longer than 0.2 seconds")]
    assert [*rows] == [[(b"%d" % n, b"null")] if n != 3 else [] for n in range(8)]


def test_function_that_takes_all_memory_ends(functions: list[JavaScriptFunctions]) -> None:
    source = "function (doc) { var a = []; while (doc.n == 1) a.push(new Array(1e6).fill(1)); emit(doc.n); }"
    functions.append(JavaScriptFunctions([source], time_limit=20, memory_limit=64 << 20))
    changes = [Change(0, n, b"d", b'{"n": %d}' % n) for n in (0, 1, 2)]
    [(rows, failed)] = functions[0].map(changes)
    assert failed == [(1, "the function used more than 64 MB")]
    assert [*rows] == [[(b"0", b"null")], [], [(b"2", b"null")]]


def test_what_functions_emit_is_taken_apart_as_it_was_put_together(
    functions: list[JavaScriptFunctions],
) -> None:
    """Separators, halves of surrogate pairs and nothing at all, in several functions and documents."""
    odd = r"function (doc) { doc.each.forEach(function (x) { emit(x, [x]); }); }"
    functions.append(JavaScriptFunctions([odd, "function (doc) { emit(doc.n); }"]))
    bodies = [b'{"each": ["\\u001e\\u001f\\u001d\\u001b", "\\ud800", "\xc3\xa5"], "n": 1}', None]
    bodies += [b'{"each": []}', b"[", b'{"each": [[], {"a": null}]}']
    changes = [Change(0, n, b"d", body) for n, body in enumerate(bodies)]
    [(rows, failed), (numbers, _)] = functions[0].map(changes)
    assert [number for number, _ in failed] == [3]
    texts = [r'"\u001e\u001f\u001d\u001b"', r'"\ud800"', '"å"']
    assert [*rows] == [
        [(text.encode(), f"[{text}]".encode()) for text in texts],
        [], [], [],
        [(b"[]", b"[[]]"), (b'{"a":null}', b'[{"a":null}]')],
    ]  # fmt: skip
    assert [len(of) for of in numbers] == [1, 0, 1, 0, 1]


@pytest.mark.timeout(120)
def test_index_ends_while_a_function_runs_without_end(tmp_path: Path) -> None:
    with ViewEngine(tmp_path) as engine:
        engine.put_many((f"d{n}", n) for n in range(500))  # each could take its five seconds
        engine.define("d", {"v": View("function (doc) { while (true) {} }")})
        engine.group("d").trigger()
    with ViewEngine(tmp_path) as engine:
        assert engine.group("d").pending_changes() == 500


@pytest.mark.parametrize(
    "kept",
    [
        "f",  # its own name
        "f.prototype",
        "(async function () {})().constructor",
        "Object.getPrototypeOf(async function () {})",
        "Object.getPrototypeOf(function* () {})",
        "Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})()))",
        "Object.getPrototypeOf(new Map().entries())",
        "Object.getPrototypeOf('a'.matchAll(/a/g))",
        "Object.getPrototypeOf([1].values().map(String))",
        "Object.getPrototypeOf(Iterator.from({next: String}))",
        "String.prototype[Symbol.iterator]",
        "Array.prototype[Symbol.unscopables]",
        "Object.getOwnPropertyDescriptor(RegExp, Symbol.species).get",
        "emit",
        "globalThis",
    ],
)
def test_no_object_carries_anything_to_the_next_document(
    functions: list[JavaScriptFunctions], kept: str
) -> None:
    source = f"function f(doc) {{ var o = {kept}; try {{ o.n = (o.n || 0) + 1; }} catch (e) {{}} emit(o.n); }}"
    functions.append(JavaScriptFunctions([source]))
    [(rows, failed)] = functions[0].map([Change(0, n, b"d", b"{}") for n in range(2)])
    assert ([*rows], failed) == ([[(b"null", b"null")]] * 2, [])


def test_last_match_of_another_document_cannot_be_asked_for(
    functions: list[JavaScriptFunctions],
) -> None:
    source = "function (doc) { emit(RegExp.lastMatch, RegExp['$1']); /(.)/.test(doc.n); }"
    functions.append(JavaScriptFunctions([source]))
    [(rows, failed)] = functions[0].map([Change(0, n, b"d", b'{"n": 1}') for n in range(2)])
    assert ([*rows], failed) == ([[(b"null", b"null")]] * 2, [])


@pytest.mark.parametrize(
    "name", ["Date", "Intl", "Temporal", "Promise", "Function", "eval", "Uint8Array", "SharedArrayBuffer", "console", "setTimeout",
             "__timer_manager"]
)  # fmt: skip
def test_what_is_not_pure_or_has_no_limit_is_not_there(
    functions: list[JavaScriptFunctions], name: str
) -> None:
    functions.append(JavaScriptFunctions([f"function (doc) {{ emit(typeof {name}); }}"]))
    [(rows, _)] = functions[0].map([Change(0, 1, b"d", b"{}")])
    assert [*rows] == [[(b'"undefined"', b"null")]]
