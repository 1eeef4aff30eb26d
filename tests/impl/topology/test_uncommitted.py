"""What a coordinator tries again and again since its last commit is kept once, and leads where it led."""

from __future__ import annotations

import pytest

from stagewright.impl.runtime import Instance
from stagewright.impl.topology.planning import step_of
from stagewright.impl.topology.release import release
from stagewright.impl.topology.uncommitted import Uncommitted
from stagewright.machines.scylladb.tablets.tablet_migration import Progress
from stagewright.machines.scylladb.tablets.tablet_stages import Kind
from stagewright.spec.errors import RefusedError


def begun() -> Instance:
    """A tablet that waits for the barrier of its first stage."""
    tablet = Instance(release().tablets, {})
    tablet.fire(step_of("start", kind=Kind.migration))
    return tablet


def known_of(committed: Instance) -> Uncommitted:
    """No step since."""
    known = Uncommitted()
    known.resume((0,), committed.copy)
    return known


def test_a_barrier_that_fails_for_long_is_a_handful_of_steps() -> None:
    at_commit = begun()
    known = known_of(at_commit)
    for _ in range(50):
        known.take(step_of("fail_barrier"))
        known.take(step_of("retry_barrier"))
    known.take(step_of("pass_barrier"))
    assert [s.action for s in known.steps] == ["fail_barrier", "retry_barrier", "pass_barrier"]
    now = known.now
    known.resume((1,), at_commit.copy)
    assert known.now is not now
    assert known.now.state == now.state
    assert known.now.read("barrier") is Progress.done


def test_steps_that_lead_further_are_kept_though_they_are_the_same() -> None:
    """Two replicas are excluded: the same action with other arguments, each from another state."""
    at_commit = begun()
    known = known_of(at_commit)
    for chosen in at_commit.choices("exclude")[:2]:
        known.take(chosen)
    assert len(known.steps) == 2
    now = known.now
    known.resume((1,), at_commit.copy)
    assert known.now.state == now.state


def test_the_machine_of_before_goes_on_while_the_same_is_committed() -> None:
    known = known_of(begun())
    known.take(step_of("fail_barrier"))
    now = known.now
    known.resume((0,), begun)
    assert known.now is now


def test_what_is_enabled_is_asked_anew_after_each_step() -> None:
    known = known_of(begun())
    assert known.can("pass_barrier")
    assert known.first(["retry_barrier"]) is None
    known.take(step_of("fail_barrier"))
    assert not known.can("pass_barrier")
    assert known.first(["retry_barrier", "pass_barrier"]) == step_of("retry_barrier")


def test_steps_that_what_is_committed_does_not_allow_are_refused_each_time() -> None:
    known = known_of(begun())
    known.take(step_of("fail_barrier"))
    for _ in range(2):
        with pytest.raises(RefusedError):
            known.resume((1,), lambda: Instance(release().tablets, {}))
