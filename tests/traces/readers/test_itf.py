"""Runs in ITF: what `check` finds is read back as a run of its definition, and what others write is read as well."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.models.lease import LeaseTable
from tests.traces.readers.reading import Read, evaluated, read_log, shipped

from stagewright.checker.check import check
from stagewright.checker.counterexample import to_itf
from stagewright.spec import FlagVar, Machine, action, flag
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import TraceVerdict
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step
from stagewright.traces.readers.generic import itf
from stagewright.traces.readers.generic.itf_values import WrongValueError, leaves_of

LEASE = define(LeaseTable)


class Light(Machine):
    """A light with two switches."""

    one: FlagVar = flag()
    two: FlagVar = flag()

    @action
    def switch_one(self) -> None:
        """The first switch is turned."""
        self.one = ~self.one

    @action
    def switch_two(self) -> None:
        """The second switch is turned."""
        self.two = ~self.two


LIGHT = define(Light)


def walk(
    definition: Definition, seed: int, steps: int, sizes: dict[str, int] | None = None
) -> dict[str, Any]:
    """A random run of a definition, as `check --out` writes it."""
    rng, interpreter = random.Random(seed), Interpreter(definition, scope_of(definition, sizes))
    states = [rng.choice(list(interpreter.initial_states()))]
    taken: list[Step] = []
    while len(taken) < steps and (enabled := list(interpreter.successors(states[-1]))):
        step, state = rng.choice(enabled)
        states.append(state)
        taken.append(step)
    run = Run(tuple(states), tuple(taken))
    return to_itf(definition, PropertyVerdict("p", Outcome.VIOLATED, "walk", run=run))


def write(path: Path, document: object, indent: int | None = 2) -> Path:
    path.write_text(json.dumps(document, indent=indent))
    return path


def read(path: Path, definition: Definition | None = None) -> Read:
    return evaluated(read_log("itf", [path]), definition)


@pytest.mark.parametrize(
    ("machine", "profile"),
    [
        ("tablet-migration", "seed"),
        ("tablet-migration", ""),
        ("index-permissions", ""),
        ("view-building", ""),
        ("partition-states", ""),
        ("stream-session", ""),
    ],
)
def test_runs_of_every_kind_of_machine_are_ok(machine: str, profile: str, tmp_path: Path) -> None:
    path = write(tmp_path / "run.itf.json", walk(shipped(machine, profile), 7, 12))
    found = read(path)
    assert found.verdicts == {"run": TraceVerdict.OK}
    assert found.events[0].action is None
    assert all(event.action for event in found.events[1:])


def test_what_a_check_finds_is_a_run(tmp_path: Path) -> None:
    definition = shipped("cdc-publication", "seed")
    scope = scope_of(definition)
    broken = [v for v in check(definition, scope).verdicts if v.run is not None]
    assert len(broken) > 1
    for verdict in broken:
        path = write(tmp_path / f"{verdict.name}.itf.json", to_itf(definition, verdict))
        found = read(path)
        assert found.verdicts == {verdict.name: TraceVerdict.OK}
        assert found.interpreted.notes == []
        assert verdict.run is not None
        assert len(found.events) == len(verdict.run.states)


def test_the_step_that_closes_a_loop_is_one_too(tmp_path: Path) -> None:
    rng, interpreter = random.Random(2), Interpreter(LIGHT, scope_of(LIGHT))
    states = [next(iter(interpreter.initial_states()))]
    taken: list[Step] = []
    while True:
        step, state = rng.choice(list(interpreter.successors(states[-1])))
        if state in states:
            break
        states.append(state)
        taken.append(step)
    run = Run(tuple(states), tuple(taken), states.index(state), step)
    document: Any = to_itf(LIGHT, PropertyVerdict("p", Outcome.VIOLATED, "walk", run=run))
    found = read(write(tmp_path / "run.itf.json", document), LIGHT)
    assert found.verdicts == {"run": TraceVerdict.OK}
    assert len(found.events) == len(states) + 1
    document["#meta"]["loopAction"] = "no_action"
    assert read(write(tmp_path / "run.itf.json", document), LIGHT).verdicts == {
        "run": TraceVerdict.UNPARSED
    }


def test_a_run_is_checked_at_the_sizes_at_which_it_was_found(tmp_path: Path) -> None:
    definition = shipped("index-permissions", "")
    one = walk(definition, 1, 9, {"Server": 3})
    two = walk(definition, 2, 9)
    one["#meta"]["sizes"], two["#meta"]["sizes"] = {"Server": 3}, {"Server": 2}
    paths = [write(tmp_path / f"{i}.itf.json", run) for i, run in enumerate((one, two))]
    for path in paths:
        assert evaluated(read_log("itf", [path])).findings[0].verdict is TraceVerdict.OK
    both = read_log("itf", paths)
    assert both.interpreted.notes == [
        "runs of IndexPermissions were found at different sizes: Server=2; Server=3; give those of one size"
    ]


def test_a_state_that_no_step_leads_to_is_a_violation_at_its_line(tmp_path: Path) -> None:
    document = walk(LEASE, 3, 4)
    document["states"][3]["epoch"] = {"#bigint": "4"}
    path = write(tmp_path / "run.itf.json", document)
    (finding,) = read(path, LEASE).findings
    assert finding.verdict is TraceVerdict.VIOLATION
    assert finding.place is not None
    rows = path.read_text().splitlines()
    assert rows[finding.place.line + 1].strip() == '"index": 3'


QUINT = {
    "#meta": {"format": "ITF", "source": "lease.qnt", "status": "ok"},
    "vars": ["lease::lease", "lease::holder", "lease::epoch"],
    "states": [
        {
            "#meta": {"index": 0},
            "lease::lease": {"tag": "free", "value": {"#tup": []}},
            "lease::holder": {"tag": "None", "value": {}},
            "lease::epoch": {"#bigint": "0"},
            "mbt::actionTaken": "init",
            "mbt::nondetPicks": {"n": {"tag": "None", "value": {}}},
        },
        {
            "#meta": {"index": 1},
            "lease::lease": {"tag": "held", "value": "U_OF_UNIT"},
            "lease::holder": {"tag": "Some", "value": "1_OF_NODE"},
            "lease::epoch": 1,
            "mbt::actionTaken": "acquire",
            "mbt::nondetPicks": {"n": {"tag": "Some", "value": "1_OF_NODE"}},
        },
        {"#meta": {"index": 2}, "lease": "expiring", "holder": "node1"},
    ],
}


def test_runs_of_quint_and_apalache_are_read(tmp_path: Path) -> None:
    found = read(write(tmp_path / "run.itf.json", QUINT, None), LEASE)
    assert found.verdicts == {"run": TraceVerdict.OK}
    acquired, silent = found.events[1:]
    assert (acquired.action, acquired.parameters) == ("acquire", {"n": "node1"})
    assert acquired.observed == {"lease": "held", "holder": "node1", "epoch": 1}
    assert (silent.action, silent.machine) == (None, "")
    assert found.counts == (1, 0, 1, 0)


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        (True, {"v": True}),
        ({"#bigint": "-7"}, {"v": -7}),
        ({"#set": ["2_OF_NODE", "x_OF_Kind"]}, {"v": ["node2", "x"]}),
        ({"#map": [["node0", {"#bigint": "1"}]]}, {"v[node0]": 1}),
        ({"a": {"b": 1}, "c": {"#map": [[1, True]]}}, {"v.a.b": 1, "v.c[1]": True}),
        ({"tag": "Some", "value": {"a": 1}}, {"v.a": 1}),
        ({"#map": [["n", {"tag": "None", "value": {"#tup": []}}]]}, {"v[n]": None}),
        ({"#tup": [1, "x"]}, {"v": [1, "x"]}),
        ({"#unserializable": "Nat"}, {}),
    ],
)
def test_values_are_reported_by_leaf(value: object, leaves: dict[str, object]) -> None:
    assert dict(leaves_of("v", value)) == leaves


@pytest.mark.parametrize(
    "value",
    [{"#map": 3}, {"#map": [[1]]}, {"#map": [[True, 1]]}, {"#set": 1}, 1.5, {"#bigint": "x"}, [1]],
)
def test_what_is_no_value_is_refused(value: object) -> None:
    with pytest.raises(WrongValueError, match="`v`"):
        list(leaves_of("v", value))


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        (b'{"vars": [],\n "states": [', 2, "not JSON"),
        (b'{"vars": [],\n "states": []}', 1, "`states` is empty"),
        (b'{"vars": []}', 1, "there is no list `states`"),
        (b'{"vars": [],\n\n "states": "\xff"}', 3, "not UTF-8 text"),
        (b'{"vars": ' + b"[" * 100_000, 1, "nested too deeply"),
        (b'{"states": [\n{"lease": "free"},\n{"lease": 1.5}\n]}', 3, "state 1: `lease` is 1.5"),
        (b'{"states": [\n{"lease": "free"},\n\n7]}', 1, "state 1: it is no object"),
    ],
)
def test_a_broken_file_is_refused_where_it_is_broken(
    content: bytes, line: int, part: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.itf.json"
    path.write_bytes(content)
    found = read_log("itf", [path])
    ((at, reason),) = found.reasons
    assert (at, part in reason) == (line, True)
    lines, blank, other, refused = found.counts
    assert lines == blank + other + refused


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "other.json", {"some": "thing"})
    with pytest.raises(InputError, match="does not look like a run in ITF"):
        itf.check(path)
