"""Commands: steps of several instances in order, all or none, with one record and the name of what refused."""

import pytest

from stagewright.impl.runtime import Instance, Place, Program, Record, command
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.views.view_task import Life, ViewTask
from stagewright.spec import RefusedError, define
from stagewright.spec.errors import InputError
from stagewright.spec.values import State

TABLET = Program(define(TabletMigration))
TASK = Program(define(ViewTask))


@pytest.fixture
def started() -> tuple[Instance, Instance, Instance]:
    tablet = Instance(TABLET, name="tablet 7")
    old, new = Instance(TASK, name="task 1"), Instance(TASK, name="task 2")
    tablet.fire("start", kind=Kind.migration)
    old.fire("create")
    return tablet, old, new


def states(*running: Instance) -> list[State]:
    return [one.state for one in running]


def test_all_steps_count_with_one_record(started: tuple[Instance, Instance, Instance]) -> None:
    tablet, old, new = started
    log: list[Record] = []
    command(
        tablet.call("pass_barrier"),
        tablet.call("write_both"),
        old.call("abort"),
        new.call("create"),
        log=log.append,
    )
    (record,) = log
    said = [(t.instance.name, t.step.label, dict(t.committed)) for t in record.steps]
    assert said == [
        ("tablet 7", "pass_barrier", {}),
        (
            "tablet 7",
            "write_both",
            {Place("stage"): Stage.write_both_read_old, Place("session"): True},
        ),
        ("task 1", "abort", {Place("life"): Life.aborted}),
        ("task 2", "create", {Place("life"): Life.normal}),
    ]
    assert tablet.control is Stage.write_both_read_old


def test_nothing_counts_if_one_refuses(started: tuple[Instance, Instance, Instance]) -> None:
    tablet, old, new = started
    before, log = states(*started), list[Record]()
    with pytest.raises(RefusedError) as caught:
        command(tablet.call("pass_barrier"), new.call("create"), old.call("remove"), log=log.append)
    assert "task 1: `remove` cannot happen now (`call` is `none`); unmet: " in str(caught.value)
    assert caught.value.requirements == old.refusals("remove")
    assert states(*started) == before
    assert log == []


def test_nothing_counts_if_the_log_refuses(started: tuple[Instance, Instance, Instance]) -> None:
    tablet, _, new = started
    before = states(*started)

    def lost(record: Record) -> None:
        assert len(record.steps) == 2
        raise OSError("compare-and-set lost")

    with pytest.raises(OSError, match="compare-and-set lost"):
        command(tablet.call("pass_barrier"), new.call("create"), log=lost)
    assert states(*started) == before
    again = tablet.call("pass_barrier")
    command(again, new.call("create"))
    with pytest.raises(InputError, match="`pass_barrier` was tried already"):
        command(again)


def test_a_step_is_checked_on_what_those_before_it_left() -> None:
    nodes = [Node("a"), Node("b")]
    both = frozenset(nodes)
    state = {
        "node_state": dict.fromkeys(nodes, NodeState.normal),
        "tokens": both,
        "members": both,
        "tablet_hosts": frozenset(),
    }
    topology = Instance(Program(define(TopologyControl)), state, name="cluster")  # type: ignore[arg-type]
    before = topology.state
    assert topology.can("ask_to_leave", n=nodes[0])
    assert topology.can("ask_to_leave", n=nodes[1])
    with pytest.raises(RefusedError, match=r"cluster: `ask_to_leave\(b\)` cannot happen"):
        command(
            topology.call("ask_to_leave", n=nodes[0]), topology.call("ask_to_leave", n=nodes[1])
        )
    assert topology.state == before


def test_entities_come_and_go_by_name() -> None:
    nodes = [Node(f"host-{i}") for i in range(1500)]
    present = frozenset(nodes[:3])
    state = {
        "node_state": {n: NodeState.normal if n in present else NodeState.absent for n in nodes},
        "tokens": present,
        "members": present,
        "tablet_hosts": frozenset(),
    }
    topology = Instance(Program(define(TopologyControl)), state)  # type: ignore[arg-type]
    new = Node("late comer")
    with pytest.raises(InputError, match="`ask_to_join`: n is not a living Node"):
        topology.fire("ask_to_join", n=new)
    topology.add(new)
    assert len(topology.live(Node)) == 1501
    with pytest.raises(InputError, match="is there already"):
        topology.add(new)
    topology.fire("crash", n=nodes[0])
    with pytest.raises(InputError, match="cannot go: `tokens` still names it"):
        topology.remove(nodes[0])
    topology.remove(new)
    topology.remove(nodes[-1])
    assert new not in topology.live(Node)
    assert len(topology.state["node_state"]) == 1499  # type: ignore[arg-type]
