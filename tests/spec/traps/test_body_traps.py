"""What an action's body may not do: leave a loop, say nothing, return, call itself, fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]

ALL = "such a loop stands for all members at once: no `break`, no `return` in it"


def test_action_that_says_nothing(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            ^^
            pass
        """,
        "action `go` requires nothing and assigns nothing",
        "write `require(condition, name)` and assign variables",
    )


def test_action_returning_a_value(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            ^^
            self.fresh = True
            return self.ready
        """,
        "action `go` returns a value",
        "a guard is `require(condition, name)`; an action returns nothing",
    )


def test_step_returning_a_value(refused: Refusal) -> None:
    refused(
        """
        @Sound.stage.step(Stage.rest, Stage.moving)
        def go(self) -> None:
            ^^
            return self.ready
        """,
        "action `go` returns a value",
        "an action returns nothing",
    )


def test_breaking_out_of_a_loop(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in Node:
            ^^^^^^^^^^^^^^
                self.learned[n] = Stage.rest
                break
        """,
        "a loop over a sort in action `go` ended early",
        ALL,
    )


def test_returning_out_of_a_loop(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in self.leader:
            ^^^^^^^^^^^^^^^^^^^^^
                self.learned[n] = Stage.rest
                return
        """,
        "a loop over a sort in action `go` ended early",
        ALL,
    )


def test_taking_the_first_of_a_sort(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            first = next(iter(Node))
                    ^^^^^^^^^^^^^^^^
            self.learned[first] = Stage.rest
        """,
        "a loop over a sort in action `go` ended early",
        "to choose one member, make it a parameter of the action",
    )


def test_a_loop_that_is_never_finished(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            nodes = iter(Node)
            first = next(nodes)
                    ^^^^^^^^^^^
            self.learned[first] = Stage.rest
            type(self).kept = nodes
        """,
        "a loop over a sort in action `go` ended early",
        "to choose one member, make it a parameter of the action",
    )


def test_listing_a_sort(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            nodes = list(Node)
            self.learned[nodes[0]] = Stage.rest
            ^^^^^^^^^^^^^^^^^^^^^^
        """,
        "`n` of a loop over Node is used outside of that loop",
        "to choose one member, make it a parameter of the action",
    )


def test_using_a_loops_variable_after_the_loop(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in Node:
                pass
            require(self.up.has(n), "up")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "`n` of a loop over Node is used outside of that loop",
        "it stands for every member while the loop runs",
    )


def test_loop_that_assigns_one_place(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in Node:
                self.ready = True
                ^^^^^^^^^^
        """,
        "`ready` is assigned once for every Node",
        "index it with the loop's variable, or assign it outside of the loop",
    )


def test_looping_over_a_map(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in self.learned:
            ^^^^^^^^^^^^^^^^^^^^^^
                self.learned[n] = Stage.rest
        """,
        "a map cannot be looped over; its keys are all of Node",
        "write `for k in Node`",
    )


def test_calling_an_action_outside_of_a_trace(refused_module: Refusal) -> None:
    refused_module(
        """
        Sound().churn()
        ^^^^^^^^^^^^^^^
        """,
        "a call of action `churn` outside of a machine's action or property",
        "write it in a method decorated with @action",
    )


def test_action_that_calls_itself(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.fresh = True
            self.go()
            ^^^^^^^^^
        """,
        "action `go` calls itself",
        "an action is one atomic step: let the step happen again instead",
    )


def test_actions_that_call_each_other(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.come()

        @action
        def come(self) -> None:
            self.go()
            ^^^^^^^^^
        """,
        "action `go` calls itself",
        "let the step happen again instead",
    )


def test_joining_with_too_few_arguments(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.churn()
            ^^^^^^^^^^^^
        """,
        "action `churn` is called with other parameters than it has: missing a required argument: 'node'",
        "it takes (node: Node)",
    )


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("Stage.rest", "Stage.rest"),
        ("self.stage", "of sort Stage"),
        ("self.leader", "of sort Node or none"),
        ("Node(0)", "node0 (Node)"),
    ],
)
def test_joining_with_an_argument_of_another_sort(
    refused: Refusal, argument: str, found: str
) -> None:
    refused(
        f"""
        @action
        def go(self) -> None:
            self.churn({argument})
            {"^" * (len(argument) + 12)}
        """,
        f"parameter `node` of action `churn` is {found}, but Node is needed here",
        "parameter",
    )


def test_body_that_raises_is_shown_where_it_does(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.copies = self.copies ** 2
                          ^^^^^^^^^^^^^^^^
        """,
        "action `go` fails while it is traced: "
        "TypeError: unsupported operand type(s) for ** or pow(): 'Number' and 'int'",
        "a body is Python that runs once, with symbolic values",
    )


def test_a_member_in_a_loop_over_an_enum_is_not_symbolic(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return every(self.stage == p.column(lambda s: s) for p in Stage)
                                       ^^^^^^^^
        """,
        "invariant `fine` fails while it is traced: "
        "AttributeError: 'Stage' object has no attribute 'column'",
        "`Stage.rest` is a member of Stage, as a loop over an enum gives them: call its own "
        "methods and columns",
    )


def test_column_of_two_members_needs_a_symbolic_second_one(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return self.stage.column(lambda s, t: s is t, "rest")
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "a column of two members is given 'rest' as the second",
        "write `a.column(lambda a, b: …, b)` with a symbolic `b`",
    )


def test_column_that_raises_is_shown_where_it_does(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return self.stage.column(lambda s: s.colour) == 1
                                               ^^^^^^^^
        """,
        "invariant `fine` fails while it is traced: "
        "AttributeError: 'Stage' object has no attribute 'colour'",
        "a body is Python that runs once",
    )
