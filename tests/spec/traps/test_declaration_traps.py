"""Variables, sorts, entities, parts, budgets and profiles that are declared wrongly, shown where they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]

KINDS = "write a subclass of States, Enum or Entity"
UNNAMED = "no member of an entity sort can be named: write `init=ANY`"


@pytest.mark.parametrize(
    ("declaration", "problem", "help"),
    [
        ("number(5, 3)", "number(5, 3) has no values", "(low, high), both included"),
        ('number("a", 3)', "number('a', 3) has no values", "whole numbers"),
        ("number(0, 3, init=9)", "number(...) of 0..3 cannot start as 9", "write a number in 0..3"),
        ("number(0, 3, init=True)", "number(...) of 0..3 cannot start as True", "write a number"),
        ("flag(init=3)", "flag(...) of bool cannot start as 3", "write `init=True`, `init=False`"),
        (
            'one_of(Stage, init="rest")',
            "one_of(...) of Stage cannot start as 'rest'",
            "write `init=Stage.rest` or another member, or `init=ANY`",
        ),
        (
            "one_of(Stage, init=Colour.red)",
            "one_of(...) of Stage cannot start as Colour.red",
            "write `init=Stage.rest`",
        ),
        ("one_of(Node, init=Node(0))", "one_of(...) of Node cannot start as node0", UNNAMED),
        (
            "optional(Node, init=Node(7))",
            "optional(...) of Node or none cannot start as node7",
            UNNAMED,
        ),
        (
            "optional(Stage, init=Colour.red)",
            "optional(...) of Stage or none cannot start as Colour.red",
            "write `init=None`, or `init=Stage.rest` or another member",
        ),
        (
            "set_of(Colour, init={Stage.rest})",
            "set_of(...) of set of Colour cannot start as frozenset({<Stage.rest: 0>})",
            "write a set of members: `init={Colour.red}`",
        ),
        (
            "set_of(Colour, init=Colour.red)",
            "set_of(...) of set of Colour cannot start as Colour.red",
            "write a set of members",
        ),
        (
            "set_of(Node, init={Node(0)})",
            "set_of(...) of set of Node cannot start as frozenset({node0})",
            UNNAMED,
        ),
        (
            "one_of(Row)",
            "one_of(...) is given Row, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "one_of(bool)",
            "one_of(...) is given bool, which is neither an enum with members nor an entity sort",
            "for true and false `flag()`",
        ),
        (
            "optional(Enum)",
            "optional(...) is given Enum, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "optional(number(0, 2))",
            "optional(...) is given a variable (0..2), which is neither an enum with members nor an entity sort",
            "a number below all others can stand for none",
        ),
        (
            "set_of(Entity)",
            "set_of(...) is given Entity, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "one_of(Stage.rest)",
            "one_of(...) is given Stage.rest, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "per(Row, flag())",
            "per(...) is given Row, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "per(Node, Stage)",
            "per(Node, …) is given <enum 'Stage'>, which is no variable",
            "write `per(Node, flag())`, `per(Node, one_of(…))`",
        ),
        ("record(Node)", "record(Node): it has no fields", "derive the class from Record"),
        ("record(Record)", "record(Record): it has no fields", "declare its fields as variables"),
        (
            "constant(Stage)",
            "constant(<enum 'Stage'>) is no variable",
            "write `constant(one_of(…))`",
        ),
        ("budget(-1)", "budget(-1) is not a number of times", "write 0 or more, or None"),
        ("budget(True)", "budget(True) is not a number of times", "write 0 or more, or None"),
        ("part(Node)", "Node is no machine", "write a subclass of Machine"),
        (
            "many(Sound, over=Row)",
            "many(...) is given Row, which is neither an enum with members nor an entity sort",
            KINDS,
        ),
        (
            "part(Sound, without=(print,))",
            "`without` names <built-in function print>, which is no action and no property of Sound",
            "write `without=(Sound.some_action,)`",
        ),
        ("profiles()", "a profile needs a name", "write `profiles("),
        ('profiles(Profile(""))', "a profile needs a name", "write `profiles("),
        ('profiles(Profile("a"), Profile("a"))', "two profiles are named `a`", "write `profiles("),
    ],
)
def test_declaration(refused: Refusal, declaration: str, problem: str, help: str) -> None:
    refused(
        f"""
        wrong = {declaration}
                {"^" * len(declaration)}
        """,
        problem,
        help,
    )


def test_plain_enum_with_two_names_of_one_member(refused_module: Refusal) -> None:
    refused_module(
        """
        class Phase(Enum):
            early = (True, False)
            late = (True, False)

        class Trap(Machine):
            phase = one_of(Phase, init=Phase.early)
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "Phase.late is only another name of Phase.early: their values are equal",
        "derive Phase from States instead of Enum: equal columns stay two members",
    )


