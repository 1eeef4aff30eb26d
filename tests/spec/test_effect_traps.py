"""What an action may not do: assign twice, read what it assigned, choose inside of a loop, miss a name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]

ONCE = "effects happen at once, so only one value can be meant"
FIRST = "reads see the state before the action: read it first, then assign"
ALL = "such a loop stands for all members at once: no `break`, no `return` in it"


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
            require(every(self.learned[n] == Stage.rest for n in Node), "told")
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
        "it has: stage, learned, seen, ready, fresh, copies, leader, up, colours, row, rows",
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
        "check that the comparison involves a variable",
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


def test_assigning_outside_of_a_trace(refused_module: Refusal) -> None:
    refused_module(
        """
        Sound().ready = True
        ^^^^^^^^^^^^^
        """,
        "an assignment outside of a machine's action or property",
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
            self.copies = self.copies * 2
                          ^^^^^^^^^^^^^^^
        """,
        "action `go` fails while it is traced: "
        "TypeError: unsupported operand type(s) for *: 'Number' and 'int'",
        "a body is Python that runs once, with symbolic values",
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
