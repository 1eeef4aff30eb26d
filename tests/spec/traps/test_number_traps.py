"""Traps about numbers: divisors that may be zero, fractions, and Python's own functions on members."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]


@pytest.mark.parametrize(
    ("condition", "problem", "help"),
    [
        (
            "self.copies // self.copies == 1",
            "the divisor of `//` is a number in 0..3, which is not always positive",
            "or write `// greatest(1, …)`",
        ),
        (
            "self.copies % 0 == 1",
            "the divisor of `%` is 0, which is not always positive",
            "divide by a positive number",
        ),
        (
            "self.copies % -2 == 1",
            "the divisor of `%` is -2, which is not always positive",
            "divide by a positive number",
        ),
        ("self.copies / 2 == 1", "`/` makes fractions, and numbers here are whole", "write `//`"),
        (
            "self.copies * True == 1",
            "`*` compares a number with True",
            "write a number",
        ),
        (
            "least(self.copies, self.ready) == 1",
            "a number of least(...) is of sort bool, but a number is needed here",
            "write `count(condition for x in …)` for how many hold",
        ),
        (
            "greatest(self.copies for n in self.up) == 1",
            "greatest(...) over a set, which may be empty, has no default",
            "write `greatest((… for x in …), default=0)`",
        ),
    ],
)
def test_computing_with_numbers(refused: Refusal, condition: str, problem: str, help: str) -> None:
    shown = condition.rpartition(" == ")[0]
    refused(
        f"""
        @action
        def go(self) -> None:
            require({condition}, "so")
                    {"^" * len(shown)}
            self.ready = True
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("name", "word"), [("sum", "total"), ("max", "greatest"), ("min", "least")]
)
def test_a_function_of_python_over_members(refused: Refusal, name: str, word: str) -> None:
    call = f"{name}(self.copies + count(self.up.has(m) for m in Node) for n in Node)"
    refused(
        f"""
        @invariant
        def fine(self) -> Bool:
            return {call} < 3
                   {"^" * len(call)}
        """,
        f"Python's own `{name}(...)` is given a loop over Node, which stands for all members at once",
        f"write `{word}(… for n in Node)`",
    )


@pytest.mark.parametrize(
    ("name", "word"), [("sum", "total"), ("max", "greatest"), ("min", "least")]
)
def test_a_function_of_python_over_members_in_an_effect(
    refused: Refusal, name: str, word: str
) -> None:
    call = f"{name}(count(self.seen[n][c] for c in Colour) for n in Node)"
    refused(
        f"""
        @action
        def go(self) -> None:
            self.copies = {call}
                          {"^" * len(call)}
        """,
        f"Python's own `{name}(...)` is given a loop over Node, which stands for all members at once",
        f"write `{word}(… for n in Node)`",
    )


@pytest.mark.parametrize(("name", "word"), [("max", "greatest"), ("min", "least")])
def test_a_function_of_python_of_two_numbers(refused: Refusal, name: str, word: str) -> None:
    refused(
        f"""
        @action
        def go(self) -> None:
            self.copies = {name}(self.copies, 2)
                          ^^^^^^^^^^^^^^^^^^^
        """,
        f"`{name}` needs True or False, but this value is symbolic",
        f"write `{word}(…)`",
    )
