"""The story of a run: who did what, and only what changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagewright.checker.counterexample.replayed import check_run
from stagewright.checker.counterexample.scopes import scope_of_run
from stagewright.checker.counterexample.story import first_sentence, story_of
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.scope import scope_of
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step


def test_a_step_reports_its_actor_its_sentence_and_its_changes(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    first, *_, last = story_of(migration, incomplete).steps
    assert first.actor == "topology coordinator"
    assert first.title == "write both"
    assert [str(c) for c in first.changes] == ["stage: rest → write_both"]
    assert last.actor == "node1"
    assert last.title == "write"
    assert last.sentence.startswith("Coordinator node1 acknowledges a write;")
    assert [str(c) for c in last.changes] == ["complete: {new, old} → {old}"]


def test_without_an_actor_the_first_entity_acts_on_the_others(
    workers: Definition, done: PropertyVerdict
) -> None:
    step = story_of(workers, done).steps[0]
    assert (step.actor, step.lanes) == ("node0", ("node0", "task0"))
    assert step.title == "claim (task0)"


def test_without_actor_and_entity_the_machine_acts(workers: Definition) -> None:
    calm = replace(workers.action("hurry"), requirements=())
    definition = replace(workers, actions=(calm,))
    states = (FrozenMap({"patience": 0}), FrozenMap({"patience": 2}))
    run = Run(states, (Step("hurry"),))
    verdict = PropertyVerdict("unknown", Outcome.VIOLATED, "search", run=run)
    assert story_of(definition, verdict).steps[0].actor == "Workers"


def test_named_actors_come_before_entities_and_entities_by_number(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert story_of(migration, incomplete).lanes == ("topology coordinator", "node0", "node1")


def test_equal_values_of_all_keys_are_reported_once(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert story_of(migration, incomplete).start == (
        ("stage", "rest"),
        ("learned[*]", "rest"),
        ("complete", "{new, old}"),
    )


def test_the_step_that_closes_a_loop_leads_back(
    migration: Definition, lasso: PropertyVerdict
) -> None:
    steps = story_of(migration, lasso).steps
    assert [(s.number, s.forever, s.closing) for s in steps] == [
        (1, False, False),
        (2, False, False),
        (3, True, True),
    ]
    assert steps[-1].changes == ()


def test_a_failed_induction_says_that_its_start_may_be_out_of_reach(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert incomplete.run is not None
    tail = Run(incomplete.run.states[-2:], incomplete.run.steps[-1:])
    story = story_of(migration, replace(incomplete, outcome=Outcome.UNDECIDED, run=tail))
    assert story.headline == "Migration: the induction for reads_are_complete fails after 1 step"
    assert story.opening == "suppose"
    assert "perhaps no run from an initial state ever reaches state 0" in story.breach.caveat


def test_a_verdict_without_a_run_is_refused_with_its_note(migration: Definition) -> None:
    proved = PropertyVerdict("no_lag", Outcome.HOLDS, "search", note="holds in all 45 states")
    with pytest.raises(InputError, match=r"no_lag of Migration has no run.*all 45 states"):
        story_of(migration, proved)


def test_the_scope_is_read_off_the_keys_of_the_maps(
    workers: Definition, done: PropertyVerdict
) -> None:
    assert done.run is not None
    assert str(scope_of_run(workers, done.run)) == "Task=2, Node=2, crashes=1"


def test_first_sentence_ends_at_the_full_stop() -> None:
    assert first_sentence("It happens\nnow. Later it ends.\n\nMore.") == "It happens now."
    assert first_sentence("version 1.2 is read") == "version 1.2 is read"


def test_the_runs_that_are_found_can_be_taken_again(
    all_cases: list[tuple[Definition, PropertyVerdict]],
) -> None:
    for definition, verdict in all_cases:
        assert verdict.run is not None
        check_run(definition, scope_of_run(definition, verdict.run), verdict.run)


def test_a_step_that_the_definition_refuses_is_named(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    run = incomplete.run
    assert run is not None
    swapped = Run(run.states, (run.steps[1], *run.steps[1:]))
    with pytest.raises(InputError, match="step 1 is no step of Migration: `read_new`"):
        check_run(migration, scope_of(migration), swapped)


def test_a_step_that_leads_elsewhere_is_reported_with_both_values(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    run = incomplete.run
    assert run is not None
    elsewhere = Run((*run.states[:-1], run.states[-2]), run.steps)
    with pytest.raises(
        InputError, match=r"step 4, write\(node1\), does not lead to state 4 .*complete"
    ):
        check_run(migration, scope_of(migration), elsewhere)
