"""The tables of ScyllaDB's topology state machine: node states, transition states, requests, releases.

Sources: design document 001 (topology-over-raft, 2023-07), its node diagram and its list of transition
states; ScyllaDB's topology coordinator for what the releases added.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Profile, States


class NodeState(States):
    """`node_state` of a node; `absent` is a node without a row."""

    # fmt: off
    #                 in transition  ring now  ring next
    absent          = False,         False,    False
    none            = False,         False,    False  # asks to join: no tokens, no data to serve
    bootstrapping   = True,          False,    True
    replacing       = True,          False,    True
    normal          = False,         True,     True
    rebuilding      = True,          True,     True
    decommissioning = True,          True,     False
    removing        = True,          True,     False
    left            = False,         False,    False  # kept for ever
    # fmt: on

    def __init__(self, in_transition: bool, owns: bool, will_own: bool) -> None:
        self.in_transition = in_transition
        self.owns = owns  # its tokens count in the old ring
        self.will_own = will_own  # its tokens count in the new ring


N = NodeState

NODE_DIAGRAM: dict[NodeState, frozenset[NodeState]] = {
    N.absent: frozenset({N.none}),
    N.none: frozenset({N.bootstrapping, N.replacing, N.left}),
    N.bootstrapping: frozenset({N.normal, N.left}),
    N.replacing: frozenset({N.normal, N.left}),
    # To `left` goes the node that was replaced: no diagram draws it.
    N.normal: frozenset({N.rebuilding, N.decommissioning, N.removing, N.left}),
    N.rebuilding: frozenset({N.normal}),
    N.decommissioning: frozenset({N.left, N.normal}),  # back to normal: a rollback
    N.removing: frozenset({N.left, N.normal}),
    N.left: frozenset[NodeState](),
}
"""The node states that may follow each."""

SEED_DIAGRAM: dict[NodeState, frozenset[NodeState]] = {
    **NODE_DIAGRAM,
    N.decommissioning: frozenset({N.left}),
    N.removing: frozenset({N.left}),
}
"""The same in design document 001, where a node that is to leave does leave."""


class Ring(Enum):
    """Which token ring requests use."""

    old = auto()
    both = auto()
    new = auto()


class Owner(Enum):
    """On whose behalf the topology is in a transition state: nobody else may change it."""

    nobody = auto()
    node = auto()  # the node that is in transition
    generation = auto()  # a new CDC generation, of a bootstrapping node or asked for by itself
    tablets = auto()  # the tablet migration track
    request = auto()  # a global request
    outside = auto()  # an operator who has locked the topology


OLD, BOTH, NEW = Ring.old, Ring.both, Ring.new
JOINING = frozenset({N.bootstrapping, N.replacing})
LEAVING = frozenset({N.decommissioning, N.removing})
ANY_CHANGE = JOINING | LEAVING
DRAINED = LEAVING | {N.replacing}  # the node that is replaced is
BOOTSTRAP = frozenset({N.bootstrapping})
REBUILDING = frozenset({N.rebuilding})
NOBODY = frozenset[NodeState]()


class TransitionState(States):
    """`transition_state` of the topology as a whole; `null` is a topology at rest.

    `of`: what the node in transition may be doing meanwhile. `barrier`: one is run before the state is left.
    `gives_up`: a failure in it rolls the operation back; elsewhere it is retried, or waived.
    `tablets`: they may be in transition, or resized.
    """

    # fmt: off
    #                            writes reads owner             of         barrier gives_up tablets
    null                       = OLD,   OLD,  Owner.nobody,     REBUILDING, False, False, False
    join_group0                = OLD,   OLD,  Owner.node,       JOINING,    False, True,  False
    commit_cdc_generation      = OLD,   OLD,  Owner.generation, BOOTSTRAP,  True,  True,  False
    publish_cdc_generation     = OLD,   OLD,  Owner.generation, BOOTSTRAP,  False, False, False
    tablet_draining            = OLD,   OLD,  Owner.node,       DRAINED,    False, True,  True
    write_both_read_old        = BOTH,  OLD,  Owner.node,       ANY_CHANGE, True,  True,  False
    write_both_read_new        = BOTH,  NEW,  Owner.node,       ANY_CHANGE, True,  False, False
    left_token_ring            = OLD,   OLD,  Owner.node,       ANY_CHANGE, True,  False, False
    rollback_to_normal         = OLD,   OLD,  Owner.node,       LEAVING,    True,  False, True
    tablet_migration           = OLD,   OLD,  Owner.tablets,    REBUILDING, False, False, True
    tablet_resize_finalization = OLD,   OLD,  Owner.tablets,    NOBODY,     True,  False, True
    truncate_table             = OLD,   OLD,  Owner.request,    NOBODY,     True,  False, False
    snapshot_tables            = OLD,   OLD,  Owner.request,    NOBODY,     True,  False, False
    lock                       = OLD,   OLD,  Owner.outside,    REBUILDING, False, False, False
    # fmt: on

    def __init__(
        self,
        writes: Ring,
        reads: Ring,
        owner: Owner,
        of: frozenset[NodeState],
        barrier: bool,
        gives_up: bool,
        tablets: bool,
    ) -> None:
        self.writes = writes
        self.reads = reads
        self.owner = owner
        self.of = of
        self.barrier = barrier
        self.gives_up = gives_up
        self.tablets = tablets


T = TransitionState
AT_REST = frozenset({T.null})

TRANSITION_TABLE: dict[TransitionState, frozenset[TransitionState]] = {
    T.null: frozenset(T)
    - {T.publish_cdc_generation, T.left_token_ring, T.rollback_to_normal}
    - {T.null, T.write_both_read_new},
    T.join_group0: AT_REST
    | {T.commit_cdc_generation, T.tablet_draining, T.write_both_read_old, T.left_token_ring},
    T.commit_cdc_generation: AT_REST
    | {T.publish_cdc_generation, T.write_both_read_old, T.left_token_ring},
    T.publish_cdc_generation: AT_REST | {T.write_both_read_old},
    T.tablet_draining: frozenset({T.write_both_read_old, T.left_token_ring, T.rollback_to_normal}),
    T.write_both_read_old: frozenset(
        {T.write_both_read_new, T.left_token_ring, T.rollback_to_normal}
    ),
    T.write_both_read_new: AT_REST | {T.left_token_ring},
    T.left_token_ring: AT_REST,
    T.rollback_to_normal: frozenset({T.tablet_migration}),
    T.tablet_migration: AT_REST,
    T.tablet_resize_finalization: AT_REST,
    T.truncate_table: AT_REST,
    T.snapshot_tables: AT_REST,
    T.lock: AT_REST,
}
"""The transition states that may follow each, in some release."""

SEED_TABLE = {
    **TRANSITION_TABLE,
    # 001 draws that a node which joins may be left: with it ends the state that it is in.
    T.commit_cdc_generation: AT_REST | {T.publish_cdc_generation},
    T.write_both_read_old: AT_REST | {T.write_both_read_new},
    T.write_both_read_new: AT_REST,
}
"""The same in design document 001, which has no way back."""


class Request(States):
    """`topology_request` of a node, in the order in which they are served."""

    # fmt: off
    #         priority asked in  begins as
    replace = 0,       N.none,   N.replacing
    join    = 1,       N.none,   N.bootstrapping
    remove  = 2,       N.normal, N.removing
    leave   = 3,       N.normal, N.decommissioning
    rebuild = 4,       N.normal, N.rebuilding
    # fmt: on

    def __init__(self, priority: int, asked_in: NodeState, begins_as: NodeState) -> None:
        self.priority = priority
        self.asked_in = asked_in
        self.begins_as = begins_as


class GlobalRequest(States):
    """`global_topology_request`: work for the cluster as a whole, and the state in which it is done."""

    # fmt: off
    new_cdc_generation = TransitionState.commit_cdc_generation
    cleanup            = TransitionState.null
    truncate_table     = TransitionState.truncate_table
    snapshot_tables    = TransitionState.snapshot_tables
    # fmt: on

    def __init__(self, done_in: TransitionState) -> None:
        self.done_in = done_in


class Barrier(Enum):
    """What the coordinator knows of the barrier of the present state; volatile."""

    none = auto()
    running = auto()
    passed = auto()
    failed = auto()
    waived = auto()  # it failed, and the coordinator has slept for ring_delay since


class Work(Enum):
    """Why tablets are in transition."""

    balancing = auto()  # the load balancer's plan
    draining = auto()  # a node is to leave
    moving = auto()  # an operator's move_tablet


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does about the topology."""

    join_group0: bool  # a joining node is accepted before it gets tokens (5.4)
    publish_state: bool  # generations are published in a state; later by a fiber of their own
    rollback: bool  # failures lead to left_token_ring and rollback_to_normal (6.0)
    cleanup: bool  # nodes that hold rows of lost ranges are remembered (6.0)
    draining_state: bool  # tablets leave a node in tablet_draining (5.4 to 2026.1)
    parallel_draining: bool  # or before its request begins, which is paused until then (2026.2)
    finalization: bool  # tablet_resize_finalization, truncate_table, lock (2025.1)
    removing_leaves_ring: bool  # removing goes through left_token_ring too (2026.1)
    snapshots: bool  # snapshot_tables (2026.2)
    barrier_before_cleanup: bool  # requests to lost ranges are over before their rows are removed


# fmt: off
#               name             join   publish roll.  clean. drain. paral. final. remov. snaps. barrier
SEED = Release("seed",           False, True,  False, False, False, False, False, False, False, False)
SCYLLA_6_0 = Release(
               "scylla-6.0",     True,  False, True,  True,  True,  False, False, False, False, False)
SCYLLA_2025_4 = Release(
               "scylla-2025.4",  True,  False, True,  True,  True,  False, True,  False, False, False)
SCYLLA_2026_2 = Release(
               "scylla-2026.2",  True,  False, True,  True,  False, True,  True,  True,  True,  True)
# fmt: on
