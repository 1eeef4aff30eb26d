"""TLC and `check` find the same of one definition: as many states, the same verdicts, equally short runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pytest
from tests.checker.tla.tlc import Tlc
from tests.thorough import THOROUGH, some_of

from stagewright.checker.check import check, only
from stagewright.checker.limits import Limits
from stagewright.checker.tla import tla_module
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.machines import SHIPPED
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.definition import NO_DEADLOCK, Definition, PropertyKind
from stagewright.spec.loading import load
from stagewright.spec.nodes import TRUE
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report

MODELS = Path(__file__).resolve().parents[2] / "models"
TLC_STATES = 20_000 if THOROUGH else 5_000  # some seconds of work for TLC
IN_EVERY_RUN = (
    "tablet-migration",
    "fencing",
    "view-task",
    "index-permissions",
    "cdc-publication",
    "partition-states",
)
CALM = {"migrations": 1, "crashes": 0, "failures": 0, "writes": 0, "reads": 0}


@dataclass(frozen=True)
class Case:
    """A machine at a scope, and how many states it is known to have there (None: as `check` says)."""

    machine: str
    profile: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    budgets: Mapping[str, int] = field(default_factory=dict[str, int])
    known: int | None = None

    def __str__(self) -> str:
        return " ".join([self.machine, self.profile, *map(str, self.budgets.values())])

    @cached_property
    def definition(self) -> Definition:
        shipped = self.machine in SHIPPED
        return load(self.machine if shipped else f"{MODELS}/{self.machine}", self.profile, SHIPPED)

    @property
    def scope(self) -> Scope:
        return scope_of(self.definition, self.sizes, self.budgets)


HOLDING = [
    Case("tablet-migration", "seed", known=468),
    Case("tablet-migration", "scylla-2025.4", known=4_412),
    Case("tablet", "scylla-2025.4", budgets=CALM),
    Case("two_phase_commit.py:TwoPhaseCommit", known=288),
    Case("ewd840.py", "three", known=302),
    Case("tablet_barrier.py:TabletBarrier", sizes={"tablet": 1, "node": 3}),
    Case("lease.py"),
    Case("user_machine.py"),
    Case("public_examples/token_ring.py", known=64),
    Case("public_examples/coffee_can.py", known=44),
]


def violated(report: Report) -> dict[str, PropertyVerdict]:
    return {v.name: v for v in report.verdicts if v.outcome is Outcome.VIOLATED}


def steps_of(verdict: PropertyVerdict) -> int:
    assert verdict.run is not None
    return len(verdict.run.steps)


@pytest.mark.slow
@pytest.mark.parametrize("case", some_of(HOLDING, each=2), ids=str)
def test_a_machine_that_holds_has_the_same_states_in_tlc(case: Case, tlc: Tlc) -> None:
    report = check(case.definition, case.scope)
    assert report.outcome is Outcome.HOLDS
    assert case.known in (None, report.states)
    run = tlc.check(case.definition, case.scope)
    assert (run.distinct, run.broken) == (report.states, ())


def small_scope(definition: Definition, most: int = TLC_STATES) -> Scope:
    """Of the scopes with at most so many states, the one with most.

    They are those that exercise the machine, and the default one as much smaller as it has to be.
    """
    sizes = {scope: _states(definition, scope, most) for scope in exercising_scopes(definition)}
    for scope in _smaller_and_smaller(definition):
        sizes[scope] = _states(definition, scope, most)
        if sizes[scope]:
            break
    best = max(sizes, key=lambda scope: sizes[scope])
    assert sizes[best], f"{definition.name} has too many states for TLC, even at its smallest"
    return best


def _smaller_and_smaller(definition: Definition) -> Iterator[Scope]:
    """The default scope, with ever more budgets at nought, the last first, and then with ever fewer of its entities."""
    scope = scope_of(definition)
    yield scope
    budgets, sizes = dict(scope.budgets), dict(scope.sizes)
    for name in reversed(budgets):
        budgets[name] = 0
        yield scope_of(definition, sizes, budgets)
    for kind in reversed(sizes):
        while sizes[kind] > max(1, len(kind.member_names)):
            sizes[kind] -= 1
            yield scope_of(definition, sizes, budgets)


def _states(definition: Definition, scope: Scope, most: int) -> int:
    """How many states it has there; 0: more than so many."""
    found = check(definition, scope, limits=Limits(states=most), properties=[NO_DEADLOCK])
    return found.states if found.exhausted else 0


def safety(definition: Definition) -> list[str]:
    """What must hold of every state and step: a scope that is cut reaches less than the machine's own."""
    always = (PropertyKind.INVARIANT, PropertyKind.STEP, PropertyKind.ACCEPTS)
    return [p.name for p in definition.properties if p.kind in always] + [NO_DEADLOCK]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED if THOROUGH else IN_EVERY_RUN)
def test_every_shipped_machine_has_the_same_states_in_tlc(name: str, tlc: Tlc) -> None:
    definition = load(name, "", SHIPPED)
    scope = small_scope(definition)
    report = check(definition, scope, properties=safety(definition))
    assert report.outcome is Outcome.HOLDS
    run = tlc.check_safety(definition, scope)
    assert (run.distinct, run.broken) == (report.states, ())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("profile", "states", "broken"),
    [
        ("scylla-2026.2", 6_612, ()),
        ("seed", 3_680, ("only_replicas_hold_data", "only_replicas_have_storage")),
    ],
)
def test_the_tablet_machine_with_a_write_has_the_same_states_and_the_same_bug(
    profile: str, states: int, broken: tuple[str, ...], tlc: Tlc
) -> None:
    case = Case("tablet", profile, budgets={**CALM, "writes": 1})
    report = check(case.definition, case.scope)
    assert (report.states, tuple(violated(report))) == (states, broken)
    run = tlc.check_safety(case.definition, case.scope, "-continue")
    assert (run.distinct, sorted(run.broken)) == (states, sorted(broken))
    if broken:
        assert run.steps in {steps_of(verdict) for verdict in violated(report).values()}


