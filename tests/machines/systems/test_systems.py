"""The systems: machines of several documents as one, with promises that none of them makes alone."""

from __future__ import annotations

import pytest
from tests.models.indexed_table import IndexedTable, Row
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.machines import SHIPPED
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.systems.backfill_jobs import BackfillJobs
from stagewright.machines.systems.cluster_views import ClusterViews
from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.systems.view_server import ViewServer
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.spec import Bool, Machine, SetOf, Term, choose, require
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


def broken(report: Report) -> set[str]:
    assert report.exhausted
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


def safety(definition: Definition) -> list[str]:
    """The names of the promises about states and steps, which need no graph."""
    kinds = (PropertyKind.INVARIANT, PropertyKind.STEP)
    return [p.name for p in definition.properties if p.kind in kinds]


def test_a_view_is_built_on_a_tablet_that_moves_off_a_node_that_leaves() -> None:
    definition = define(ClusterViews)
    assert broken(check(definition, scope_of(definition), coverage=False)) == set()


@pytest.mark.parametrize(
    ("profile", "number"), some_of([("scylla-2025.4", 2), ("scylla-2026.2", 3)])
)
def test_nothing_is_lost_where_more_goes_wrong_with_views(profile: str, number: int) -> None:
    definition = define(ClusterViews, profile)
    scope = exercising_scopes(definition)[number]
    report = check(definition, scope, properties=safety(definition), coverage=False)
    assert broken(report) == set()


def test_an_index_is_built_while_its_table_moves() -> None:
    definition = define(IndexedTable)
    scope = scope_of(definition, budgets={"generations": 0})
    assert broken(check(definition, scope, coverage=False)) == set()


@pytest.mark.parametrize("number", some_of(range(1, 5)))
def test_nothing_is_lost_where_more_goes_wrong_with_the_table(number: int) -> None:
    definition = define(IndexedTable)
    scope = exercising_scopes(definition)[number]
    report = check(definition, scope, properties=safety(definition), coverage=False)
    assert broken(report) == set()


@pytest.mark.parametrize("number", some_of([2, 1, 3]))
def test_an_index_is_built_whatever_befalls_its_job_and_its_rows(number: int) -> None:
    definition = define(IndexBuild)
    scope = exercising_scopes(definition)[number]
    assert broken(check(definition, scope, coverage=False)) == set()


def test_a_server_finds_its_rows_through_a_rebalance_a_failover_and_a_compaction() -> None:
    definition = define(ViewServer)
    assert broken(check(definition, scope_of(definition), coverage=False)) == set()


def test_two_tables_are_backfilled_at_once() -> None:
    definition = define(BackfillJobs)
    scope = scope_of(definition, {"index": 1})
    assert broken(check(definition, scope, coverage=False)) == set()


@pytest.mark.parametrize("machine", [ClusterViews, IndexedTable])
def test_what_a_system_leaves_to_its_parts_is_checked_with_them(machine: type[Machine]) -> None:
    shipped = {path.rpartition(":")[2] for path in SHIPPED.values()}
    alone = define(machine).checked_alone
    assert len(alone) == 3
    assert issubclass(IndexPermissions, IndexLife)  # and is shipped: its check has what it inherits
    assert {part.machine for part in alone} <= shipped | {IndexLife.__name__}


class TopologyIsNotTold(ClusterViews):
    """Where the tablet went is not written to where the topology looks for tablets."""

    def _settle_where_it_went(self) -> None:
        self.topology.tablet_work = None


class ReadsThePendingReplica(IndexedTable):
    """The backfill scans whatever replica the tablet has, also one that has not streamed yet."""

    def _serves_reads(self, n: Term[Node]) -> Bool:
        return (self.replicas | self.next).has(n)


class EntriesAreNew(IndexedTable):
    """The backfill writes with the time of now: no marker hides what it writes."""

    def _visible(self) -> SetOf[Row]:
        return self.found


class TracksOverlap(IndexedTable):
    """A tablet starts to move while the topology changes."""

    def _has_the_track(self) -> None:
        require(self.tablet.stage == Stage.none, "stage is none")


class LogsToTheNewest(IndexedTable):
    """Log entries go to the generation that was committed last, whose time has not come."""

    def _generation_of_now(self) -> Term[Generation]:
        last = choose(
            self.cdc.committed.has(Generation.second), Generation.second, Generation.first
        )
        return choose(self.cdc.committed.has(Generation.third), Generation.third, last)


class LogsToTheFirst(IndexedTable):
    """Log entries go to the generation that was there first."""

    def _generation_of_now(self) -> Term[Generation]:
        return Term.of(Generation.first)


@pytest.mark.parametrize(
    ("machine", "promise", "budgets"),
    [
        (TopologyIsNotTold, "the_topology_knows_where_tablets_are", {}),
        (ReadsThePendingReplica, "a_published_index_is_complete", {"generations": 0}),
        (EntriesAreNew, "a_published_index_has_no_orphans", {"migrations": 0, "generations": 0}),
        (TracksOverlap, "tablets_and_topology_take_turns", {}),
        (LogsToTheFirst, "every_write_is_logged", {"migrations": 0}),
        (LogsToTheNewest, "every_write_is_logged", {"migrations": 0}),
    ],
)
def test_a_mistake_between_two_machines_breaks_a_promise_of_the_system(
    machine: type[Machine], promise: str, budgets: dict[str, int]
) -> None:
    definition = define(machine)
    scope = scope_of(definition, budgets=budgets)
    report = check(
        definition, scope, properties=[promise], limits=Limits(stop_at_first=True), coverage=False
    )
    assert [v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED] == [promise]
