"""Why no promise notices some changes of the topology: the reasons, and those for entries of its tables.

`stagewright mutate` changes every entry of a table: a promise notices each change that is not listed here.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec import equivalent_value, equivalents

T = TransitionState

IN_NO_OTHER = (
    "the only other state with tablets in transition is tablet_draining, of older releases"
)
CANCELLED = "a request that cannot proceed is cancelled"
REMOVED_AGAIN = "removing it again changes nothing"
PUBLISHED_AGAIN = "publishing it again changes nothing"
GIVEN_UP_AGAIN = "an operation may be given up twice, or not at all"
CRASHES = "a node that is down cannot crash, and one that is up need not"
WITH_OTHERS = "the tablet moves together with others, or not at all"
ELSEWHERE = "the table may have its tablets elsewhere"
NO_OTHER = (
    "a node without a row has no request, and one that stays can only have asked for a rebuild"
)
REBUILT = "the tablets of a replaced node are rebuilt elsewhere"
TAKEN = "the node may have tablets already, or die a moment later"
ABORTED = "a request to leave may be aborted at any time"
OF_OLDER_RELEASES = "only older releases drain for it"
FENCED_NEXT = "the next barrier fences as well"
OTHER_TABLES = "the node may have tablets of other tables, too"
MAY_FAIL = "a stream may fail at any time, or not"
NOT_ASKED = "a request that is not made asks for nothing"
STILL_NORMAL = "a node that is asked to leave is normal until its tablets have moved"
NO_TABLETS = "a node without tablets has nothing to drain"
NEW_TABLES = "a new table may have tablets there at any time, or none"
A_DEAD_NODE_WAITS = "while a request about a dead node waits, no other can proceed"
UNNEEDED = "a node that is down and not needed was refused: only a third request would show it"
WAITING = "it takes three nodes, some of them dead, for one request to proceed while another cannot"
NO_ROW_YET = "a node without a row has no earlier request"
ASKED_IN_IT = "a node asks only in the state in which it may"
STILL_TRUE = "the coordinator had learned nothing yet, or it is still true"
NOT_DOWN = "a node that is up needs no restart"
MOVES_NOTHING = "the plan may move nothing"
FOUND_LATER = "it may be noticed later"
JOINS_AGAIN = "the node may join and die at once, or join again"
JOINS_OR_NOT = "a node that has not joined yet may be refused, or join after all"
STREAMED_AGAIN = "streaming again changes nothing, and a state in which nodes stream has a session"
NOT_STREAMED = "an operation that is given up has not finished streaming"
ONLY_THERE = "a replaced node is removed from group0 only here"
REPORTED_AGAIN = "reporting it again changes nothing"
OTHER_STAGES = "stages stay as they are, or change twice"
STANDS_IN = "only a node that others can stand in for is let go"
OF_NO_OTHER = "nothing like it is done, or is still to be done, for any other node"
NOT_IN_YET = "a node that is not in yet need not come back: its request is cancelled"
LOST = "an answer may be lost, too"
LIKE_OTHERS = "where nobody is to be drained, a drain is a plan like any other"
PAUSED = "a paused one may be refused, too"
NO_STATE = "since 2026.1 tablets drain in no transition state of their own"
DRAINED_BEFORE = "since 2026.1 a node has no tablets any more when it begins to leave"
RESTS = "what is at rest comes to rest"
IN_TRACKS = "this release moves tablets in no other state"
IS_DEAD = "a dead node gets no tablets"
MORE = "one more does no harm"
LOOKED_AT_AGAIN = "a drain is looked at again"
NO_MOVE = "a node that is replaced is looked at again; to stay is no move"
DIES = "a stream may fail instead"
AS_FAR = "no other node is outside of group0, or as far as this one"

OF_OTHER_RELEASES = (T.publish_cdc_generation, T.tablet_draining)
ONE_RING = (
    T.null,
    T.tablet_migration,
    T.tablet_resize_finalization,
    T.truncate_table,
    T.snapshot_tables,
    T.lock,
)
WITHOUT_A_NODE = (T.tablet_resize_finalization, T.truncate_table, T.snapshot_tables)
COLUMNS: tuple[Callable[[TransitionState], object], ...] = (
    lambda state: state.writes,
    lambda state: state.reads,
    lambda state: state.owner,
    lambda state: state.barrier,
    lambda state: state.gives_up,
    lambda state: state.tablets,
)

REASONS = (
    # -- transition states -----------------------------------------------------------------------------
    *(
        equivalent_value(
            OF_OTHER_RELEASES, column, because="the newest release never enters such a state"
        )
        for column in COLUMNS
    ),
    equivalent_value(
        ONE_RING,
        lambda state: state.writes,
        because="no node joins or leaves meanwhile: both rings are the same",
    ),
    equivalent_value(
        ONE_RING,
        lambda state: state.reads,
        because="no node joins or leaves meanwhile: both rings are the same",
    ),
    equivalent_value(
        tuple(T),
        lambda state: state.of,
        because="a wider table forbids less; the order of the states says which operations enter one",
    ),
    equivalent_value(
        (T.null, T.tablet_migration, T.lock),
        lambda state: state.gives_up,
        because="it has no barrier that could fail",
    ),
    equivalent_value(
        WITHOUT_A_NODE,
        lambda state: state.gives_up,
        because="it has no operation on a node that could be given up",
    ),
    # -- nodes -----------------------------------------------------------------------------------------
    equivalent_value(
        (NodeState.absent, NodeState.none, NodeState.left),
        lambda state: state.owns,
        because="a node without tokens owns nothing",
    ),
    equivalent_value(
        (NodeState.absent, NodeState.none, NodeState.left),
        lambda state: state.will_own,
        because="a node without tokens owns nothing",
    ),
    equivalent_value(
        NodeState.rebuilding,
        lambda state: state.will_own,
        because="no node rebuilds while there are two rings",
    ),
    # -- requests --------------------------------------------------------------------------------------
    equivalent_value(
        (Request.replace, Request.remove),
        lambda request: request.priority,
        because="while the dead node that it is about is down, no other request can proceed",
    ),
    equivalent_value(
        Request.join,
        lambda request: request.priority,
        *(0, 2),
        because="it would be as early as a request about a dead node, which can only proceed alone",
    ),
    equivalent_value(
        Request.leave,
        lambda request: request.priority,
        2,
        because="it would be as early as a request about a dead node, which can only proceed alone",
    ),
    equivalent_value(
        GlobalRequest.cleanup,
        lambda request: request.done_in,
        because="a cleanup is done at rest: it comes to no state of its own",
    ),
)

TABLES = equivalents(*REASONS)
"""For the control machine alone."""

OF_OTHER_TRACKS = (*WITHOUT_A_NODE, T.lock)
ONE_OPERATION = "where the owners of a range are followed, requests do not wait for each other"
NO_REBUILD = "no node rebuilds where the owners of a range are followed"
NO_SUCH_STATE = (
    "the state is of tablets, tables or a lock: where a range is followed it is not entered"
)

TABLES_OF_RANGES = equivalents(
    *REASONS,
    equivalent_value(OF_OTHER_TRACKS, lambda state: state.owner, because=NO_SUCH_STATE),
    equivalent_value(OF_OTHER_TRACKS, lambda state: state.barrier, because=NO_SUCH_STATE),
    equivalent_value(OF_OTHER_TRACKS, lambda state: state.tablets, because=NO_SUCH_STATE),
    equivalent_value(NodeState.rebuilding, lambda state: state.in_transition, because=NO_REBUILD),
    equivalent_value(NodeState.rebuilding, lambda state: state.owns, because=NO_REBUILD),
    equivalent_value(Request.rebuild, lambda request: request.priority, because=NO_REBUILD),
    equivalent_value(Request.rebuild, lambda request: request.asked_in, because=NO_REBUILD),
    equivalent_value(Request.rebuild, lambda request: request.begins_as, because=NO_REBUILD),
    equivalent_value(
        (Request.join, Request.leave), lambda request: request.priority, because=ONE_OPERATION
    ),
    equivalent_value(
        (
            GlobalRequest.new_cdc_generation,
            GlobalRequest.truncate_table,
            GlobalRequest.snapshot_tables,
        ),
        lambda request: request.done_in,
        because="only a cleanup is asked for where a range is followed",
    ),
)
"""And for the cluster, which leaves other tracks out: the control machine has their entries of the tables."""
