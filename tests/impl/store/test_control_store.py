"""What is committed survives; what is volatile does not; what belongs to another definition is refused."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.impl.runtime import Program
from stagewright.impl.store import ControlStore, StoreError, durable
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.spec import RefusedError, define, scope_of
from stagewright.spec.definition import Kept
from stagewright.spec.scope import Scope
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

DEFINITION = define(TabletMigration, "scylla-2026.2")
SCOPE = scope_of(DEFINITION, budgets={"failures": None, "failovers": None})
PROGRAM = Program(DEFINITION, SCOPE)
VOLATILE = ("barrier", "operation")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "group0.sqlite"


def opened(path: Path, scope: Scope = SCOPE) -> ControlStore:
    return ControlStore(path, DEFINITION, scope, synchronous=False)


def test_committed_steps_survive_and_volatile_variables_start_anew(path: Path) -> None:
    with opened(path) as store:
        tablet = durable(store, PROGRAM, "tablet3")
        tablet.fire("start", kind=Kind.rebuild_v2)
        tablet.fire("exclude", role=Role.staying)
        tablet.fire("pass_barrier")
        before = tablet.state
    with opened(path) as store:
        again = durable(store, PROGRAM, "tablet3").state
    assert before["barrier"] is Progress.done
    assert again["barrier"] is Progress.none
    assert again["excluded"] == frozenset({Role.staying})
    assert {n: v for n, v in again.items() if n not in VOLATILE} == {
        n: v for n, v in before.items() if n not in VOLATILE
    }


def test_steps_on_volatile_variables_alone_are_not_written(path: Path) -> None:
    with opened(path) as store:
        tablet = durable(store, PROGRAM, "tablet0")
        tablet.fire("start", kind=Kind.migration)
        tablet.fire("pass_barrier")
        tablet.fire("write_both")
        actions = [(e.position, e.sequence, e.action) for e in store.entries()]
    assert actions == [(1, 0, None), (2, 1, "start"), (3, 2, "write_both")]


def test_log_carries_what_is_attached_and_notes_about_the_system(path: Path) -> None:
    def attach(step: Step | None, after: State) -> dict[str, object]:
        return {
            "after": step and step.action,
            "stage": after["stage"] is Stage.allow_write_both_read_old,
        }

    with opened(path) as store:
        tablet = durable(store, PROGRAM, "tablet0", attach=attach)
        store.note({"fence": 4})
        tablet.fire("start", kind=Kind.migration)
        last, note = store.entries(after=1)[::-1]
        assert (note.entity, note.attached) == ("", {"fence": 4})
        assert (last.entity, last.attached) == ("tablet0", {"after": "start", "stage": True})
        assert store.entities() == ["tablet0"]


def test_refused_step_is_not_written(path: Path) -> None:
    with opened(path) as store:
        tablet = durable(store, PROGRAM, "tablet0")
        with pytest.raises(RefusedError):
            tablet.fire("write_both")
        assert len(store.entries()) == 1


def test_step_that_cannot_be_written_does_not_happen(path: Path) -> None:
    store = opened(path)
    tablet = durable(store, PROGRAM, "tablet0")
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        tablet.fire("start", kind=Kind.migration)
    assert tablet.control is Stage.none


def test_deposed_coordinator_can_take_no_step(path: Path) -> None:
    with opened(path) as store:
        old = durable(store, PROGRAM, "tablet0")
        old.fire("start", kind=Kind.migration)
        store.new_term()
        new = durable(store, PROGRAM, "tablet0")
        with pytest.raises(StoreError, match="term 0 was deposed"):
            old.fire("pass_barrier")
        new.fire("pass_barrier")
        new.fire("write_both")
        assert new.control is Stage.write_both_read_old
        assert old.control is Stage.allow_write_both_read_old


def test_budgets_are_part_of_what_is_committed(path: Path) -> None:
    scope = scope_of(DEFINITION, budgets={"failures": 1})
    program = Program(DEFINITION, scope)
    with opened(path, scope) as store:
        tablet = durable(store, program, "tablet0")
        tablet.fire("start", kind=Kind.migration)
        tablet.fire("fail_barrier")
    with opened(path, scope) as store:
        tablet = durable(store, program, "tablet0")
        assert tablet.refusals("fail_barrier") == ("failures left",)


def test_store_of_another_definition_is_refused(path: Path) -> None:
    opened(path).close()
    other = define(TabletMigration, "seed")
    with pytest.raises(StoreError) as caught:
        ControlStore(path, other, scope_of(other))
    assert "TabletMigration (scylla-2026.2)" in str(caught.value)
    assert "not of TabletMigration (seed)" in str(caught.value)
    assert "use the definition that wrote it" in str(caught.value)


def test_other_choice_of_volatile_variables_is_refused(path: Path) -> None:
    opened(path).close()
    all_committed = replace(
        DEFINITION, variables=tuple(replace(v, kept=Kept.COMMITTED) for v in DEFINITION.variables)
    )
    with pytest.raises(StoreError, match="volatile barrier"):
        ControlStore(path, all_committed, SCOPE)


def test_file_that_is_no_store_is_refused(path: Path) -> None:
    path.write_text("not a database, but long enough to be looked at " * 100)
    with pytest.raises(StoreError, match="is not a store"):
        opened(path)


def test_damaged_state_is_refused(path: Path) -> None:
    with opened(path) as store:
        durable(store, PROGRAM, "tablet0")
    with sqlite3.connect(path) as damaged:
        damaged.execute("UPDATE log SET observed = replace(observed, 'none', 'nowhere')")
    damaged.close()
    with opened(path) as store, pytest.raises(StoreError, match="the state of tablet0 is damaged"):
        store.load("tablet0")
