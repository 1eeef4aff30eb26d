"""A helper that a step and a property share is changed for both, and whether a property notices is found out."""

from __future__ import annotations

from typing import Self

import pytest
from tests.checker.mutation.machines import mutants_of, mutated

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, all_mutants, changed_actions
from stagewright.checker.mutation.evaluation import Fate
from stagewright.spec import (
    Bool,
    FlagVar,
    Machine,
    Number,
    SetOf,
    SetVar,
    States,
    Term,
    action,
    count,
    equivalent_helper,
    equivalents,
    final,
    flag,
    invariant,
    part,
    require,
    set_of,
    step_property,
)
from stagewright.spec.define import define
from stagewright.spec.errors import ReasonError


class Member(States):
    """Who votes."""

    first = ()
    second = ()
    third = ()


def _needed() -> int:
    return 2


def _votes(voted: SetOf[Member]) -> Number:
    """A function beside the machine: it is called as a method is."""
    return voted.size()


class Votes(Machine):
    """A decision is taken once a majority has voted, and whether it has, the property asks the step's own helper."""

    voted: SetVar[Member] = set_of(Member)
    decided: FlagVar = flag()

    @action
    def vote(self, m: Term[Member]) -> None:
        """A member votes."""
        require(~self.voted.has(m), "it has not voted")
        self.voted.add(m)

    @action
    def decide(self) -> None:
        """The decision is taken."""
        require(self._may_decide(), "a majority has voted")
        self.decided = True

    @step_property
    def a_majority_decides(self, after: Self) -> Bool:
        return (after.decided & ~self.decided).implies(self._majority)

    def _may_decide(self) -> Bool:
        return self._majority & ~self.decided

    @property
    def _majority(self) -> Bool:
        return _votes(self.voted) >= _needed()


class CountedAgain(Votes):
    """The property counts by itself."""

    @step_property
    def a_majority_decides(self, after: Votes) -> Bool:
        counted = count(self.voted.has(m) for m in Member)
        return (after.decided & ~self.decided).implies(counted > 1)

    @invariant
    def who_has_decided_has_a_majority(self) -> Bool:
        return self.decided.implies(self._majority)


class Excused(Votes):
    """The same fault, with the reason why nobody minds."""

    harmless = equivalents(
        equivalent_helper(
            Votes._majority, "is always so", "is never so", because="it is a test of reasons"
        ),
        equivalent_helper(_votes, because="so is this"),
    )


class Bounded(Votes):
    """A reason that names a variable, as the report of this machine words it."""

    harmless = equivalents(
        equivalent_helper(
            Votes._majority, "not size of voted ≥ 2", because="it is a test of reasons, too"
        ),
    )


class WronglyExcused(Votes):
    """Reasons about changes that nobody makes."""

    harmless = equivalents(
        equivalent_helper(Votes._may_decide, "is one more", because="it is no number"),
    )


class Parliament(Machine):
    """Votes as a part of a system, which has no helper of its own."""

    votes = part(Votes)
    closed: FlagVar = flag()

    @action
    def close(self) -> None:
        """Nobody votes any more."""
        require(self.votes.decided & ~self.closed, "it is decided")
        self.closed = True


class Senate(Machine):
    """A system in which the part's variables have longer names."""

    votes = part(Bounded)
    closed: FlagVar = flag()

    @action
    def close(self) -> None:
        """Nobody votes any more."""
        require(self.votes.decided & ~self.closed, "it is decided")
        self.closed = True


class Lamp(Machine):
    """A run may end where the lamp is off, and nobody calls; the lamp is never off while somebody calls."""

    on: FlagVar = flag()
    called: FlagVar = flag()

    @action
    def call(self) -> None:
        """Somebody calls, and the lamp is on as long as that lasts."""
        require(self._is_quiet(), "nobody calls")
        self.called = True
        self.on = True

    @action
    def hang_up(self) -> None:
        """The call is over."""
        require(self.called, "somebody calls")
        self.called = False
        self.on = False

    @step_property
    def calls_begin_when_it_is_quiet(self, after: Self) -> Bool:
        return (after.called & ~self.called).implies(self._is_quiet())

    @final
    def quiet(self) -> Bool:
        return self._is_quiet()

    def _is_quiet(self) -> Bool:
        return ~self.on & ~self.called


