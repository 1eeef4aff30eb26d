"""What Python itself refuses in a body or a declaration: the error says what the language has instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.loading import find

Refusal = Callable[[str, str, str], Exception]

PARENTHESISE = "parenthesise both sides: `(a == b) | (c == d)`"


@pytest.mark.parametrize(
    ("condition", "marked", "problem", "help"),
    [
        (
            "len(self.up) < 2",
            "len(self.up)",
            "TypeError: object of type 'SetOf' has no len()",
            "write `.size()`",
        ),
        (
            "self.up.length < 2",
            "self.up.length",
            "AttributeError: 'SetOf' object has no attribute 'length'",
            "did you mean `size`? it has: add, discard, has,",
        ),
        (
            "sum([self.ready, self.fresh]) < 2",
            "sum([self.ready, self.fresh])",
            "TypeError: unsupported operand type(s) for +: 'int' and 'Bool'",
            "write `count(condition for x in …)` instead of `sum(…)`",
        ),
        (
            "self.up.issubset(self.up)",
            "self.up.issubset",
            "AttributeError: 'SetOf' object has no attribute 'issubset'",
            "write `a <= b`",
        ),
        (
            "self.stage == Stage.gone",
            "Stage.gone",
            "AttributeError: gone",
            "Stage has: rest, moving",
        ),
        (
            "self.stage == Stage.rest | self.stage == Stage.moving",
            "Stage.rest | self.stage",
            "TypeError: unsupported operand type(s) for |: 'Stage' and 'Term'",
            PARENTHESISE,
        ),
        (
            "~self.copies < 3",
            "~self.copies",
            "TypeError: bad operand type for unary ~: 'Number'",
            PARENTHESISE,
        ),
        (
            "self.ready >> self.fresh",
            "self.ready >> self.fresh",
            "TypeError: unsupported operand type(s) for >>: 'Bool' and 'Bool'",
            "write `a.implies(b)`",
        ),
        (
            "choose(self.ready, self.fresh)",
            "choose(self.ready, self.fresh)",
            "TypeError: choose() missing 1 required positional argument: 'otherwise'",
            "write `choose(condition, then, otherwise)`",
        ),
    ],
)
def test_condition_that_python_refuses(
    refused: Refusal, condition: str, marked: str, problem: str, help: str
) -> None:
    refused(
        f"""
        @invariant
        def fine(self) -> Bool:
            return {condition}
                   {" " * condition.index(marked)}{"^" * len(marked)}
        """,
        f"invariant `fine` fails while it is traced: {problem}",
        help,
    )


def test_comparison_without_parentheses_beside_a_condition(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return self.stage == Stage.rest | self.ready
                                 ^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "one side of `|` is Stage.rest, but a condition is needed here",
        "parenthesise comparisons, `(a == b) & (c == d)`",
    )


def test_word_of_the_language_that_is_not_imported(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            del globals()["every"]
            return every(self.seen[n][Colour.red] for n in Node)
                   ^^^^^
        """,
        "invariant `fine` fails while it is traced: NameError: name 'every' is not defined",
        "import it: `from stagewright.spec import every`, or write `sw.every`",
    )


@pytest.mark.parametrize(
    ("annotation", "help"),
    [
        ("int", "write `k: Annotated[Number, between(0, 3)]`"),
        ("Number", "write `k: Annotated[Number, between(0, 3)]`"),
        ("bool", "write `k: Bool`"),
        ("Node", "write `k: Term[Node]`"),
        ("Stage", "write `k: Term[Stage]`"),
        ("dict", "write `Term[…]` or `SetOf[…]` with an enum or entity sort"),
    ],
)
def test_parameter_of_a_plain_type(refused: Refusal, annotation: str, help: str) -> None:
    refused(
        f"""
        @action
        def go(self, k: {annotation}) -> None:
                     ^
            self.ready = True
        """,
        f"parameter `k` of action `go` cannot range over `{annotation}`",
        help,
    )


def test_condition_by_identity(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ^^^^
            return self.leader is None
        """,
        "invariant `fine` returns False, which does not depend on the state",
        "write `self.leader.is_none()`",
    )


def test_promise_about_runs_as_an_invariant(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ^^^^
            return leads_to(self.ready, self.fresh)
        """,
        "invariant `fine` returns a property of runs, not a condition",
        "decorate it with `@liveness`",
    )


def test_constructor_of_a_machine(refused: Refusal) -> None:
    refused(
        """
        def __init__(self):
            ^^^^^^^^
            self.ready = False
        """,
        "Trap has an `__init__`, and nobody makes a machine with one",
        "say at each variable how it starts: `x = number(0, 3, init=1)`",
    )


def test_declaration_with_too_few_arguments(written: Callable[[str], object]) -> None:
    text = "from stagewright.spec import *\n\nclass Lock(Machine):\n    token = number(3)\n"
    path = written(text)
    with pytest.raises(InputError) as caught:
        find(f"{path}:Lock", {})
    assert "number() missing 1 required positional argument: 'high'" in caught.value.problem
    assert caught.value.help == "write `number(low, high, init=…, doc=…)`"
