"""Properties state conditions and nothing else; members, parameters and decorators are what they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Refusal = Callable[[str, str, str], Exception]

RANGES = (
    "write `Term[…]` or `SetOf[…]` with an enum or entity sort, `Bool`, "
    "`Annotated[Number, between(0, 3)]`, or a Record"
)


def test_property_returning_nothing(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ^^^^
            self.ready | self.fresh
        """,
        "invariant `fine` returns nothing",
        "`return` a condition on the state",
    )


def test_property_returning_a_value(refused: Refusal) -> None:
    refused(
        """
        @always_reachable
        def fine(self) -> Bool:
            ^^^^
            return self.stage
        """,
        "always reachable `fine` returns a value of sort Stage, not a condition",
        "`return` a condition on the state",
    )


def test_property_that_does_not_look_at_the_state(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ^^^^
            return 1 < 2
        """,
        "invariant `fine` returns True, which does not depend on the state",
        "`return` a condition on the state",
    )


def test_liveness_returning_a_condition(refused: Refusal) -> None:
    refused(
        """
        @liveness
        def ends(self) -> LeadsTo:
            ^^^^
            return self.ready
        """,
        "liveness `ends` returns a condition, and does not say when it comes to hold",
        "`return leads_to(premise, conclusion)` or `return eventually(condition)`",
    )


def test_leads_to_a_value(refused: Refusal) -> None:
    refused(
        """
        @liveness
        def ends(self) -> LeadsTo:
            return leads_to(self.ready, self.stage)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        "the conclusion of leads_to(...) is of sort Stage, but a condition is needed here",
        "write True, False or a condition",
    )


def test_requiring_in_an_invariant(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            require(self.ready, "ready")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            return self.fresh
        """,
        "require(...) in invariant `fine`, which only states a condition",
        "guards and effects belong into an @action; return the condition instead",
    )


def test_assigning_in_an_invariant(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            self.ready = True
            ^^^^^^^^^^
            return self.fresh
        """,
        "an assignment in invariant `fine`, which only states a condition",
        "guards and effects belong into an @action",
    )


def test_acting_in_an_invariant(refused: Refusal) -> None:
    refused(
        """
        @action
        def wake(self) -> None:
            self.ready = True
            ^^^^^^^^^^

        @invariant
        def fine(self) -> Bool:
            self.wake()
            return self.fresh
        """,
        "an assignment in invariant `fine`, which only states a condition",
        "guards and effects belong into an @action",
    )


@pytest.mark.parametrize("loop", ["for n in Node:", "for n in self.up:", "for n in self.leader:"])
def test_loop_outside_of_a_quantifier(refused: Refusal, loop: str) -> None:
    refused(
        f"""
        @invariant
        def fine(self) -> Bool:
            {loop}
            {"^" * len(loop)}
                return self.learned[n] == Stage.rest
        """,
        "a loop over Node in invariant `fine` must stand inside every(...), some(...) or count(...)",
        "write `every(… for n in Node)`",
    )


def test_quantifier_whose_variable_escapes(refused: Refusal) -> None:
    refused(
        """
        @invariant
        def fine(self) -> Bool:
            ^^^^
            kept = []
            told = every(kept.append(n) or self.up.has(n) for n in Node)
            return self.learned[kept[0]] == Stage.rest
        """,
        "`n` of a loop over Node is used outside of that loop",
        "it stands for every member while the loop runs",
    )


def test_step_property_without_the_state_after(refused: Refusal) -> None:
    refused(
        """
        @step_property
        def grows(self) -> Bool:
            ^^^^^
            return self.ready
        """,
        "step property `grows` has no parameter for the state after the step",
        "write `def grows(self, after: Self) -> Bool`",
    )


def test_step_property_whose_state_after_is_not_first(refused: Refusal) -> None:
    refused(
        """
        @step_property
        def grows(self, n: Term[Node], after: Self) -> Bool:
                                       ^^^^^
            return after.ready
        """,
        "parameter `after` of step property `grows`, the state after the step, is not the first",
        "put `after` first: `def grows(self, after: Self, …) -> Bool`",
    )


def test_method_decorated_twice(refused: Refusal) -> None:
    refused(
        """
        @invariant
        @action
        def go(self) -> None:
            ^^
            self.ready = True
        """,
        "`go` is decorated as action and as invariant",
        "a method is one thing: keep one of the decorators",
    )


def test_property_decorated_as_an_action(refused: Refusal) -> None:
    refused(
        """
        @action
        @always_reachable
        def done(self) -> Bool:
            ^^^^
            return self.ready
        """,
        "`done` is decorated as always reachable and as action",
        "keep one of the decorators",
    )


