"""The fingerprint of a definition: equal for equal meaning in every process, different for any other."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Machine,
    OneVar,
    SetVar,
    Term,
    action,
    budget,
    define,
    every,
    flag,
    initially,
    invariant,
    one_of,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.definition import Definition
from stagewright.spec.loading import load
from stagewright.spec.nodes import TRUE

ROOT = Path(__file__).resolve().parents[2]

LOCK = """
from __future__ import annotations
from enum import Enum
from stagewright.spec import *

class Colour(Enum):
    red = 1
    blue = 2
    green = 3

class Stage(States):
    rest = {{Colour.red, Colour.blue, Colour.green}},
    done = set[Colour](),
    def __init__(self, colours: set[Colour]) -> None:
        self.colours = colours

class Node(Entity, scope=2): ...

class Lock(Machine):
    {doc}
    misses = budget({budget})
    stage: OneVar[Stage] = one_of(Stage, init=Stage.{init})
    colours: SetVar[Colour] = set_of(Colour, init={{Colour.green, Colour.red}})
    held = per(Node, flag())

    @action(spends={spends})
    def miss(self) -> None:
        self.stage = Stage.done

    @action(fair=Fairness.{fair})
    def {action}(self, {param}: Term[Node]) -> None:
        require({guard}, "{name}")
        self.held[{param}] = {value}
        self.colours = self.stage.column(lambda s: s.colours)
        self.stage = Stage.done

    @invariant
    def fine(self) -> Bool:
        return {promise}

    @final
    def done(self) -> Bool:
        return {final}