def test_enum_whose_members_are_numbers(refused_module: Refusal) -> None:
    refused_module(
        """
        class Phase(int, Enum):
            early = 1
            late = 2

        class Trap(Sound):
            phase = one_of(Phase, init=Phase.early)
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "the members of Phase are numbers too",
        "derive Phase from States or Enum",
    )


def test_plain_enum_with_two_names_as_a_parameter(refused_module: Refusal) -> None:
    refused_module(
        """
        class Phase(Enum):
            early = 1
            late = 1

        class Trap(Sound):
            @action
            def go(self, phase: Term[Phase]) -> None:
                         ^^^^^
                require(phase == Phase.early, "early")
        """,
        "Phase.late is only another name of Phase.early: their values are equal",
        "derive Phase from States instead of Enum",
    )


def test_machine_without_variables(refused_module: Refusal) -> None:
    refused_module(
        """
        class Trap(Machine):
              ^^^^
            @invariant
            def fine(self) -> Bool:
                return True
        """,
        "Trap has no variables",
        "declare at least one",
    )


@pytest.mark.parametrize("scope", ["0", "-1", "True", "'3'"])
def test_entity_of_no_size(refused_module: Refusal, scope: str) -> None:
    refused_module(
        f"""
        class Trap(Entity, scope={scope}): ...
        {"^" * (31 + len(scope))}
        """,
        f"the default scope of Trap is {scope}",
        "write a number from 1 on: `class Trap(Entity, scope=2)`",
    )


def test_entity_with_a_variable(refused_module: Refusal) -> None:
    refused_module(
        """
        class Disk(Entity): full = flag()
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "the entity sort Disk has a body: `full`",
        "what differs between its members is a variable of the machine: `full = per(Disk, …)`",
    )


def test_entity_with_a_method(refused_module: Refusal) -> None:
    refused_module(
        """
        class Disk(Entity):
        ^^^^^^^^^^^^^^^^^^^
            def is_full(self) -> bool:
                return False
        """,
        "the entity sort Disk has a body: `is_full`",
        "is a variable of the machine",
    )


def test_looping_over_an_entity_outside_of_a_trace(refused_module: Refusal) -> None:
    refused_module(
        """
        everyone = [n for n in Node]
                   ^^^^^^^^^^^^^^^^^
        """,
        "a loop over Node outside of a machine's action or property",
        "write it in a method decorated with @action",
    )


def test_budgets_of_one_name_that_differ(refused_module: Refusal) -> None:
    refused_module(
        """
        class Inner(Machine):
              ^^^^^
            crashes = budget(2)
            ready = flag()

            @action(spends=crashes)
            def crash(self) -> None:
                self.ready = False

        class Other(Machine):
            crashes = budget(1)
            ready = flag()

            @action(spends=crashes)
            def crash(self) -> None:
                self.ready = False

        class Trap(Machine):
            other = part(Other)
            inner = part(Inner)
        """,
        "budget `crashes` is 1 in one part of the system and 2 in Inner",
        "budgets of one name are one budget",
    )
