"""What an instance says: refusals by name, wrong use with a mend, a log that can undo a step."""

import pytest

from stagewright.impl.runtime import Instance, Place, Program, Record, instance
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.spec import RefusedError, define, scope_of
from stagewright.spec.errors import InputError
from stagewright.spec.values import Value
from stagewright.spec.verdict import Step

DEFINITION = define(TabletMigration, "scylla-2026.2")
PROGRAM = Program(DEFINITION, scope_of(DEFINITION, budgets={"failures": 0, "failovers": None}))


@pytest.fixture
def migrating() -> Instance:
    running = Instance(PROGRAM)
    running.fire("start", kind=Kind.migration)
    return running


def test_illegal_step_names_the_requirement_and_what_is_enabled(migrating: Instance) -> None:
    with pytest.raises(RefusedError) as caught:
        migrating.fire("write_both")
    assert caught.value.requirements == ("barrier done",)
    assert (
        "`write_both` cannot happen now (`stage` is `allow_write_both_read_old`); unmet: barrier done"
        in str(caught.value)
    )
    assert "enabled now: pass_barrier, fail_over, exclude(leaving)" in str(caught.value)


def test_legal_steps_lead_on(migrating: Instance) -> None:
    migrating.fire("pass_barrier")
    migrating.fire(Step("write_both"))
    state = migrating.state
    assert state["stage"] is migrating.control is Stage.write_both_read_old
    assert state["session"] is True
    assert state["barrier"] is Progress.none


def test_every_false_requirement_is_named(migrating: Instance) -> None:
    assert migrating.refusals("begin_cleanup") == ("stage is use_new", "barrier done")
    assert migrating.refusals("exclude", role=Role.leaving) == ()


def test_step_without_budget_is_refused_by_its_budget(migrating: Instance) -> None:
    with pytest.raises(RefusedError) as caught:
        migrating.fire("fail_barrier")
    assert caught.value.requirements == ("failures left",)
    assert not migrating.can("fail_barrier")


def test_step_that_no_state_enables_is_refused_by_name() -> None:
    running = Instance(PROGRAM)
    assert running.refusals("start", kind=Kind.repair) == ("repair has stages of its own",)
    with pytest.raises(RefusedError):
        running.fire("start", kind=Kind.repair)


@pytest.mark.parametrize(
    ("use", "problem", "mend"),
    [
        (lambda i: i.fire("write_bot"), "has no action `write_bot`", "did you mean `write_both`?"),
        (lambda i: i.fire("start"), "`start`: wrong arguments", "start takes kind"),
        (lambda i: i.can("start", kind=Role.leaving), "kind is not one of Kind", "migration"),
        (lambda i: i.add(Node("a")), "has no Node", "its entities: none"),
        (lambda i: i.refusals("pass_barrier", now=1), "wrong arguments", "takes no arguments"),
    ],
)
def test_wrong_use_is_reported(use: object, problem: str, mend: str, migrating: Instance) -> None:
    assert callable(use)
    with pytest.raises(InputError) as caught:
        use(migrating)
    assert problem in str(caught.value)
    assert mend in str(caught.value)


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"stag": Stage.none}, "stag: there is no such variable"),
        ({"stage": Kind.migration}, "stage: migration is not one of Stage"),
        ({"excluded": frozenset({Stage.none})}, "excluded: none is not one of Role"),
        ({"session": 1}, "session: 1 is not one of bool"),
    ],
)
def test_state_of_another_shape_is_refused(state: dict[str, Value], problem: str) -> None:
    with pytest.raises(InputError, match="not a state of TabletMigration") as caught:
        instance(DEFINITION, initial=state)
    assert problem in str(caught.value)


def test_control_variable_can_be_named_and_must_exist() -> None:
    running = instance(DEFINITION, PROGRAM.scope, control="barrier")
    running.fire("start", kind=Kind.migration)
    running.fire("pass_barrier")
    assert running.state["barrier"] == running.control == Progress.done
    with pytest.raises(InputError, match="no enum variable `stag`"):
        instance(DEFINITION, PROGRAM.scope, control="stag")


def test_log_takes_each_step_that_counts_and_can_undo_it() -> None:
    seen: list[tuple[str, object]] = []

    def log(record: Record) -> None:
        (taken,) = record.steps
        seen.append((taken.step.label, taken.mutations.get(Place("stage"))))
        if taken.step.action == "pass_barrier":
            raise OSError("the disk is full")

    running = Instance(PROGRAM, log=log)
    running.fire("start", kind=Kind.migration)
    before = running.state
    with pytest.raises(OSError, match="disk is full"):
        running.fire("pass_barrier")
    assert running.state == before
    assert running.can("pass_barrier")
    assert seen == [("start(migration)", Stage.allow_write_both_read_old), ("pass_barrier", None)]


def test_instances_of_one_program_are_independent(migrating: Instance) -> None:
    other = Instance(PROGRAM)
    assert other.control is Stage.none
    assert migrating.control is Stage.allow_write_both_read_old
