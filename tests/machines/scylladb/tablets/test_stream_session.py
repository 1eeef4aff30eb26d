"""A stream session ends, and its end is reported, whatever is lost."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken, checked

from stagewright.checker.prove import prove
from stagewright.machines.scylladb.tablets.stream_session import StreamSession
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome


def test_every_promise_is_kept_and_every_action_happens() -> None:
    report = checked(StreamSession)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (1_278, 2_810)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


@pytest.mark.parametrize(
    "budgets",
    [{"losses": 3, "restarts": 0, "failures": 0}, {"losses": 0, "restarts": 3, "failures": 0}],
    ids=str,
)
def test_it_keeps_them_with_more_faults_of_one_kind(budgets: dict[str, int | None]) -> None:
    assert broken(checked(StreamSession, budgets=budgets)) == set()


def test_without_faults_the_first_session_succeeds() -> None:
    report = checked(StreamSession, budgets={"losses": 0, "restarts": 0, "failures": 0})
    assert broken(report) == set()
    assert report.coverage is not None
    unused = {"give_up_idle_session", "receive_failure", "hear_of_restart", "send_failure"}
    assert unused <= set(report.coverage.never_fired)


def test_every_promise_about_states_is_proved() -> None:
    definition = define(StreamSession)
    report = prove(definition, scope_of(definition), max_k=1, depth=1)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    assert left == {"assigned values stay in bounds"}  # plans are as many as the model has