def helpers_of(machine: type[Machine]) -> list[Mutant]:
    return [m for m in mutants_of(machine) if m.kind is Kind.HELPER]


def test_what_steps_and_properties_share_is_changed_in_each_way() -> None:
    assert [m.text for m in helpers_of(Votes)] == [
        "`_majority` is always so",
        "`_majority` is never so",
        "`_majority` says size of voted > 2, not size of voted ≥ 2",
        "`_votes` is one more",
        "`_votes` is one less",
    ]


def test_what_steps_alone_call_is_left_to_their_requirements() -> None:
    assert not [m for m in helpers_of(Votes) if "_may_decide" in m.text]


def test_both_the_step_and_the_property_change() -> None:
    original = define(Votes)
    for mutant in helpers_of(Votes):
        changed = mutant.made()
        assert [old.name for old, _ in changed_actions(original, changed) if old] == ["decide"]
        assert changed.properties[0] != original.properties[0]


def test_a_machine_is_as_before_after_its_mutants_were_made() -> None:
    before = vars(Votes)["_majority"], define(Votes).fingerprint(), _votes
    for mutant in helpers_of(Votes):
        mutant.made()
    assert (vars(Votes)["_majority"], define(Votes).fingerprint(), _votes) == before


def test_a_property_that_asks_the_step_s_helper_notices_nothing() -> None:
    findings = mutated(Votes, mutants=helpers_of(Votes)).findings
    assert {f.fate for f in findings} == {Fate.SURVIVED}
    assert len(mutated(Votes, mutants=helpers_of(Votes)).unexplained) == 5


def test_a_property_that_speaks_for_itself_notices_what_lets_more_happen() -> None:
    findings = mutated(CountedAgain, mutants=helpers_of(CountedAgain)).findings
    by_text = {f.mutant.text.removeprefix("`"): f for f in findings}
    for text in ("_majority` is always so", "_votes` is one more"):
        assert by_text[text].evaluation.by == ("a_majority_decides",)


def test_what_ends_a_run_is_compared_in_the_states_that_are_reachable() -> None:
    findings = mutated(Lamp, mutants=helpers_of(Lamp)).findings
    assert {f.mutant.text: f.evaluation.fate for f in findings} == {
        "`_is_quiet` is always so": Fate.SURVIVED,
        "`_is_quiet` is never so": Fate.CAUGHT,
        "`_is_quiet` does not mention: not on": Fate.REDUNDANT,
        "`_is_quiet` does not mention: not called": Fate.REDUNDANT,
    }


def test_a_helper_of_a_part_is_the_part_s() -> None:
    assert {m.part for m in helpers_of(Parliament)} == {"votes."}


def test_a_reason_explains_the_changes_that_it_names_or_all() -> None:
    report = mutated(Excused, mutants=helpers_of(Excused))
    explained = {f.mutant.text for f in report.explained}
    assert explained == {
        "`_majority` is always so",
        "`_majority` is never so",
        "`_votes` is one more",
        "`_votes` is one less",
    }
    assert len(report.unexplained) == 1


def test_a_reason_of_a_part_names_variables_as_the_part_does() -> None:
    excused = {m.text for m in helpers_of(Senate) if m.reasons}
    assert excused == {
        "`_majority` says size of votes.voted > 2, not size of votes.voted ≥ 2",
    }


def test_a_reason_about_a_change_that_is_not_made_matches_nothing() -> None:
    report = mutated(WronglyExcused)
    assert [reason.subject for reason in report.unmatched] == ["that `_may_decide` is one more"]


def test_a_reason_names_a_method() -> None:
    with pytest.raises(ReasonError, match="is given 3"):
        equivalent_helper(3, because="it is none")  # type: ignore[arg-type]


def test_without_the_class_helpers_stay_as_they_are() -> None:
    assert not [m for m in all_mutants(define(Votes)) if m.kind is Kind.HELPER]