"""

AS_WRITTEN = {
    "doc": '"""A lock."""',
    "budget": "1",
    "init": "rest",
    "fair": "WEAK",
    "spends": "misses",
    "action": "take",
    "param": "node",
    "guard": "every(~self.held[n] for n in Node)",
    "name": "nobody holds it",
    "value": "True",
    "promise": "self.colours <= {Colour.red, Colour.blue, Colour.green}",
    "final": "some(self.held[n] for n in Node)",
}


def fingerprint(path: Path, **changes: str) -> str:
    path.write_text(LOCK.format(**{**AS_WRITTEN, **changes}))
    return load(f"{path}:Lock").fingerprint()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock.py"


def test_a_definition_made_again_has_the_same_fingerprint(path: Path, tmp_path: Path) -> None:
    first = fingerprint(path)
    assert len(first) == 16
    assert fingerprint(path) == first
    assert fingerprint(tmp_path / "another.py") == first


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_another_process_finds_the_same_whatever_its_hashes(path: Path, seed: str) -> None:
    first = fingerprint(path)
    text = (
        "import sys; from stagewright.spec.loading import load; "
        "print(load(sys.argv[1] + ':Lock').fingerprint())"
    )
    found = subprocess.run(
        [sys.executable, "-c", text, str(path)],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == first


@pytest.mark.parametrize(
    "change",
    [
        {"doc": '"""Another text."""'},
        {"doc": "'moved by'\n    'some lines'\n\n"},
        {"param": "who"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_has_no_meaning_does_not_count(path: Path, change: dict[str, str]) -> None:
    if "param" in change:
        assert fingerprint(path, **change) != fingerprint(path)  # traces name parameters
    else:
        assert fingerprint(path, **change) == fingerprint(path)


@pytest.mark.parametrize(
    "change",
    [
        {"budget": "2"},
        {"budget": "None"},
        {"init": "done"},
        {"fair": "STRONG"},
        {"action": "grab"},
        {"guard": "some(~self.held[n] for n in Node)"},
        {"guard": "every(self.held[n] for n in Node)"},
        {"guard": "every(~self.held[node] for n in Node)"},
        {"name": "it is free"},
        {"value": "self.held[node]"},
        {"promise": "self.colours <= {Colour.red, Colour.blue}"},
        {"final": "self.stage == Stage.done"},
    ],
    ids=lambda change: ", ".join(f"{k}: {v}" for k, v in change.items()),
)
def test_what_has_meaning_counts(path: Path, change: dict[str, str]) -> None:
    assert fingerprint(path, **change) != fingerprint(path)


class Colour(Enum):
    """Two."""

    red = auto()
    blue = auto()


class Node(Entity):
    """One sort."""


def lock(**parts: object) -> Definition:
    class Lock(Machine):
        held = per(Node, flag())

        @action
        def take(self, node: Term[Node], other: Term[Node]) -> None:
            require(self.held[node] & ~self.held[other], "one is held")
            self.held[node] = False

    return replace(define(Lock), **parts)  # type: ignore[arg-type]


def test_which_of_two_parameters_is_meant_counts() -> None:
    """Bounds are told apart by their names: their serials differ from trace to trace."""

    class Lock(Machine):
        held = per(Node, flag())

        @action
        def take(self, node: Term[Node], other: Term[Node]) -> None:
            require(self.held[other] & ~self.held[node], "one is held")
            self.held[node] = False

    assert define(Lock).fingerprint() != lock().fingerprint()


def test_nested_quantifiers_over_one_sort_are_told_apart() -> None:
    class Forth(Machine):
        near = per(Node, per(Node, flag()))

        @action
        def go(self) -> None:
            require(every(self.near[a][b] for a in Node for b in Node if a is not b), "near")
            for n in Node:
                self.near[n][n] = True

    class Back(Machine):
        near = per(Node, per(Node, flag()))

        @action
        def go(self) -> None:
            require(every(self.near[b][a] for a in Node for b in Node if a is not b), "near")
            for n in Node:
                self.near[n][n] = True

    forth, back = (replace(define(m), name="Near") for m in (Forth, Back))
    assert forth.fingerprint() != back.fingerprint()


def test_quantifiers_inside_of_quantifiers_are_told_apart() -> None:
    def near(forth: bool) -> str:
        class Near(Machine):
            near = per(Node, per(Node, flag()))

            @action
            def go(self, n: Term[Node]) -> None:
                self.near[n][n] = True

            @invariant
            def fine(self, n: Term[Node]) -> Bool:
                return every(
                    some(self.near[a][b] if forth else self.near[b][a] for b in Node)
                    | self.near[n][a]
                    for a in Node
                )

        return define(Near).fingerprint()

    assert near(True) != near(False)


def test_a_quantified_member_is_not_a_parameter_of_its_name() -> None:
    def held(by_all: bool) -> str:
        class Held(Machine):
            held = per(Node, flag())

            @action
            def take(self, n: Term[Node]) -> None:
                require(every(self.held[m if by_all else n] for m in Node), "held")
                self.held[n] = True

        return define(Held).fingerprint()

    assert held(True) != held(False)


def test_which_of_two_budgets_is_spent_counts() -> None:
    def spent(first: bool) -> str:
        class Held(Machine):
            one = budget(1)
            two = budget(1)
            held = flag()

            @action(spends=one if first else two)
            def take(self) -> None:
                self.held = True

            @action(spends=two if first else one)
            def give(self) -> None:
                self.held = False

        return define(Held).fingerprint()

    assert spent(True) != spent(False)


def test_equal_definitions_have_equal_fingerprints_and_others_have_not() -> None:
    assert lock().fingerprint() == lock().fingerprint()
    assert lock(final=TRUE).fingerprint() != lock().fingerprint()
    assert lock(initially=(TRUE,)).fingerprint() != lock().fingerprint()
    assert lock(profile="seed").fingerprint() != lock().fingerprint()


def test_members_of_an_enum_count() -> None:
    def painted(kind: Any) -> str:
        class Wall(Machine):
            colours = set_of(kind)

            @action
            def clear(self) -> None:
                self.colours = self.colours - self.colours

        return define(Wall).fingerprint()

    two, three = Enum("Colour", "red blue"), Enum("Colour", "red blue green")
    assert painted(two) == painted(Colour)
    assert painted(two) != painted(three)


def test_initial_conditions_and_values_count() -> None:
    def started(start: bool) -> str:
        class Wall(Machine):
            colours: SetVar[Colour] = set_of(Colour, init=ANY)
            first: OneVar[Colour] = one_of(Colour, init=Colour.red)

            @initially
            def some_colour(self) -> Bool:
                return self.colours.has(Colour.red) if start else self.colours.has(Colour.blue)

            @action
            def clear(self) -> None:
                self.colours = set(Colour)
                self.first = Colour.blue

        return define(Wall).fingerprint()

    assert started(True) != started(False)
    assert started(True) == started(True)
