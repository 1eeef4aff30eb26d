"""Python asks a symbolic value for its truth: each construct is named, shown and mended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]


def asked(construct: str) -> str:
    return f"`{construct}` needs True or False, but this value is symbolic"


def test_and(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.stage == Stage.rest and self.ready, "ready")
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("and"),
        "write `(a) & (b)`",
    )


def test_or(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return self.ready or self.fresh
                   ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("or"),
        "write `(a) | (b)`",
    )


def test_not(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(not self.ready, "ready")
                    ^^^^^^^^^^^^^^
        """,
        asked("not"),
        "write `~(a)`",
    )


def test_not_inside_of_and_is_the_one_named(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(not self.ready and self.fresh, "ready")
                    ^^^^^^^^^^^^^^
        """,
        asked("not"),
        "write `~(a)`",
    )


def test_if(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            if self.stage == Stage.rest:
               ^^^^^^^^^^^^^^^^^^^^^^^^
                self.ready = True
        """,
        asked("if"),
        "a guard is `require(condition, name)`; a choice of value is `choose(condition, one, other)`",
    )


def test_elif(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            if False:
                pass
            elif self.ready:
                 ^^^^^^^^^^
                self.fresh = True
        """,
        asked("if"),
        "two behaviours are two actions",
    )


def test_if_on_a_conjunction_names_the_if(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            if self.ready and self.fresh:
               ^^^^^^^^^^^^^^^^^^^^^^^^^
                self.fresh = True
        """,
        asked("if"),
        "two behaviours are two actions",
    )


def test_statement_inside_of_a_fine_if(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            if self.stage is not None:
                self.fresh = self.ready and self.fresh
                             ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("and"),
        "write `(a) & (b)`",
    )


def test_if_expression(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.stage = Stage.rest if self.ready else Stage.moving
                                       ^^^^^^^^^^
        """,
        asked("if expression"),
        "write `choose(condition, one, other)`",
    )


def test_while(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            while self.copies < 3:
                  ^^^^^^^^^^^^^^^
                self.copies = self.copies + 1
        """,
        asked("while"),
        "actions are atomic and loop-free",
    )


def test_assert(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            assert self.ready, "ready"
                   ^^^^^^^^^^
            self.fresh = True
        """,
        asked("assert"),
        "state it as an @invariant",
    )


def test_in_a_tuple(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.stage in (Stage.rest, Stage.moving), "staged")
                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("in"),
        "write `x.any_of(A, B)` for members",
    )


def test_not_in_a_set_of_the_state(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            require(node not in self.up, "down")
                    ^^^^^^^^^^^^^^^^^^^
        """,
        asked("in"),
        "`set.has(x)` for a set of the state",
    )


def test_chained_comparison(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(1 <= self.copies <= 2, "some")
                    ^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("chained comparison"),
        "write `(a <= b) & (b <= c)`",
    )


def test_match(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            match self.stage:
                  ^^^^^^^^^^
                case Stage.rest:
                    self.ready = True
        """,
        asked("match"),
        "a column of the enum",
    )


@pytest.mark.parametrize("builtin", ["any", "all", "min", "max", "sorted"])
def test_builtin(refused: Refusal, builtin: str) -> None:
    call = f"{builtin}([self.ready, self.fresh, self.ready])"
    if builtin in {"min", "max", "sorted"}:
        call = f"{builtin}([self.copies, self.copies])"
    refused(
        f"""
        @invariant
        def fine(self) -> Bool:
            return {call}
                   {"^" * len(call)}
        """,
        asked(builtin),
        {
            "any": "write `some(…)`",
            "all": "write `every(…)`",
            "min": "write `least(…)`",
            "max": "write `greatest(…)`",
            "sorted": "members have no order",
        }[builtin],
    )


def test_builtin_over_a_generator(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return all(self.colours.has(c) for c in Colour)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("all"),
        "`every(…)`",
    )


def test_comprehension_filter(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return every(self.ready for n in Node if self.learned[n] == Stage.rest)
                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("comprehension filter"),
        "write `every(condition.implies(body) for n in …)`",
    )


def test_filter_of_the_first_of_two_loops(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return every(self.seen[n][c] for n in Node if self.up.has(n) for c in Colour)
                                                          ^^^^^^^^^^^^^^
        """,
        asked("comprehension filter"),
        "`every(condition.implies(body)",
    )


def test_filter_of_a_list(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return every([self.ready for c in Colour if self.colours.has(c) and self.fresh])
                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("comprehension filter"),
        "`every(condition.implies(body)",
    )


def test_filter_of_a_dictionary(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return every({c: self.ready for c in Colour if self.colours.has(c)}.values())
                                                           ^^^^^^^^^^^^^^^^^^^
        """,
        asked("comprehension filter"),
        "`every(condition.implies(body)",
    )


def test_bool_call(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.fresh = bool(self.ready)
                         ^^^^^^^^^^^^^^^^
        """,
        asked("truth test"),
        "combine conditions with `&`, `|`, `~`",
    )


def test_construct_over_several_lines_is_marked_where_it_begins(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(
                self.ready
                ^^^^^^^^^^
                and self.fresh,
                "ready",
            )
        """,
        asked("and"),
        "write `(a) & (b)`",
    )


def test_truth_of_a_record(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            if self.row:
               ^^^^^^^^
                self.fresh = True
        """,
        asked("if"),
        "a guard is `require(condition, name)`",
    )


def test_place_of_the_value_itself_in_a_lambda(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            check = lambda a, b: a and b
                                 ^^^^^^^
            require(check(self.ready, self.fresh), "ready")
        """,
        asked("and"),
        "write `(a) & (b)`",
    )


def test_ternary_in_a_helper_function(refused: Refusal) -> None:
    refused(
        """
        def target(self) -> Stage:
            return Stage.rest if self.ready else Stage.moving
                                 ^^^^^^^^^^

        @action
        def go(self) -> None:
            self.stage = self.target()
        """,
        asked("if expression"),
        "write `choose(condition, one, other)`",
    )


def test_several_on_one_line_name_the_one_that_asked(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require((True and True) & (self.ready or self.fresh), "ready")
                                       ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("or"),
        "write `(a) | (b)`",
    )


def test_carets_count_characters_not_bytes(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.ready, "größer als …"), require(self.ready and self.fresh, "ready")
                                                         ^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        asked("and"),
        "write `(a) & (b)`",
    )
