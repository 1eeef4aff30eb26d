"""ITF: written as Quint and Apalache write it, and read back to the same run."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stagewright.checker.counterexample import from_itf, to_itf
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.text.itf import verdict_from_itf
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run


def test_every_run_is_read_back_equal(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    for definition, verdict in all_cases:
        text = json.dumps(to_itf(definition, verdict))
        assert from_itf(definition, json.loads(text)) == verdict.run


@given(data=st.data())
def test_a_random_walk_is_read_back_equal(data: st.DataObject, workers: Definition) -> None:
    interpreter = Interpreter(workers, scope_of(workers))
    start = data.draw(st.sampled_from(list(interpreter.initial_states())))
    run = Run((start,), ())
    for _ in range(data.draw(st.integers(0, 5))):
        enabled = [
            (step, state)
            for action in interpreter.definition.actions
            if action.name != "hurry"  # may leave its bounds
            for names in interpreter.instances(action.params)
            for step, state in _taken(interpreter, action, names, run.states[-1])
        ]
        if not enabled:
            break
        step, state = data.draw(st.sampled_from(enabled))
        run = Run((*run.states, state), (*run.steps, step))
    verdict = PropertyVerdict("leader_works", Outcome.VIOLATED, "walk", run=run)
    verdict = _with_task(verdict, workers)
    assert from_itf(workers, json.loads(json.dumps(to_itf(workers, verdict)))) == run


def _taken(interpreter: Interpreter, action: Any, names: Any, state: Any) -> list[Any]:
    from stagewright.spec.interpreter import step_of

    step = step_of(action, names)
    if interpreter.failed_requirements(step, state):
        return []
    return [(step, interpreter.take(step, state))]


def _with_task(verdict: PropertyVerdict, workers: Definition) -> PropertyVerdict:
    from dataclasses import replace

    from stagewright.spec.values import FrozenMap

    prop = workers.property("leader_works")
    names = next(iter(Interpreter(workers, scope_of(workers)).instances(prop.params)))
    return replace(verdict, arguments=FrozenMap({b.name: v for b, v in names.items()}))


def test_values_are_written_as_the_format_says(workers: Definition, done: PropertyVerdict) -> None:
    document: Any = to_itf(workers, done)
    assert document["#meta"]["format"] == "ITF"
    assert document["vars"][-2:] == ["mbt::actionTaken", "mbt::nondetPicks"]
    start, first, *_, last = document["states"]
    assert start["#meta"] == {"index": 0}
    assert start["patience"] == {"#bigint": "1"}
    assert start["done"] == {"#set": []}
    assert last["done"] == {"#set": ["task0", "task1"]}
    assert start["owner"] == {
        "#map": [[task, {"tag": "None", "value": {"#tup": []}}] for task in ("task0", "task1")]
    }
    assert first["owner"]["#map"][0] == ["task0", {"tag": "Some", "value": "node0"}]
    assert start["rows"]["#map"][0] == ["task0", {"version": {"#bigint": "0"}, "written": False}]


def test_each_state_says_by_which_action_and_choices_it_was_reached(
    workers: Definition, done: PropertyVerdict
) -> None:
    document: Any = to_itf(workers, done)
    start, first, *_ = document["states"]
    nothing = {"tag": "None", "value": {"#tup": []}}
    assert start["mbt::actionTaken"] == "init"
    assert start["mbt::nondetPicks"] == {"n": nothing, "t": nothing, "heir": nothing}
    assert first["mbt::actionTaken"] == "claim"
    assert first["mbt::nondetPicks"] == {
        "n": {"tag": "Some", "value": "node0"},
        "t": {"tag": "Some", "value": "task0"},
        "heir": nothing,
    }


def test_every_declared_variable_is_in_every_state(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    for definition, verdict in all_cases:
        document: Any = to_itf(definition, verdict)
        for state in document["states"]:
            assert set(state) == {*document["vars"], "#meta"}


def test_a_lasso_says_where_its_loop_begins(migration: Definition, lasso: PropertyVerdict) -> None:
    document: Any = to_itf(migration, lasso)
    assert document["loop"] == 2
    assert document["#meta"]["loopAction"] == "write"


def test_the_verdict_and_its_scope_are_read_back(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    scope = scope_of(migration, {"node": 2})
    document = to_itf(migration, incomplete, scope)
    verdict, at = verdict_from_itf(migration, json.loads(json.dumps(document)))
    assert verdict == incomplete
    assert at == scope


def test_integers_may_also_be_plain_json_numbers(
    workers: Definition, done: PropertyVerdict
) -> None:
    document: Any = to_itf(workers, done)
    for state in document["states"]:
        state["patience"] = int(state["patience"]["#bigint"])
    assert from_itf(workers, document) == done.run


def _spoiled(document: Any, path: list[Any], value: Any) -> Any:
    spoiled = copy.deepcopy(document)
    inner = spoiled
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return spoiled


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["states"], None, "`states` is no JSON array"),
        (["states"], [], "`states` is empty"),
        (["states", 1], 7, r"states\[1\] is no JSON object"),
        (["states", 1, "patience"], None, r"states\[1\] lacks `patience`"),
        (
            ["states", 1, "patience"],
            {"#bigint": "x"},
            r"(?s)states\[1\]\.patience is .*must be 0\.\.2",
        ),
        (["states", 1, "patience"], {"#bigint": "3"}, r"states\[1\]\.patience is"),
        (["states", 1, "patience"], {"#bigint": "9" * 5000}, r"states\[1\]\.patience is"),
        (["states", 1, "patience"], True, r"states\[1\]\.patience is True"),
        (["states", 1, "leader"], "node", r"states\[1\]\.leader is 'node'"),
        (["states", 1, "done"], [], r"states\[1\]\.done is"),
        (["states", 1, "owner"], {"#map": [["task0"]]}, r"states\[1\]\.owner is"),
        (["states", 1, "odd"], 1, r"states\[1\] has `odd`, which is no variable"),
        (["states", 1, "mbt::actionTaken"], "fly", r"states\[1\]: Workers has no action `fly`"),
        (["states", 1, "mbt::actionTaken"], None, r"states\[1\] does not say by which action"),
        (["states", 1, "mbt::nondetPicks"], {}, r"nondetPicks\.n is missing"),
        (["loop"], 99, "`loop` is 99"),
    ],
)
def test_what_is_no_itf_of_the_machine_is_refused_with_its_place(
    path: list[Any], value: Any, problem: str, workers: Definition, done: PropertyVerdict
) -> None:
    spoiled = _spoiled(to_itf(workers, done), path, value)
    with pytest.raises(InputError, match=problem):
        from_itf(workers, spoiled)


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_a_document_that_is_no_object_is_refused(document: Any, workers: Definition) -> None:
    with pytest.raises(InputError, match="the ITF document is no JSON object"):
        from_itf(workers, document)


def test_a_document_that_names_no_property_is_refused(
    workers: Definition, done: PropertyVerdict
) -> None:
    document = _spoiled(to_itf(workers, done), ["#meta", "property"], None)
    with pytest.raises(InputError, match="does not say which property"):
        verdict_from_itf(workers, document)
