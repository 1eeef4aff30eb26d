"""What a ScyllaDB log at DEBUG says of view building tasks."""

from pathlib import Path

from tests.traces.databases.scylladb.scylla_evaluated import interpret, line, recorded, violations

from stagewright.traces.databases.scylladb.lines.views import MACHINE, PROCESSED
from stagewright.traces.databases.scylladb.log import log
from stagewright.traces.readers.protocol import Part, Tally

ONE, TWO, THREE = (f"{n}c7e8d10-9d0e-11ef-a7c3-44b5e0f19a21" for n in (1, 2, 3))
BASE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
HOST = "9b1f3f0e-1111-4c5e-9a5e-0d6a2f6f0001"


def of_coordinator(message: str, second: float = 1, host: str = "h") -> str:
    return line(message, second, host, "view_building_coordinator", "DEBUG")


def of_worker(message: str, second: float = 1, host: str = "h") -> str:
    return line(message, second, host, "view_building_worker", "DEBUG")


def attaching(*tasks: str, second: float = 1) -> str:
    return of_coordinator(
        f"Attaching to started tasks [{', '.join(tasks)}] on replica {HOST}:0", second
    )


def starting(*tasks: str, host: str = "h") -> str:
    tasks_ = ", ".join(tasks)
    return of_worker(
        f"Starting view building batch for tasks [{tasks_}]. Task type BUILD_RANGE", 1, host
    )


def finished(*tasks: str, host: str = "h") -> str:
    return of_worker(f"Batch with tasks [{', '.join(tasks)}] finished", 1, host)


def removing(task: str, second: float = 1) -> str:
    return of_coordinator(f"Removing finished task with ID: {task}", second)


def commit(reason: str = "Tablet migration") -> str:
    return line(f"updating topology state: {reason}")


RACE = line("race while changing state: Tablet migration. Retrying")
LEADER = line("start topology coordinator fiber", 0)


def test_two_tasks_that_are_built_are_in_order() -> None:
    lines = [attaching(ONE, TWO), starting(ONE, TWO), finished(ONE, TWO), removing(ONE)]
    found = interpret(lines)
    assert violations(found) == []
    assert [seen for entity, seen in recorded(found, MACHINE) if entity == ONE] == [
        {"call": "sent"},
        {"work": "executing"},
        {"work": "done"},
        {"life": "finished"},
    ]
    assert [seen for entity, seen in recorded(found, MACHINE) if entity == TWO][-1] == {
        "work": "done"
    }


def test_a_failed_call_is_made_again() -> None:
    failed = of_coordinator(
        f"Work on tasks [{ONE}] on replica {HOST}:0, failed with error: std::runtime_error (x)"
    )
    again = [attaching(ONE), failed, attaching(ONE), starting(ONE), finished(ONE), removing(ONE)]
    assert violations(interpret(again)) == []


def test_a_task_that_was_removed_is_not_worked_on_again() -> None:
    lines = [attaching(ONE), removing(ONE), attaching(ONE)]
    assert violations(interpret(lines)) == [(MACHINE, ONE, 3)]


def test_an_aborted_task_is_not_sent_and_its_copy_has_an_id_of_its_own() -> None:
    abort = of_coordinator(f"Aborting task {ONE}")
    sent = [LEADER, abort, commit(), commit(), attaching(ONE)]
    assert violations(interpret(sent)) == [(MACHINE, ONE, 5)]
    again = of_coordinator(f"Aborted task {ONE} was recreated with new id {TWO}")
    copied = [LEADER, abort, commit(), again, commit(), attaching(TWO)]
    found = interpret(copied)
    assert violations(found) == []
    assert recorded(found, MACHINE) == [
        (ONE, {"life": "aborted"}),
        (TWO, {"life": "normal"}),
        (ONE, {"life": "dropped"}),
        (TWO, {"call": "sent"}),
    ]
    assert violations(interpret([*copied, attaching(ONE)])) == [(MACHINE, ONE, 7)]


def test_a_task_is_sent_while_the_commit_that_aborts_it_is_on_its_way() -> None:
    """The line is written before: until the coordinator goes on, nothing says that it knows of it."""
    abort = of_coordinator(f"Aborting task {ONE}")
    sent = [LEADER, abort, commit(), attaching(ONE)]
    assert violations(interpret(sent)) == []
    again = of_coordinator(f"Aborted task {ONE} was recreated with new id {TWO}")
    sent = [LEADER, abort, commit(), again, commit(), attaching(TWO), attaching(ONE)]
    assert violations(interpret(sent)) == [(MACHINE, ONE, 7)]


