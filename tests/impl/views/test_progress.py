"""How far a view is built, and how long that will take, as nodes say it together."""

from __future__ import annotations

from stagewright.impl.node.messages.tables import ViewStatus
from stagewright.impl.processes.builds import Build, builds
from stagewright.impl.views.building.progress import remaining_ms


def status(tasks: int, worked: float = 0.0, said: str = "STARTED", age_ms: int = 0) -> ViewStatus:
    return ViewStatus("ks.v", "ks.t", "by value", said, tasks, 12, worked, age_ms)


def test_what_workers_have_done_of_their_tasks_counts() -> None:
    said = [(status(4, 0.5, age_ms=9_000),), (status(4, 1.0, age_ms=9_000),), (status(4),)]
    [build] = builds(said)
    assert build.done == (12 - 4 + 1.5) / 12
    assert build.seconds_left is not None
    assert round(build.seconds_left, 3) == round(9 * 2.5 / 9.5, 3)


def test_who_lags_behind_does_not_count() -> None:
    assert builds([(status(4),), (status(0, said="SUCCESS"),)]) == [
        Build("ks.v", "ks.t", "by value", "SUCCESS", 1.0, 0, 0.0, 12)
    ]


def test_of_what_has_not_begun_there_is_no_estimate() -> None:
    [build] = builds([(status(12, said="CREATED", age_ms=500),)])
    assert (build.done, build.seconds_left) == (0.0, None)
    assert remaining_ms(0.0, 500) is None


def test_more_than_the_tasks_that_are_left_is_not_done() -> None:
    [build] = builds([(status(1, 0.9),), (status(1, 0.9),)])  # one of them has been given up
    assert build.done == 1.0
