"""Why no promise notices some changes of the topology: the reasons, and those for entries of its tables.

`stagewright mutate` changes every entry of a table; what is not listed here is caught by a promise.
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

IN_NO_OTHER = "tablets are in transition in no other state but tablet_draining, of older releases"
CANCELLED = "a request that cannot proceed is cancelled"
REMOVED_AGAIN = "what is removed may be removed again"
PUBLISHED_AGAIN = "what is published may be published again"
GIVEN_UP_AGAIN = "what is given up may be given up again, or not at all"
CRASHES = "what does not run cannot crash, and what crashes need not"
WITH_OTHERS = "a tablet that moves with others, or not at all"
ELSEWHERE = "a table that has its tablets elsewhere"
NO_OTHER = "no row, no request; and who stays has asked for a rebuild, if for anything"
REBUILT = "the tablets of a node that is replaced are rebuilt elsewhere"
TAKEN = "a node that has tablets already, or dies a moment later"
ABORTED = "a request to leave may be aborted at any time"
OF_OLDER_RELEASES = "older releases alone drain for it"
FENCED_NEXT = "the next barrier fences as well"
OTHER_TABLES = "a node that has tablets of other tables, too"
MAY_FAIL = "a stream may fail at any time, or not"
NOT_ASKED = "a request that is not made asks for nothing"
STILL_NORMAL = "who asks to go is normal until its tablets have moved"
NO_TABLETS = "a node without tablets has nothing to drain"
NEW_TABLES = "a new table may have tablets there at any time, or none"
A_DEAD_NODE_WAITS = "while a dead node waits for that, no other request can proceed"
UNNEEDED = "who is down and not needed was refused: it takes a third request to tell"
WAITING = "one request can proceed and another cannot: it takes three nodes, some dead, to tell"
NO_ROW_YET = "who has no row has asked for nothing before"
ASKED_IN_IT = "a node asks only in the state in which it may"
STILL_TRUE = "there was nothing that it could have learned, or it stays true"
NOT_DOWN = "what runs needs no restart"
MOVES_NOTHING = "a plan that moves nothing"
FOUND_LATER = "it may be found out later"
JOINS_AGAIN = "a node that joins and dies at once, or that joins again"
JOINS_OR_NOT = "what has not joined yet may be refused, or go on to join"
STREAMED_AGAIN = "what is streamed may be streamed again, and where nodes stream is a session"
NOT_STREAMED = "what is given up has not been streamed"
ONLY_THERE = "a replaced node is removed from group0 only here"
REPORTED_AGAIN = "what is reported may be reported again"
OF_NO_OTHER = "nothing of the kind is done, or left to be done, for any other node"

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
            OF_OTHER_RELEASES, column, because="the newest release does not come to such a state"
        )
        for column in COLUMNS
    ),
    equivalent_value(
        ONE_RING,
        lambda state: state.writes,
        because="no node joins or leaves meanwhile: both rings are one",
    ),
    equivalent_value(
        ONE_RING,
        lambda state: state.reads,
        because="no node joins or leaves meanwhile: both rings are one",
    ),
    equivalent_value(
        tuple(T),
        lambda state: state.of,
        because="a wider table forbids less; the order of the states says which operations come to one",
    ),
    equivalent_value(
        (T.null, T.tablet_migration, T.lock),
        lambda state: state.gives_up,
        because="no barrier is run in it that could fail",
    ),
    equivalent_value(
        WITHOUT_A_NODE,
        lambda state: state.gives_up,
        because="no operation on a node goes on in it that could be given up",
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
"""Of the control machine alone."""

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
"""And of the cluster, which leaves other tracks out: what is said of those in the tables, the control machine
tells.
"""
