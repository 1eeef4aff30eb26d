"""Names: misspelt variables, parameters never used, requirements without a name of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]


def test_parameter_never_used(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node], other: Term[Node]) -> None:
                                       ^^^^^
            self.leader = node
        """,
        "parameter `other` of action `go` is never used",
        "use it, or remove it",
    )


def test_parameter_of_an_invariant_never_used(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(
            self,
            node: Term[Node],
            ^^^^
        ) -> Bool:
            return self.ready
        """,
        "parameter `node` of invariant `fine` is never used",
        "use it, or remove it",
    )


def test_misspelt_assignment(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.stagee = Stage.rest
            ^^^^^^^^^^^
        """,
        "Trap has no variable `stagee`",
        "did you mean `stage`?",
    )


def test_assignment_to_nothing_alike(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.xyzzy = True
            ^^^^^^^^^^
        """,
        "Trap has no variable `xyzzy`",
        "it has: stage, learned, seen, views, ready, fresh, copies, leader, up, colours, row, rows",
    )


def test_misspelt_field_of_a_record(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.rows[node].presnt = True
            ^^^^^^^^^^^^^^^^^^^^^^
        """,
        "Row has no variable `presnt`",
        "did you mean `present`?",
    )


def test_misspelt_variable_of_a_part(refused_module: Refusal) -> None:
    refused_module(
        """
        class Trap(Machine):
            inner = part(Sound)

            @action
            def go(self) -> None:
                self.inner.stagee = Stage.rest
                ^^^^^^^^^^^^^^^^^
        """,
        "Sound has no variable `stagee`",
        "did you mean `stage`?",
    )


def test_misspelt_variable_of_one_of_many(refused_module: Refusal) -> None:
    refused_module(
        """
        class Trap(Machine):
            inner = many(Sound, over=Colour)

            @action
            def go(self, colour: Term[Colour]) -> None:
                self.inner[colour].redy = True
                ^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "Sound has no variable `redy`",
        "did you mean `ready`?",
    )


def test_misspelt_read(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.stagee == Stage.rest, "resting")
                    ^^^^^^^^^^^
        """,
        "Trap has no `stagee`",
        "did you mean `stage`?",
    )


def test_column_read_as_an_attribute(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return self.stage.rank == 1
                   ^^^^^^^^^^^^^^^
        """,
        "`.rank` belongs to a concrete Stage, but this one is symbolic",
        "write `.column(lambda x: x.rank)`",
    )


def test_requirement_without_a_name(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.ready)
            ^^^^^^^^^^^^^^^^^^^
            self.fresh = True
        """,
        "a requirement of action `go` has no name",
        'name it: `require(condition, "what must be so")`',
    )


def test_requirement_in_a_lambda_without_a_name(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            (lambda: require(self.ready))()
                     ^^^^^^^^^^^^^^^^^^^
        """,
        "a requirement of action `go` has no name",
        "name it",
    )


def test_two_requirements_of_one_name(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.ready, "it is so")
            require(self.fresh, "it is so")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "action `go` has two requirements named 'it is so'",
        "name each for what it says",
    )


def test_two_requirements_named_after_one_method(refused: Refusal) -> None:
    refused(
        """
        def barrier(self) -> None:
            require(self.ready)
            require(self.fresh)
            ^^^^^^^^^^^^^^^^^^^

        @action
        def go(self) -> None:
            self.barrier()
        """,
        "action `go` has two requirements named 'barrier'",
        "name each for what it says",
    )


def test_requiring_a_plain_bool(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.stage is Stage.rest, "resting")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "require(...) is given False, not a condition on the state",
        "`is` compares Python's objects: write `self.stage == Stage.rest`; what depends on the profile",
    )


def test_requiring_what_no_variable_is_in(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(1 < 2, "so")
            ^^^^^^^^^^^^^^^^^^^^
        """,
        "require(...) is given True, not a condition on the state",
        "check that the comparison involves a variable; what depends on the profile alone is `only_when(...)`",
    )


@pytest.mark.parametrize(
    ("condition", "given", "help"),
    [
        ("self.leader is None", False, "write `self.leader.is_none()`"),
        ("self.leader is not None", True, "write `self.leader.is_some()`"),
        ("self.stage is not Stage.rest", True, "write `self.stage != Stage.rest`"),
        (
            "self.pending == 2",
            True,
            (
                "`pending` is Python's 2 (trap.py:63), not a variable; if it is to change, declare it "
                "`pending = number(0, …, init=2)`"
            ),
        ),
        ("self.waits", True, "declare it `waits = flag(init=True)`"),
        ("self.word == 'idle'", True, "declare it `word = one_of(…, init=…)` of an enum's members"),
        ("self.of == Stage.rest", True, "declare it `of = one_of(Stage, init=Stage.rest)`"),
        ("self.kind == Stage.rest", False, "declare it `kind = one_of(Stage, init=…)`"),
        ("self.nobody == 1", False, "declare it `nobody = optional(…)`"),
        ("self.some == {1}", False, "declare it `some = set_of(…)`"),
        ("self.sent == ()", True, "declare it `sent = queue(…)`"),
        ("self.table == {}", True, "declare it `table = per(…, …)`"),
    ],
)
def test_condition_on_what_is_no_variable(
    refused: Refusal, condition: str, given: bool, help: str
) -> None:
    constants = """
        pending: int = 2
        waits = True
        word = "idle"
        of = Stage.rest
        kind = Stage
        nobody = None
        some = set()
        sent = ()
        table = {}
    """
    refused(
        f"""{constants}
        @action
        def go(self) -> None:
            require({condition}, "so")
            {"^" * len(f'require({condition}, "so")')}
        """,
        f"require(...) is given {given}, not a condition on the state",
        help,
    )
    refused(
        f"""{constants}
        @invariant
        def fine(self) -> Bool:
            ^^^^
            self.stage.column(lambda s: s is Stage.rest)
            return {condition}
        """,
        f"invariant `fine` returns {given}, which does not depend on the state",
        help,
    )


def test_assigning_what_is_no_variable(refused: Refusal) -> None:
    refused(
        """
        pending = 0

        @action
        def go(self) -> None:
            self.pending = 1
            ^^^^^^^^^^^^
        """,
        "Trap has no variable `pending`",
        "`pending` is Python's 0 (trap.py:63), not a variable",
    )


def test_a_declaration_that_is_not_called(refused: Refusal) -> None:
    refused(
        """
        pending = number
        ^^^^^^^

        @action
        def go(self) -> None:
            require(self.pending == 0, "none is pending")
        """,
        "`Trap.pending` is `number` itself, not a variable: it is not called",
        "write `pending = number(low, high, init=…, doc=…)`",
    )


def test_requiring_a_method_that_was_not_called(refused: Refusal) -> None:
    refused(
        """
        def resting(self) -> Bool:
            return self.stage == Stage.rest

        @action
        def go(self) -> None:
            require(self.resting, "resting")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "require(...) is given the method `resting`, not the condition that it returns",
        "call it: `resting(...)`",
    )


def test_requiring_outside_of_an_action(refused_module: Refusal) -> None:
    refused_module(
        """
        class Trap(Sound):
            require(Sound.ready, "ready")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "require(...) outside of a machine's action or property",
        "write it in a method decorated with @action",
    )