def test_a_machine_that_waits_for_ever_does_so_in_tlc(tlc: Tlc) -> None:
    case = Case("tablet", "seed", budgets={**CALM, "crashes": 1})
    definition = only(case.definition, ["migrations_end"])
    assert set(violated(check(definition, case.scope))) == {"migrations_end"}
    assert tlc.check(definition, case.scope).broken == ("temporal",)


@pytest.mark.parametrize(
    ("machine", "name"),
    some_of(
        [
            ("broken.py:Migration", "reads_are_complete"),
            ("broken.py:Migration", "no_lag"),
            ("broken.py:Migration", "stages_go_up"),
            ("broken.py:Workers", "leader_works"),
            ("turnstile.py", "small"),
        ]
    ),
)
def test_a_broken_promise_is_found_in_as_few_steps(machine: str, name: str, tlc: Tlc) -> None:
    case = Case(machine)
    definition = only(_without_overflow(case.definition), [name])
    verdict = violated(check(definition, case.scope))[name]
    run = tlc.check(definition, case.scope)
    assert (run.broken, run.steps) == ((name,), steps_of(verdict))


def _without_overflow(definition: Definition) -> Definition:
    """The machine without what TLC would report before: a number out of bounds, or a deadlock."""
    calm = tuple(a for a in definition.actions if a.name != "hurry")
    return replace(definition, actions=calm, final=TRUE)


@pytest.mark.parametrize(
    ("machine", "broken", "none"),
    some_of(
        [
            ("stuck.py", "it_ends", "crashes"),
            ("public_examples/simple_allocator.py", "clients_will_obtain", ""),
            ("public_examples/simple_allocator.py", "often_satisfied", ""),
        ]
    ),
)
def test_what_is_not_fair_rescues_no_promise(
    machine: str, broken: str, none: str, tlc: Tlc
) -> None:
    for case in (Case(machine), Case(machine, budgets={none: 0} if none else {})):
        definition = replace(only(case.definition, [broken]), final=TRUE)
        assert set(violated(check(definition, case.scope))) == {broken}
        assert tlc.check(definition, case.scope).broken == ("temporal",)


@pytest.mark.parametrize("name", some_of([p.name for p in Case("crew.py").definition.properties]))
def test_fairness_that_is_shared_means_the_same_in_tlc(name: str, tlc: Tlc) -> None:
    case = Case("crew.py")
    definition = only(case.definition, [name])
    broken = set(violated(check(definition, case.scope)))
    assert broken == ({name} & {"all_is_planned"})
    assert tlc.check(definition, case.scope).broken == (("temporal",) if broken else ())


def test_who_wants_nothing_gives_back_what_it_holds(tlc: Tlc) -> None:
    case = Case("public_examples/simple_allocator.py")
    definition = only(case.definition, ["clients_will_return", "mutual_exclusion"])
    report = check(definition, case.scope)
    assert (report.outcome, report.states) == (Outcome.HOLDS, 400)
    run = tlc.check(definition, case.scope)
    assert (run.distinct, run.broken) == (400, ())


def test_where_only_a_budgeted_action_can_happen_it_is_a_deadlock(tlc: Tlc) -> None:
    for crashes in (0, 1):
        case = Case("stuck.py", budgets={"crashes": crashes})
        verdicts = violated(check(case.definition, case.scope))
        assert set(verdicts) == {"it_ends", "it_can_end", NO_DEADLOCK}
        run = tlc.check(replace(case.definition, properties=()), case.scope)
        assert (run.broken, run.steps) == (("NoDeadlock",), steps_of(verdicts[NO_DEADLOCK]))


def test_a_deadlock_is_found_in_as_few_steps(tlc: Tlc) -> None:
    case = Case("broken.py:Workers")
    calm = tuple(a for a in case.definition.actions if a.name != "hurry")
    definition = replace(case.definition, actions=calm, properties=())
    verdict = violated(check(definition, case.scope))[NO_DEADLOCK]
    run = tlc.check(definition, case.scope)
    assert (run.broken, run.steps) == (("NoDeadlock",), steps_of(verdict))


def test_a_number_out_of_bounds_is_found_in_the_state_that_it_leads_to(tlc: Tlc) -> None:
    case = Case("broken.py:Workers")
    definition = replace(case.definition, properties=())
    verdict = violated(check(definition, case.scope))[IN_BOUNDS]
    run = tlc.check(definition, case.scope)
    assert (run.broken, run.steps) == (("TypeOK",), steps_of(verdict) + 1)


def test_a_machine_without_actions_is_stuck_at_once(tlc: Tlc) -> None:
    case = Case("two_phase_commit.py:TwoPhaseCommit", sizes={"manager": 2})
    nothing = replace(case.definition, actions=(), properties=())
    run = tlc.check(nothing, case.scope)
    assert (run.distinct, run.broken) == (0, ("NoDeadlock",))


def test_goals_that_can_still_be_reached_are_named_but_not_claimed() -> None:
    definition = Case("tablet-migration").definition
    (goal,) = [p.name for p in definition.properties if p.kind is PropertyKind.REACHABLE]
    written = tla_module(definition, scope_of(definition))
    assert f'\n{goal} == stage = "none"\n' in written.module
    assert "TLA+ cannot say so" in written.module
    assert goal not in written.config
