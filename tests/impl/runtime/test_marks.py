"""What a running instance commits, forgets and does without, as its definition says."""

from random import Random

import pytest

from stagewright.impl.runtime import Instance, Program, Record
from stagewright.machines import SHIPPED
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR as TOPOLOGY
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.views.view_task import COORDINATOR as VIEWS, ViewTask
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER
from stagewright.spec import Actor, Machine, define
from stagewright.spec.definition import Kept
from stagewright.spec.errors import InputError
from stagewright.spec.loading import find
from stagewright.spec.scope import without_budgets


def walked(program: Program, running: Instance, steps: int, chance: Random) -> None:
    """Steps at random, faults last: they would undo what the others do."""
    for _ in range(steps):
        listed = running.enabled()
        enabled = [s for s in listed if program.actions[s.action].budget is None] or listed
        if not enabled:
            return
        running.fire(chance.choice(enabled))


@pytest.mark.parametrize(
    ("machine", "by_hand", "actor", "beside"),
    [
        (TabletMigration, "fail_over", COORDINATOR, set()),
        (TopologyControl, "fail_over", TOPOLOGY, set()),
        (BackfillJob, "fail_over", MASTER, set()),
        (ViewTask, "change_leader", VIEWS, {"late"}),  # its calls under way are of an older term
    ],
)
def test_forgetting_is_the_change_of_leader_that_is_written_by_hand(
    machine: type[Machine], by_hand: str, actor: Actor, beside: set[str]
) -> None:
    program, chance = Program(define(machine)), Random(machine.__name__)
    starts = Program(define(machine), without_budgets(define(machine))).starts
    forgotten = 0
    for _ in range(40):
        start = starts.decode(chance.choice(starts.initial))
        running = Instance(program, start)
        walked(program, running, chance.randrange(30), chance)
        state = running.state
        one, other = Instance(program, state), Instance(program, state)
        if not one.can(by_hand):
            continue
        one.fire(by_hand)
        other.forget(actor)
        forgotten += other.state != state
        differ = {n for n in state if one.state[n] != other.state[n]}
        assert differ <= beside
    assert forgotten


def test_only_what_is_committed_goes_on_after_a_restart() -> None:
    program = Program(define(TabletMigration))
    log: list[Record] = []
    running = Instance(program, name="tablet7", log=log.append)
    running.fire(TabletMigration.start, kind=Kind.migration)
    running.fire(TabletMigration.pass_barrier)
    assert set(running.committed()) == {"stage", "kind", "session", "excluded", "unwanted"}
    assert [dict(r.steps[0].committed) != {} for r in log] == [True, False]
    again = Instance(program, running.committed())
    assert again.control is Stage.allow_write_both_read_old
    assert not again.can(TabletMigration.write_both)
    running.forget(COORDINATOR)
    assert again.state == running.state
    with pytest.raises(InputError, match="nothing that is volatile, of operator"):
        running.forget(OPERATOR)


def test_history_is_not_there_when_a_machine_runs() -> None:
    running = Instance(Program(define(ViewTask)), {"worked": True})
    assert "worked" not in running.state
    for step in ("create", "send"):
        running.fire(step)
    assert "worked" not in running.state


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_volatile_is_somebodys(name: str) -> None:
    for variable in define(find(name, SHIPPED)).variables:
        owned = variable.kept in (Kept.VOLATILE, Kept.OBSERVED)
        assert owned == (variable.actor is not None)
