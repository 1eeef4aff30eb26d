"""What we write as ITF another reader understands: the package itf-py, which shares nothing with us."""

from __future__ import annotations

import json
from typing import Any

import itf_py
from itf_py import Trace

from stagewright.checker.counterexample import to_itf
from stagewright.checker.counterexample.files import itf_text
from stagewright.spec.definition import Definition
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import PropertyVerdict


def read(definition: Definition, verdict: PropertyVerdict) -> Trace:
    """The file's text as itf-py reads it.

    It makes a named tuple of each variant, and Python keeps the word `None`, by which Quint and Apalache
    call what is missing, for itself: only this tag is another one here.
    """
    text = itf_text(definition, verdict, None)
    assert "Missing" not in text
    text = text.replace('"tag": "None"', '"tag": "Missing"')
    return itf_py.trace_from_json(json.loads(text, object_hook=_with_plain_unit))


def _with_plain_unit(body: dict[str, Any]) -> object:
    return {**body, "value": "unit"} if body.get("tag") == "Missing" else body


def plain(value: Any) -> Any:
    """A value of ours or of itf-py's in a form that both have: dicts, frozensets, names."""
    match value:
        case None | bool() | int() | str():
            return value
        case frozenset():
            return frozenset(map(plain, value))
        case dict() | FrozenMap():
            return {plain(k): plain(v) for k, v in value.items()}
        case tuple() if type(value).__name__ == "Missing":
            return None
        case tuple() if type(value).__name__ == "Some":
            return plain(value[0])
        case tuple():
            return {name: plain(v) for name, v in value._asdict().items()}  # type: ignore[attr-defined]
        case _:
            return getattr(value, "name", str(value))


def test_another_reader_finds_every_value_of_every_state(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    for definition, verdict in all_cases:
        trace = read(definition, verdict)
        assert verdict.run is not None
        assert trace.loop == verdict.run.loop
        assert len(trace.states) == len(verdict.run.states)
        for theirs, ours in zip(trace.states, verdict.run.states, strict=True):
            for name, value in ours.items():
                assert plain(theirs.values[name]) == plain(value)


def test_another_reader_finds_actions_and_their_parameters(
    workers: Definition, done: PropertyVerdict
) -> None:
    trace = read(workers, done)
    assert done.run is not None
    assert [s.values["mbt::actionTaken"] for s in trace.states[1:]] == [
        step.action for step in done.run.steps
    ]
    for theirs, step in zip(trace.states[1:], done.run.steps, strict=True):
        picked = {
            k: v for k, v in plain(theirs.values["mbt::nondetPicks"]).items() if v is not None
        }
        assert picked == plain(step.arguments)


def test_the_file_says_what_it_is(workers: Definition, done: PropertyVerdict) -> None:
    meta = read(workers, done).meta
    assert meta["format"] == "ITF"
    assert meta["format-description"].endswith("/015adr-trace.html")
    assert meta["status"] == "violation"
    assert done.name in meta["description"]
    assert workers.name in meta["description"]
    assert meta["varTypes"] == {
        "owner": "Str -> None({}) | Some(Str)",
        "done": "Set(Str)",
        "rows": "Str -> { version: Int, written: Bool }",
        "patience": "Int",
        "leader": "Str",
        "limit": "Int",
        "budget.crashes": "Int",
    }


def test_no_integer_is_a_plain_json_number(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    def numbers(value: Any) -> list[Any]:
        match value:
            case bool():
                return []
            case int() | float():
                return [value]
            case dict():
                return [n for inner in value.values() for n in numbers(inner)]
            case list():
                return [n for inner in value for n in numbers(inner)]
            case _:
                return []

    for definition, verdict in all_cases:
        states: Any = to_itf(definition, verdict)["states"]
        for state in states:
            assert numbers({k: v for k, v in state.items() if k != "#meta"}) == []
