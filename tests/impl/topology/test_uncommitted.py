"""What a coordinator tries again and again since its last commit is kept once, and leads where it led."""

from __future__ import annotations

from stagewright.impl.runtime import Instance
from stagewright.impl.topology.planning import step_of
from stagewright.impl.topology.release import release
from stagewright.impl.topology.uncommitted import Uncommitted
from stagewright.machines.scylladb.tablets.tablet_migration import Progress
from stagewright.machines.scylladb.tablets.tablet_stages import Kind


def begun() -> Instance:
    """A tablet that waits for the barrier of its first stage."""
    tablet = Instance(release().tablets, {})
    tablet.fire(step_of("start", kind=Kind.migration))
    return tablet


def test_a_barrier_that_fails_for_long_is_a_handful_of_steps() -> None:
    at_commit, known = begun(), Uncommitted()
    now = at_commit.copy()
    known.replay(now)
    for _ in range(50):
        known.take(now, step_of("fail_barrier"))
        known.take(now, step_of("retry_barrier"))
    known.take(now, step_of("pass_barrier"))
    assert [s.action for s in known.steps] == ["fail_barrier", "retry_barrier", "pass_barrier"]
    again = at_commit.copy()
    known.replay(again)
    assert again.state == now.state
    assert again.read("barrier") is Progress.done


def test_steps_that_lead_further_are_kept_though_they_are_the_same() -> None:
    """Two replicas are excluded: the same action with other arguments, each from another state."""
    at_commit, known = begun(), Uncommitted()
    now = at_commit.copy()
    known.replay(now)
    for chosen in at_commit.choices("exclude")[:2]:
        known.take(now, chosen)
    assert len(known.steps) == 2
    again = at_commit.copy()
    known.replay(again)
    assert again.state == now.state