def test_action_defined_twice(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            self.ready = True

        @action
        def go(self) -> None:
        ^^^^^^^^^^^^^^^^^^^^^
            self.fresh = True
        """,
        "`go` is defined twice in one class",
        "the second would silently replace the first: rename one",
    )


def test_variable_defined_twice(refused: Refusal) -> None:
    refused(
        """
        again = flag()
        again = number(0, 1)
        ^^^^^
        """,
        "`again` is defined twice in one class",
        "rename one",
    )


def test_parameter_without_annotation(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node) -> None:
                     ^^^^
            self.leader = node
        """,
        "parameter `node` of action `go` does not say what it ranges over",
        "write `node: Term[…]` with an enum or entity sort",
    )


def test_parameter_whose_annotation_is_unknown(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, node: Term[Nod]) -> None:
                     ^^^^
            self.leader = node
        """,
        "parameter `node` of action `go`: cannot resolve `Term[Nod]` (name 'Nod' is not defined)",
        "import the sort at run time (not only under TYPE_CHECKING) and define it before the machine",
    )


@pytest.mark.parametrize(
    "annotation",
    ["Term[str]", "Term[Entity]", "Maybe[Node]", "Annotated[Number, 3]"],
)
def test_parameter_that_ranges_over_nothing(refused: Refusal, annotation: str) -> None:
    refused(
        f"""
        @action
        def go(self, x: {annotation}) -> None:
                     ^
            self.leader = x
        """,
        f"parameter `x` of action `go` cannot range over `{annotation}`",
        RANGES,
    )


def test_parameters_in_a_row(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, *nodes: Term[Node]) -> None:
                      ^^^^^
            self.leader = nodes[0]
        """,
        "parameter `nodes` of action `go` is not an ordinary parameter",
        "list each parameter by name, without `*`",
    )


def test_range_without_values(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self, x: Annotated[Number, between(3, 1)]) -> None:
                     ^
            self.copies = x
        """,
        "parameter `x` of action `go`: between(3, 1) has no values",
        "the bounds are (low, high), both included",
    )


@pytest.mark.parametrize(
    ("option", "problem", "help"),
    [
        (
            'spends="crashes"',
            "`spends` is 'crashes' (str)",
            "write a budget that the class declares",
        ),
        ("fair=True", "`fair` is True (bool)", "write `Fairness.WEAK` or `Fairness.STRONG`"),
        ('by="writer"', "`by` is 'writer' (str)", 'write `Actor("who acts")`'),
    ],
)
def test_option_of_an_action(refused: Refusal, option: str, problem: str, help: str) -> None:
    refused(
        f"""
        @action({option})
         {"^" * len(f"action({option})")}
        def go(self) -> None:
            self.ready = True
        """,
        problem,
        help,
    )
    refused(
        f"""
        @Sound.stage.step(Stage.rest, Stage.moving, {option})
         {"^" * len(f"Sound.stage.step(Stage.rest, Stage.moving, {option})")}
        def go(self) -> None:
            self.ready = True
        """,
        problem,
        help,
    )


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (
            "Sound.stage.step(Stage.rest, Colour.red)",
            "the target of the step is Colour.red, but Stage is needed here",
        ),
        (
            "Sound.stage.step(Colour.red, Stage.rest)",
            "the source of the step is Colour.red, but Stage is needed here",
        ),
        (
            "Sound.ready.step(True, False)",
            "`ready` cannot take steps from (True,) to False",
        ),
        (
            "Sound.stage.step((), Stage.rest)",
            "`stage` cannot take steps from () to <Stage.rest: 0>",
        ),
    ],
)
def test_step_of_what_cannot_move_so(refused: Refusal, step: str, problem: str) -> None:
    refused(
        f"""
        @{step}
         {"^" * len(step)}
        def go(self) -> None:
            self.fresh = True
        """,
        problem,
        "member",
    )


def test_step_of_a_map_without_a_parameter(refused: Refusal) -> None:
    refused(
        """
        @Sound.learned.step(Stage.rest, Stage.moving)
        def go(self) -> None:
            ^^
            self.fresh = True
        """,
        "a step of `learned` needs the Node whose value moves",
        "write it as the first parameter: `x: Term[Node]`",
    )


def test_only_when_a_symbolic_condition_holds(refused: Refusal) -> None:
    refused(
        """
        @action
        def go(self) -> None:
            only_when(self.ready)
            ^^^^^^^^^^^^^^^^^^^^^
            self.fresh = True
        """,
        "only_when(...) is given a condition on the state",
        "it takes a plain bool of the profile; a guard is `require(condition, name)`",
    )
