"""Values of the wrong sort: compared, assigned, used as keys, chosen, or asked for what they are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]

INTERCHANGEABLE = "members of an entity sort are interchangeable: take one as a parameter"


def expression(text: str) -> str:
    """A body that requires a condition, marked."""
    return f"""
        @action
        def go(self, node: Term[Node]) -> None:
            require({text}, "so")
                    {"^" * len(text)}
            self.leader = node
        """


@pytest.mark.parametrize(
    ("condition", "problem", "help"),
    [
        (
            'self.stage == "rest"',
            "the right side of `==` is 'rest' (str), but Stage is needed here",
            "write `Stage.rest`",
        ),
        (
            'self.stage == "gone"',
            "the right side of `==` is 'gone' (str), but Stage is needed here",
            "write a member of Stage: rest, moving",
        ),
        (
            "self.stage == Colour.red",
            "the right side of `==` is Colour.red, but Stage is needed here",
            "write a member of Stage: rest, moving",
        ),
        (
            "self.stage != self.leader",
            "the right side of `==` is of sort Stage, but Node or none is needed here",
            "write None, or: a parameter `x: Term[Node]` of the action",
        ),
        (
            "self.leader == Node(0)",
            "the right side of `==` is node0 (Node), but Node or none is needed here",
            INTERCHANGEABLE,
        ),
        (
            "self.leader == Node",
            "the right side of `==` is the class Node, but Node or none is needed here",
            "write None, or: a parameter `x: Term[Node]` of the action",
        ),
        (
            "self.copies == True",
            "`==` compares a number with True",
            "write a number",
        ),
        (
            "self.copies < self.ready",
            "the other side of `<` is of sort bool, but a number is needed here",
            "`choose(condition, 1, 0)` for one",
        ),
        (
            "self.copies < Stage.rest",
            "the other side of `<` is Stage.rest, but a number is needed here",
            "write a number",
        ),
        (
            "self.ready == self.copies",
            "the right side of `==` is a number in 0..3, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "self.ready & self.stage",
            "one side of `&` is of sort Stage, but a condition is needed here",
            "parenthesise comparisons",
        ),
        (
            "self.ready & 1",
            "one side of `&` is 1, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "self.up == {1, 2}",
            "the right side of `==` is {1, 2} (set), but set of Node is needed here",
            "write a set of Node, empty `set()`, or `.add(…)`, `.discard(…)`",
        ),
        (
            "self.up == self.colours",
            "the right side of `==` is of sort set of Colour, but set of Node is needed here",
            "write a set of Node",
        ),
        (
            "self.up.has(self.leader)",
            "the member is of sort Node or none, but Node is needed here",
            "it may be none: take a parameter `x: Term[Node]` and require that it equals this",
        ),
        (
            "self.learned[Colour.red] == Stage.rest",
            "the key is Colour.red, but Node is needed here",
            "write a parameter `x: Term[Node]` of the action",
        ),
        (
            "self.learned[self.leader] == Stage.rest",
            "the key is of sort Node or none, but Node is needed here",
            "it may be none",
        ),
        (
            "self.row == self.leader",
            "the right side of `==` is of sort Node or none, but Row is needed here",
            "write `Row(…)` with its fields, another Row of the state",
        ),
        (
            "self.learned == self.seen",
            (
                "the right side of `==` is of sort bool per Colour per Node, "
                "but Stage per Node is needed here"
            ),
            "write another value of the state that is Stage per Node",
        ),
        (
            "self.stage.any_of()",
            "any_of() of no members is never true",
            "list the members",
        ),
        (
            "self.leader.any_of()",
            "any_of() of no members is never true",
            "list the members",
        ),
        (
            "every(self.ready)",
            "every(...) takes a generator of conditions",
            "write `every(condition for n in Node)`",
        ),
        (
            "count([]) == 1",
            "count(...) of nothing",
            "give it a generator",
        ),
        (
            "count(self.seen[n][c] for n in Node for c in self.colours) > 1",
            "count(...) over more than one sort at once",
            "count over one sort",
        ),
        (
            "some(self.stage for n in Node)",
            "the body of some(...) is of sort Stage, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "every(n.column(lambda m: True) for n in Node)",
            "Node has no columns: its members are interchangeable",
            "declare a variable `per(Node, …)`",
        ),
    ],
)
def test_condition(refused: Refusal, condition: str, problem: str, help: str) -> None:
    inner = condition
    for marked in (
        "count(self.seen[n][c] for n in Node for c in self.colours)",
        "count([])",
        "n.column(lambda m: True)",
        "self.learned[Colour.red]",
        "self.learned[self.leader]",
    ):
        if marked in condition:
            inner = marked
    before = condition.index(inner)
    text = expression(condition).replace("^" * len(condition), " " * before + "^" * len(inner))
    refused(text, problem, help)


@pytest.mark.parametrize(
    ("assignment", "problem", "help"),
    [
        (
            'self.stage = "rest"',
            "the assigned value is 'rest' (str), but Stage is needed here",
            "write `Stage.rest`",
        ),
        (
            "self.stage = Colour.red",
            "the assigned value is Colour.red, but Stage is needed here",
            "write a member of Stage",
        ),
        (
            "self.stage = self.leader",
            "the assigned value is of sort Node or none, but Stage is needed here",
            "write a member of Stage",
        ),
        (
            "self.leader = Node(0)",
            "the assigned value is node0 (Node), but Node or none is needed here",
            INTERCHANGEABLE,
        ),
        (
            "self.copies = 7",
            "the assigned value is 7, outside of 0..3",
            "widen the variable's bounds, or assign a value within them",
        ),
        (
            "self.copies = -1",
            "the assigned value is -1, outside of 0..3",
            "widen the variable's bounds",
        ),
        (
            "self.copies = self.copies + 4",
            "the assigned value is a number in 4..7, outside of 0..3",
            "widen the variable's bounds",
        ),
        (
            "self.copies = True",
            "the assigned value is True, but a number in 0..3 is needed here",
            "write a number in 0..3",
        ),
        (
            "self.copies = 1.5",
            "the assigned value is 1.5 (float), but a number in 0..3 is needed here",
            "write a number in 0..3",
        ),
        (
            "self.ready = 1",
            "the assigned value is 1, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "self.ready = None",
            "the assigned value is None, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "self.learned = Stage.rest",
            "the assigned value is Stage.rest, but Stage per Node is needed here",
            "write another value of the state that is Stage per Node",
        ),
        (
            "self.views = self.learned",
            "the assigned value is of sort Stage per Node, but Stage or none per Node is needed here",
            "write another value of the state that is Stage or none per Node",
        ),
        (
            "self.row = True",
            "the assigned value is True, but Row is needed here",
            "write `Row(…)` with its fields, another Row of the state, or assign its fields one by one",
        ),
    ],
)
def test_assignment(refused: Refusal, assignment: str, problem: str, help: str) -> None:
    place = assignment.partition(" = ")[0]
    refused(
        f"""
        @action
        def go(self) -> None:
            {assignment}
            {"^" * len(place)}
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("effect", "problem", "help"),
    [
        (
            "self.colours.add(Stage.rest)",
            "the member is Stage.rest, but Colour is needed here",
            "write a member of Colour: red, blue",
        ),
        (
            "self.up.discard(Node(1))",
            "the member is node1 (Node), but Node is needed here",
            INTERCHANGEABLE,
        ),
        (
            "self.colours.put(Colour.red, 2)",
            "the assigned value is 2, but a condition is needed here",
            "write True, False or a condition",
        ),
    ],
)
def test_change_of_a_set(refused: Refusal, effect: str, problem: str, help: str) -> None:
    refused(
        f"""
        @action
        def go(self) -> None:
            {effect}
            {"^" * len(effect)}
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("choice", "problem", "help"),
    [
        (
            "choose(self.ready, Stage.rest, Colour.red)",
            "choose(...) of two sorts: Stage and Colour",
            "both values must be of one sort",
        ),
        (
            'choose(self.ready, "rest", self.stage)',
            "choose(...) is given 'rest' (str)",
            "write `Stage.rest`",
        ),
        (
            "choose(self.stage, Stage.rest, self.stage)",
            "the condition of choose(...) is of sort Stage, but a condition is needed here",
            "write True, False or a condition",
        ),
        (
            "choose(self.ready, None, None)",
            "choose(...) is given None (NoneType)",
            "none is chosen against a value: `choose(condition, x, None)`",
        ),
        (
            "self.stage.column(lambda s: s.rank if s is Stage.rest else s.writes)",
            "a column must be of one kind for all members; this one has: frozenset, int",
            "return a bool, an int, a member of one enum (or None), or a set of members of one enum",
        ),
        (
            "self.stage.number_column(lambda s: s.writes)",
            "the column is of sort set of Colour, which is not what this method is for",
            "`number_column` is for numbers",
        ),
        (
            "self.stage.optional_column(lambda s: s.rank)",
            "the column is of sort 1..2, which is not what this method is for",
            "`optional_column` for members of which some are none",
        ),
        (
            "self.stage.column(lambda s: s.name)",
            "a column must be of one kind for all members; this one has: str",
            "return a bool, an int",
        ),
    ],
)
def test_choice(refused: Refusal, choice: str, problem: str, help: str) -> None:
    refused(
        f"""
        @action
        def go(self) -> None:
            self.stage = {choice}
                         {"^" * len(choice)}
        """,
        problem,
        help,
    )


def test_symbolic_dictionary_key(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ranks = {Stage.rest: True, Stage.moving: False}
            return ranks[self.stage]
                   ^^^^^^^^^^^^^^^^^
        """,
        "a symbolic value cannot be a dictionary's key or a member of a Python set",
        "`x.column(table.__getitem__)`",
    )


def test_symbolic_member_of_a_python_set(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.up = {node}
                      ^^^^^^
        """,
        "a symbolic value cannot be a dictionary's key or a member of a Python set",
        "for sets write `.has(x)`, `.add(x)`, `.discard(x)`, and `SetOf.of(x, y)` instead of `{x, y}`",
    )


def test_clearing_a_set(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.up.clear()
            ^^^^^^^^^^^^^
        """,
        "action `go` fails while it is traced: AttributeError: 'SetOf' object has no attribute 'clear'",
        "a set is emptied by an assignment: `self.s = set()`",
    )


def test_symbolic_value_in_a_text(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            require(self.ready, "is {}".format(self.stage))
                                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "a symbolic value has no text while a definition is traced",
        "name requirements by what they say of every value",
    )


def test_symbolic_range(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for i in range(self.copies):
                     ^^^^^^^^^^^^^^^^^^
                pass
        """,
        "a symbolic number cannot be used as a Python index or in range(...)",
        "make it a parameter of the action, or compare it with `==`",
    )


def test_symbolic_index(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            return [True, False][self.copies]
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "a symbolic number cannot be used as a Python index or in range(...)",
        "make it a parameter",
    )
