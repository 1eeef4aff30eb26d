"""The permissions of an index are those of the documents and the code, and two versions of them get on."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken, checked

from stagewright.checker.prove import not_handled, prove
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Term, action, require
from stagewright.spec.define import define
from stagewright.spec.definition import PropertyKind
from stagewright.spec.grounding.ground_eval import successors
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome

FORWARD = {
    ("absent", "delete_only"),
    ("delete_only", "write_and_delete"),
    ("write_and_delete", "do_backfill"),
    ("do_backfill", "read_write_and_delete"),
}
REMOVING = "write_and_delete_while_removing"
BUILT = {"write_and_delete", "do_backfill", "read_write_and_delete"}
EDGES = {
    "seed": {*FORWARD, ("do_backfill", "absent")},
    "ycql": {
        *FORWARD,
        ("delete_only", REMOVING),
        *((p, REMOVING) for p in BUILT),
        (REMOVING, "delete_only_while_removing"),
        ("delete_only_while_removing", "index_unused"),
        ("index_unused", "absent"),
    },
    "ysql": {
        ("absent", "write_and_delete"),
        ("write_and_delete", "do_backfill"),
        ("do_backfill", "read_write_and_delete"),
        ("do_backfill", REMOVING),
        *((p, "absent") for p in {*BUILT, REMOVING}),
    },
    "ysql-no-do-backfill": {
        ("absent", "write_and_delete"),
        ("write_and_delete", "read_write_and_delete"),
        ("write_and_delete", REMOVING),
        *((p, "absent") for p in {"write_and_delete", "read_write_and_delete", REMOVING}),
    },
}
EDGES["ysql-early"] = EDGES["ysql"]


def edges_of(profile: str) -> set[tuple[str, str]]:
    definition = define(IndexPermissions, profile)
    model = ground(definition, scope_of(definition))
    (permission,) = (cell.index for cell in model.cells if cell.name == "permission")
    names = [member.name for member in Permission]
    seen = set(model.initial)
    todo, edges = list(seen), set[tuple[str, str]]()
    while todo:
        state = todo.pop()
        for _, after in successors(model, state):
            if state[permission] != after[permission]:
                edges.add((names[state[permission]], names[after[permission]]))
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return edges


@pytest.mark.parametrize("profile", EDGES)
def test_the_permissions_move_as_the_real_system_moves_them(profile: str) -> None:
    assert edges_of(profile) == EDGES[profile]


@pytest.mark.parametrize(
    ("number", "name", "read", "write", "delete"),
    [
        (0, "delete_only", False, False, True),
        (2, "write_and_delete", False, True, True),
        (4, "do_backfill", False, True, True),
        (6, "read_write_and_delete", True, True, True),
        (8, "write_and_delete_while_removing", False, True, True),
        (10, "delete_only_while_removing", False, False, True),
        (12, "index_unused", False, False, False),
    ],
)
def test_the_table_is_that_of_the_code(
    number: int, name: str, read: bool, write: bool, delete: bool
) -> None:
    permission = Permission[name]
    assert (permission.number, permission.read) == (number, read)
    assert (permission.write, permission.delete) == (write, delete)


@pytest.mark.parametrize(
    ("machine", "profile", "states"),
    [
        (IndexPermissions, "ycql", 4_004),
        (IndexPermissions, "ysql", 875),
        (IndexPermissions, "ysql-early", 875),
        (IndexPermissions, "ysql-no-do-backfill", 711),
        (PostgresIndex, "ysql", 5_188),
    ],
)
def test_every_promise_holds_and_every_action_happens(
    machine: type[Machine], profile: str, states: int
) -> None:
    report = checked(machine, profile)
    assert (report.outcome, report.states) == (Outcome.HOLDS, states)
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


def test_three_servers_do_as_well() -> None:
    assert broken(checked(IndexPermissions, "ycql", sizes={"server": 3})) == set()


def test_the_seed_leaves_open_how_a_failed_index_is_removed() -> None:
    assert broken(checked(IndexPermissions, "seed")) == {"a_deleted_index_is_not_used"}


@pytest.mark.parametrize("profile", ["ysql-early", "ysql-no-do-backfill"])
def test_a_sleep_is_no_barrier(profile: str) -> None:
    """YugabyteDB slept where it had to wait for the backends: #6238, #7376."""
    found = broken(checked(PostgresIndex, profile))
    assert found == {
        "what_one_backend_writes_the_others_delete",
        "what_one_backend_reads_the_others_write",
        "backfill_waits_for_every_backend",
    }


@pytest.mark.parametrize(
    ("machine", "profile"),
    [
        (IndexPermissions, "ycql"),
        (IndexPermissions, "ysql"),
        (IndexPermissions, "ysql-no-do-backfill"),
        (PostgresIndex, "ysql"),
    ],
)
def test_all_that_is_promised_of_states_and_steps_is_proved_by_induction(
    machine: type[Machine], profile: str
) -> None:
    definition = define(machine, profile)
    report = prove(definition, scope_of(definition, {"server": 3}), max_k=1, depth=1)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    found = {p.name for p in definition.properties if p.kind is PropertyKind.SOMETIMES}
    assert left <= {p.name for p in not_handled(definition)} | found  # which `check` decides


class ReportsOfOlderVersionsCount(IndexPermissions):
    """A report is counted without a look at the version that it is of."""

    def _all_reported(self) -> None:
        require(self.version > 0, "somebody has reported something")


class RemovalSkipsDeleteOnly(IndexPermissions):
    """Servers stop to delete old values while others still write new ones."""

    @IndexPermissions.permission.step(
        Permission.write_and_delete_while_removing, Permission.index_unused
    )
    def stop_writes(self) -> None:
        self._all_reported()
        self._enter()


class RemovalBeginsWithoutWrites(IndexPermissions):
    """DROP INDEX lets servers stop to write new values while others still read."""

    @action
    def drop_index(self) -> None:
        require(self.permission == Permission.read_write_and_delete, "the index is in use")
        self.drop_requested = True
        self._enter()
        self.permission = Permission.delete_only_while_removing


class ServersReportTooEarly(IndexPermissions):
    """A server reports the version that the master has stored, before its tablets have applied it."""

    @action
    def report(self, s: Term[Server]) -> None:
        require(~self.reported.has(s), "it has not reported it")
        self.reported.add(s)


@pytest.mark.parametrize(
    ("mutant", "promise"),
    [
        (ReportsOfOlderVersionsCount, "two_versions_are_in_use"),
        (RemovalSkipsDeleteOnly, "what_one_server_writes_the_others_delete"),
        (RemovalBeginsWithoutWrites, "what_one_server_reads_the_others_write"),
        (ServersReportTooEarly, "two_versions_are_in_use"),
    ],
)
def test_weakening_the_rule_of_two_versions_breaks_a_promise(
    mutant: type[Machine], promise: str
) -> None:
    assert promise in broken(checked(mutant, "ycql"))