def test_an_abort_whose_commit_lost_a_race_did_not_happen() -> None:
    abort = of_coordinator(f"Aborting task {ONE}")
    found = interpret([LEADER, abort, commit(), RACE, attaching(ONE)])
    assert recorded(found, MACHINE) == [(ONE, {"call": "sent"})]
    assert "1 changes were cancelled by a race" in found.notes


def test_a_split_drops_a_task_and_makes_two() -> None:
    split = of_coordinator(f"Task {ONE} was split into task {TWO} and task {THREE}")
    found = interpret([LEADER, split, commit("Finished tablet resize finalization")])
    assert recorded(found, MACHINE) == [
        (TWO, {"life": "normal"}),
        (THREE, {"life": "normal"}),
        (ONE, {"life": "dropped"}),
    ]


def test_a_removal_that_lost_a_race_is_made_again() -> None:
    race = line(
        "view_building_coordinator::finished_task_gc_fiber got group0_concurrent_modification",
        2.01,
        logger="view_building_coordinator",
    )
    lines = [attaching(ONE), removing(TWO, 1), removing(ONE, 2), race, removing(ONE, 3)]
    found = interpret(lines)
    assert [line_ for _, e in found.events for line_ in [e.line] if e.entity == ONE] == [1, 5]
    assert [e.line for _, e in found.events if e.entity == TWO] == [2]
    assert violations(found) == []


def test_an_abort_by_hand_counts_where_its_own_commit_does() -> None:
    abort = of_coordinator(f"Aborting task {ONE}", host="other")
    moves = line(f"Moving tablet {BASE}:3 from {HOST}:0 to {HOST}:1", 1, "other")
    race = line("transit_tablet(): concurrent modification, retrying", 1, "other", level="DEBUG")
    lost = interpret([LEADER, commit(), attaching(ONE)], [abort, moves, race])
    assert recorded(lost, MACHINE) == [(ONE, {"call": "sent"})]
    made = interpret([LEADER, commit()], [abort, moves])
    assert recorded(made, MACHINE) == [(ONE, {"life": "aborted"})]


def test_what_several_nodes_tell_of_a_task_is_checked_apart() -> None:
    """The worker's clock is ahead: by the times it begins before it is called."""
    found = interpret([attaching(ONE, second=5), removing(ONE, 9)], [starting(ONE, host="w")])
    assert violations(found) == []
    assert {entity for entity, _ in recorded(found, MACHINE)} == {ONE, f"{ONE} at h[7]"}
    assert any("logged by several nodes" in note for note in found.notes)


def test_a_task_of_a_staging_sstable_is_made_unless_a_race_is_lost() -> None:
    made = of_worker(
        f"Creating process staging task: {{type: PROCESS_STAGING}} with ID: {ONE} for replica: {HOST}:0"
    )
    race = of_worker(
        "Got group0_concurrent_modification while creating staging sstable tasks", 1.01
    )
    assert recorded(interpret([made]), MACHINE) == [(ONE, {"life": "normal"})]
    assert recorded(interpret([made, race]), MACHINE) == []


def test_a_line_of_a_task_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scylla.log"
    path.write_text(f"{removing(ONE)}\n{removing(ONE)[:-9]}\n")
    tally = Tally()
    found = log.extract(Part(0, str(path), "scylla-log", 0, path.stat().st_size), tally)
    assert (len(found), tally.unparsed) == (1, 1)
    assert tally.reasons[0][0] == 2


def selected(base: str, host: str = "h", second: float = 1) -> str:
    return of_coordinator(f"Selected new base table to process: {base}", second, host)


def done(base: str) -> str:
    return of_coordinator(f"Finished processing base table {base}")


def test_one_base_table_is_processed_at_a_time() -> None:
    assert violations(interpret([selected(ONE), done(ONE), selected(TWO), done(TWO)])) == []
    again = [selected(ONE), done(ONE), selected(TWO), done(TWO), selected(ONE)]
    assert violations(interpret(again)) == []
    assert violations(interpret([selected(ONE), selected(TWO)])) == [(PROCESSED, ONE, 2)]


def test_a_selection_that_may_not_have_been_committed_binds_nobody() -> None:
    race = of_coordinator("view building coordinator got group0_concurrent_modification")
    assert violations(interpret([selected(ONE), race, selected(TWO)])) == []


def test_another_coordinator_may_have_finished_what_the_last_one_began() -> None:
    leads = line("start topology coordinator fiber", 0, "a")
    follows = line("start topology coordinator fiber", 3, "b")
    found = interpret([leads, selected(ONE, "a", 1)], [follows, selected(TWO, "b", 4)])
    assert violations(found) == []
    assert len(recorded(found, PROCESSED)) == 2
