"""Mistakes in helpers that several steps of tablets share, such as who is gone, or how many replicas are a quorum.

A promise that calls the same helper errs with it. Those that catch these say it in words of their own.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node as Host, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_replicas import Node, TabletReplicas
from stagewright.machines.scylladb.tablets.tablet_resize import Node as Replica, TabletResize
from stagewright.machines.scylladb.tablets.tablet_stages import Role
from stagewright.spec import Bool, Number, SetOf, Term, choose
from stagewright.spec.known_bugs import known_bug, known_bugs_in

INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
ACTION = 'design document 001: the "action should be taken … before it can move to the next step"'


@known_bug("001-117", ACTION, breaks=TabletMigration.the_action_of_a_stage_is_done_before_the_next)
class WhoIsToLeaveIsGone(TabletMigration):
    """A leaving replica counted as gone as soon as its node was asked to leave the cluster: nobody removed its rows."""

    def _is_gone(self, role: Role) -> Bool:
        gone = super()._is_gone(role)
        return gone | self.unwanted if role is Role.leaving else gone


@known_bug(
    "001-118",
    ACTION,
    breaks=TabletMigration.nobody_waits_for_a_leaving_replica_that_is_gone,
)
class RebuildsHaveALeavingReplica(TabletMigration):
    """A rebuild that had given the tablet one replica more waited until the old one had removed its rows."""

    def _has(self, role: Role) -> Bool:
        return super()._has(role) | super()._has(Role.pending)


@known_bug(
    "001-119",
    ACTION,
    breaks=TabletMigration.nobody_waits_for_a_pending_replica_that_is_gone,
)
class OnlyLeavingReplicasAreGone(TabletMigration):
    """A migration to a node that was gone for good was undone, and waited there for that node to remove its rows."""

    def _is_gone(self, role: Role) -> Bool:
        return super()._is_gone(role) if role is Role.leaving else ~self._has(role)


@known_bug(
    "001-120",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletReplicas.writes_succeed_while_replicas_change,
    budgets={
        TabletReplicas.removals: 0,
        TabletReplicas.additions: 0,
        TabletReplicas.moves: 0,
        TabletReplicas.failures: 0,
    },
)
class ThreeReplicasAllHaveToAnswer(TabletReplicas):
    """Of three replicas a quorum was three, of reads and of writes: one that was down, and no client was served."""

    def _quorum(self, replicas: SetOf[Node]) -> Number:
        return choose(replicas.size() == 3, 3, super()._quorum(replicas))


@known_bug(
    "001-121",
    'design document 001: an action is taken "on behalf of the tablet" when its stage says so',
    breaks=TabletResize.sstables_are_flushed_whole_as_long_as_no_split_is_decided,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class EverySstableIsSplit(TabletResize):
    """Whoever had one tablet split whatever it wrote, also where no split was decided."""

    def _splits(self, n: Term[Replica]) -> Bool:
        return super()._splits(n) | True


# -- a tablet among nodes --------------------------------------------------------------------------------


@known_bug(
    "001-136",
    'design document 001: a node stores rows "only if that shard is one of the current tablet replicas"',
    breaks=TabletCluster.cleaned_up_replicas_stay_empty,
    sizes={Host: 3},
    budgets={TabletCluster.reads: 0, TabletCluster.crashes: 0, TabletMigration.failures: 0},
)
class WhoIsNoReplicaIsCleanedUp(TabletCluster):
    """A node that was neither an old replica nor a new one was cleaned up, and the rows of the one that left stayed."""

    def _is_leaving(self, n: Term[Host], t: Term[Tablet]) -> Bool:
        return ~self.next[t].has(n)


@known_bug(
    "001-137",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    budgets={TabletCluster.crashes: 0, TabletMigration.failures: 0},
)
class BarriersWaitForWhatBeganSince(TabletCluster):
    """A barrier waited for requests of its own version, too: while clients wrote without a pause, no tablet moved on."""

    def _is_older(self, n: Term[Host], t: Term[Tablet]) -> Bool:
        return self.request[n].tablet == t


@known_bug(
    "001-138",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    budgets={TabletCluster.reads: 0, TabletMigration.failures: 0},
)
class TabletsWaitForWhatIsGivenUp(TabletCluster):
    """A barrier waited for a write that its coordinator had given up, until nothing of it was on the wire."""

    def _acknowledges_barrier(self, n: Term[Host], t: Term[Tablet]) -> Bool:
        given_up = self._is_older(n, t) & self.request[n].abandoned
        return super()._acknowledges_barrier(n, t) & (self.excluded.has(n) | ~given_up)


BUGS = known_bugs_in(globals())
