"""What an action may not assign or read: a place twice, a constant, what it has assigned."""

from __future__ import annotations

from collections.abc import Callable

Refusal = Callable[[str, str, str], Exception]

ONCE = "effects happen at once, so only one value can be meant"
FIRST = "reads see the state before the action: read it first, then assign"


def test_assigning_twice(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.ready = True
            self.ready = False
            ^^^^^^^^^^
        """,
        "`ready` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_all_cells_in_two_loops(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            for n in Node:
                self.learned[n] = Stage.rest
            for n in Node:
                self.learned[n] = Stage.moving
                ^^^^^^^^^^^^^^^
        """,
        "`learned[n]` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_a_cell_after_all_cells(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            for n in self.up:
                self.learned[n] = Stage.rest
            self.learned[node] = Stage.moving
            ^^^^^^^^^^^^^^^^^^
        """,
        "`learned[node]` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_all_cells_after_a_cell(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.learned[node] = Stage.moving
            for n in Node:
                self.learned[n] = Stage.rest
                ^^^^^^^^^^^^^^^
        """,
        "`learned[n]` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_a_record_after_its_field(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.row.present = True
            self.row = self.rows[node]
            ^^^^^^^^
        """,
        "`row` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_a_cell_after_the_whole_map(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.seen[node] = self.seen[node]
            self.seen[node][Colour.red] = True
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "`seen[node][red]` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_a_set_after_its_member(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.colours.add(Colour.red)
            self.colours = {Colour.blue}
            ^^^^^^^^^^^^
        """,
        "`colours` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_what_the_step_moves(refused: Refusal) -> None:
    refused(
        """
        @Sound.stage.step(Stage.rest, Stage.moving)
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        def go(self) -> None:
            self.stage = Stage.rest
        """,
        "`stage` is assigned twice in action `go`",
        ONCE,
    )


def test_assigning_what_a_joined_action_assigns(refused: Refusal) -> None:
    refused(
        """
        @action
        def wake(self) -> None:
            self.ready = True

        @action
        def go(self) -> None:
            self.wake()
            self.ready = False
            ^^^^^^^^^^
        """,
        "`ready` is assigned twice in action `go`",
        ONCE,
    )


def test_reading_after_assigning(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.ready = True
            require(self.ready, "ready")
                    ^^^^^^^^^^
        """,
        "`ready` is read after it was assigned in action `go`",
        FIRST,
    )


def test_reading_a_set_after_adding(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.up.add(node)
            require(self.up.has(node), "up")
                    ^^^^^^^
        """,
        "`up` is read after it was assigned in action `go`",
        FIRST,
    )


def test_reading_a_record_after_assigning_its_field(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            self.rows[node].present = True
            self.row = self.rows[node]
                       ^^^^^^^^^^^^^^^
        """,
        "`rows[node]` is read after it was assigned in action `go`",
        FIRST,
    )


def test_reading_a_cell_after_assigning_all(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            for n in Node:
                self.learned[n] = Stage.rest
            require(every(self.learned[n] == Stage.rest for n in Node), "expected")
                          ^^^^^^^^^^^^^^^
        """,
        "`learned[n]` is read after it was assigned in action `go`",
        FIRST,
    )


def test_choosing_by_what_was_assigned(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.ready = True
            self.fresh = choose(self.ready, True, False)
                                ^^^^^^^^^^
        """,
        "`ready` is read after it was assigned in action `go`",
        FIRST,
    )


def test_variable_never_assigned(refused: Refusal) -> None:
    refused(
        """
        idle = flag()
               ^^^^^^
        """,
        "variable `idle` is never assigned by an action",
        "declare it `constant(...)` if runs differ in it but never change it",
    )


def test_constant_assigned(refused: Refusal) -> None:
    refused(
        """
        size = constant(number(0, 3, init=ANY))

        @action
        def go(self) -> None:
            self.size = 2
            ^^^^^^^^^
        """,
        "`size` is declared constant and cannot be assigned",
        "drop constant(...)",
    )


def test_assigning_outside_of_a_trace(refused_module: Refusal) -> None:
    refused_module(
        """
        Sound().ready = True
        ^^^^^^^^^^^^^
        """,
        "an assignment outside of a machine's action or property",
        "write it in a method decorated with @action",
    )


def test_using_a_set_that_was_kept_from_before_it_was_assigned(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Node]) -> None:
            before = self.up
                     ^^^^^^^
            self.up = self.up - self.up
            require(before.has(node), "it was up")
        """,
        "`up` is read after it was assigned in action `go`",
        "what is kept of a set, map or record is its place",
    )
