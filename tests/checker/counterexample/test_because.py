"""Why a promise is broken: the false conjunct, its witness, and the values that decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stagewright.checker.check import check
from stagewright.checker.counterexample.because import Because, Reason
from stagewright.checker.counterexample.story import story_of
from stagewright.checker.prove import prove
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec import (
    Entity,
    Machine,
    Term,
    action,
    bounded,
    number,
    queue,
    require,
    set_of,
)
from stagewright.spec.declarations.variables import NumberVar
from stagewright.spec.define import define
from stagewright.spec.definition import NO_DEADLOCK, Definition
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.nodes import BOOL, Apply, Bound, Node, Op, Quantified, Quantity
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.text.words import words
from stagewright.spec.verdict import PropertyVerdict, Report

Finder = Callable[[Definition, str], PropertyVerdict]


def reasons_of(definition: Definition, verdict: PropertyVerdict) -> list[str]:
    """The reasons, indented by two spaces a level."""
    breach = story_of(definition, verdict).breach
    return [f"{'  ' * depth}{text}" for r in breach.reasons for depth, text in r.lines()]


def test_a_quantifier_is_explained_by_its_witness(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert reasons_of(migration, incomplete) == [
        "n = node0:",
        "  new is in learned[node0].reads ({new})",
        "    learned[node0] is read_new",
        "  but new is not in complete ({old})",
    ]


def test_an_instance_is_reported_with_the_values_of_both_sides(
    migration: Definition, find_violation: Finder
) -> None:
    verdict = find_violation(migration, "no_lag")
    assert reasons_of(migration, verdict) == ["learned[node0] (rest) ≠ stage (write_both)"]
    assert story_of(migration, verdict).breach.instance == (("n", "node0"),)


def test_a_step_property_reports_the_old_and_the_new_value(
    migration: Definition, find_violation: Finder
) -> None:
    verdict = find_violation(migration, "stages_go_up")
    assert reasons_of(migration, verdict) == [
        "stage is write_both",
        "but new stage is read_new, not write_both",
    ]
    assert story_of(migration, verdict).breach.headline == "Step 2 breaks it:"


def test_of_a_conjunction_only_the_false_part_is_reported(
    workers: Definition, find_violation: Finder
) -> None:
    verdict = find_violation(workers, "little_is_done")
    assert reasons_of(workers, verdict) == ["t = task0:", "  rows[task0].written is yes"]


def test_of_a_disjunction_every_part_is_reported(
    workers: Definition, find_violation: Finder
) -> None:
    verdict = find_violation(workers, "leader_works")
    assert reasons_of(workers, verdict) == [
        "owner[task0] is node1, not none",
        "owner[task0] (node1) ≠ leader (node0)",
    ]


def test_a_goal_out_of_reach_is_explained_in_the_last_state(
    migration: Definition, no_way_back: PropertyVerdict
) -> None:
    breach = story_of(migration, no_way_back).breach
    assert breach.headline == "From state 1 on, no run ever comes to: stage is rest. In that state:"
    assert reasons_of(migration, no_way_back) == ["stage is write_both, not rest"]


def test_a_lasso_says_where_the_promise_begins_and_that_it_never_ends(
    migration: Definition, lasso: PropertyVerdict
) -> None:
    assert reasons_of(migration, lasso) == [
        "the premise holds in state 1:",
        "  stage is write_both",
        "stage is cleanup - never from there on:",
        "  stage is write_both, not cleanup",
        "no action is declared fair: none of them has to happen",
    ]
    headline = story_of(migration, lasso).breach.headline
    assert headline == (
        "What must eventually happen never does: step 3 may happen again and again for ever."
    )


def test_a_deadlock_names_for_each_action_the_requirement_that_refuses_it(
    stuck: tuple[Definition, PropertyVerdict],
) -> None:
    definition, verdict = stuck
    lines = reasons_of(definition, verdict)
    assert [line for line in lines if not line.startswith(" ")] == [
        "claim is refused by `not done yet`:",
        "finish is refused by `the task is its own`:",
        "crash is refused by `it leads`, `it owns a task`:",
    ]
    at = lines.index("  claim(node0, task0), claim(node1, task0):")
    assert lines[at + 1] == "    task0 is in done ({task0, task1})"
    assert "  (and for 2 more choices by `the task is its own`)" in lines


def test_an_action_that_a_budget_of_zero_switches_off_is_named(
    stuck: tuple[Definition, PropertyVerdict],
) -> None:
    definition, verdict = stuck
    assert verdict.run is not None
    states = tuple(
        type(s)({k: v for k, v in s.items() if not k.startswith("budget.")})
        for s in verdict.run.states
    )
    without = type(verdict.run)(states, verdict.run.steps)
    verdict = type(verdict)(verdict.name, verdict.outcome, verdict.method, run=without)
    assert reasons_of(definition, verdict)[-1] == "crash is switched off: the budget crashes is 0"


def test_a_value_out_of_bounds_is_reported_with_the_step_that_would_assign_it(
    workers: Definition, done: PropertyVerdict
) -> None:
    assert reasons_of(workers, done) == ["hurry: patience would become 3, outside 0..2"]


class Post(Machine):
    """Messages to the second of two places, through a pipe for two; nothing keeps either in bounds."""

    place: NumberVar = number(0, 2)
    pipe = queue(number(1, 2), 2)

    @action
    def move(self) -> None:
        require(self.place < 2, "there is a place")
        self.place = self.place + 1

    @action
    def send(self) -> None:
        self.pipe.append(self.place)


@pytest.mark.parametrize("decide", [check, prove])
def test_a_value_within_a_queue_that_is_out_of_bounds_is_reported_too(
    decide: Callable[[Definition, Scope], Report],
) -> None:
    definition = define(Post)
    [verdict] = [
        v for v in decide(definition, scope_of(definition)).verdicts if v.name == IN_BOUNDS
    ]
    [reason] = reasons_of(definition, verdict)
    assert reason == "`send` assigns 0 to pipe, outside of 1..2"


def test_a_queue_that_would_grow_too_long_is_reported_with_the_step_that_appends() -> None:
    class Long(Post):
        @action
        def send(self) -> None:
            require(self.place > 0, "somewhere")
            self.pipe.append(self.place)

    definition = define(Long)
    [verdict] = [v for v in check(definition, scope_of(definition)).verdicts if v.name == IN_BOUNDS]
    assert reasons_of(definition, verdict) == ["`send` makes pipe 3 long, but it holds at most 2"]


def test_a_deadlock_at_a_bound_of_the_check_says_what_to_write() -> None:
    class Ends(Machine):
        level: NumberVar = number(0, 2)

        @action
        def add(self) -> None:
            bounded(self.level < 2)
            self.level = self.level + 1

    definition = define(Ends)
    [verdict] = [
        v for v in check(definition, scope_of(definition)).verdicts if v.name == NO_DEADLOCK
    ]
    assert reasons_of(definition, verdict)[-1] == (
        "only a bound of the check refuses add: a run may end there if @final says so"
    )


def test_a_count_says_which_members_it_counts(workers: Definition, done: PropertyVerdict) -> None:
    assert done.run is not None
    because = Because(Interpreter(workers, scope_of(workers)), done.run.states[-1])
    guard = workers.action("hurry").requirements[0].condition
    assert because.reasons(guard, {}) == (
        Reason("limit (1) < size of done (2)", (Reason("counted: task0, task1"),)),
    )


def conditions(leaves: list[Node], bound: Bound) -> st.SearchStrategy[Node]:
    """Conditions over the given ones, under every connective and quantifier."""

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        quantity = st.sampled_from((Quantity.EVERY, Quantity.SOME))
        return st.one_of(
            inner.map(lambda a: Apply(Op.NOT, (a,), BOOL)),
            several.map(lambda args: Apply(Op.AND, args, BOOL)),
            several.map(lambda args: Apply(Op.OR, args, BOOL)),
            st.tuples(inner, inner, inner).map(lambda args: Apply(Op.IF, args, BOOL)),
            st.builds(Quantified, quantity, st.just(bound), inner, st.just(BOOL)),
        )

    return st.recursive(st.sampled_from(leaves), larger, max_leaves=8)


@pytest.fixture(scope="module")
def any_condition(workers: Definition) -> st.SearchStrategy[Node]:
    """Conditions over requirements and promises of the workers; made once, for it is slow."""
    finish, hurry = workers.action("finish"), workers.action("hurry")
    leaves = [r.condition for r in (*finish.requirements, *hurry.requirements)]
    leaves += [workers.property("little_is_done").condition, *workers.initially]
    return conditions(leaves, finish.params[1])


@given(data=st.data())
def test_every_condition_can_be_explained_and_said(
    data: st.DataObject,
    workers: Definition,
    done: PropertyVerdict,
    any_condition: st.SearchStrategy[Node],
) -> None:
    assert done.run is not None
    interpreter = Interpreter(workers, scope_of(workers))
    params = workers.action("finish").params
    node = data.draw(any_condition)
    names = data.draw(st.sampled_from(list(interpreter.instances(params))))
    reasons = Because(interpreter, done.run.states[-1]).reasons(node, names)
    assert reasons
    assert all(text for reason in reasons for _, text in reason.lines())
    assert words(node, names)


def test_of_nested_implications_all_premises_hold_but_the_last_conclusion_does_not(
    broken: Any, migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert incomplete.run is not None
    because = Because(Interpreter(migration, scope_of(migration)), incomplete.run.states[-1])
    lags = migration.property("no_lag")
    node1 = {lags.params[0]: broken.Node(1)}
    listed_twice = Apply(Op.NOT, (lags.condition,), BOOL)
    inner = Apply(Op.OR, (Apply(Op.NOT, (listed_twice,), BOOL), lags.condition), BOOL)
    outer = Apply(Op.OR, (Apply(Op.NOT, (listed_twice,), BOOL), inner), BOOL)
    lag = "learned[node1] (rest) ≠ stage (read_new)"
    assert [r.text for r in because.reasons(outer, node1)] == [lag, lag, f"but {lag}"]


class Peer(Entity, scope=2):
    """One of two."""


class Rivals(Machine):
    """Everyone has challenged another one, whom it does not beat, and nobody is left to challenge."""

    challenged = set_of(Peer)

    @action
    def challenge(self, p: Term[Peer], q: Term[Peer]) -> None:
        """`p` challenges another one, once."""
        require(p != q, "they are two")
        require(~self.challenged.has(p), "not yet")
        self.challenged.add(p)

    @action
    def give_up(self, p: Term[Peer], q: Term[Peer]) -> None:
        """`p` takes its challenge back, if it challenged itself."""
        require(self.challenged.has(p), "has challenged")
        require(p == q, "they are one")
        require(~self.challenged.has(q), "not by the other")
        self.challenged.put(p, False)


def test_parameters_that_are_compared_have_their_names() -> None:
    definition = define(Rivals)
    deadlock = next(
        v for v in check(definition, scope_of(definition)).verdicts if v.name == NO_DEADLOCK
    )
    lines = "\n".join(reasons_of(definition, deadlock))
    assert "p and q are both peer0" in lines
    assert "p (peer0) ≠ q (peer1)" in lines
