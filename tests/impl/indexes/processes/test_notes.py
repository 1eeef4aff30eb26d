"""What real processes do on the way to an index is checked by the oracle and the records of simulated runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.processes.clusters import NOTING, all_is_well, cluster
from tests.impl.indexes.processes.noted import Noted
from tests.patience import PATIENCE

from stagewright.impl.endurance.index_builds import filled, is_over, leader, until, writing
from stagewright.impl.endurance.index_writers import ended
from stagewright.impl.indexes.processes.layout import MASTER
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.machines.yugabytedb.indexes.index_states import Status


def build_two(supervisor: IndexSupervisor) -> None:
    """Two indexes that wait are built with one scan."""
    client = supervisor.client(PATIENCE)
    client.create("i", "v", deferred=True)
    client.create("j", "w", deferred=True)
    client.backfill()
    client.close()


def both_are_built(supervisor: IndexSupervisor) -> None:
    client = supervisor.client(PATIENCE)
    for name in ("i", "j"):
        assert until(client, name, is_over).status is Status.success
    client.close()


@pytest.mark.long
def test_builds_read_rows_once_at_their_rate_and_nobody_waits_for_them(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", "", NOTING) as supervisor:
        first = filled(supervisor)
        writers = writing(supervisor, range(1, 3))
        build_two(supervisor)
        both_are_built(supervisor)
        all_is_well(supervisor, first, writers)
        noted = Noted(supervisor.layout)
    assert noted.breaches() == []
    assert noted.refused() == []
    assert {n.indexes for _, n in noted.oracle.scanned} == {(0, 1)}
    assert noted.oracle.told == {0: Status.success, 1: Status.success}


@pytest.mark.thorough
def test_after_a_fault_one_chunk_of_a_tablet_is_read_again(tmp_path: Path) -> None:
    assert scanned_through_kills(tmp_path, "") == []


@pytest.mark.thorough
def test_more_than_a_chunk_that_is_read_again_is_noticed(tmp_path: Path) -> None:
    found = scanned_through_kills(tmp_path, "later_checkpoints_are_not_kept")
    assert any("more than once" in one for one in found), found


def scanned_through_kills(directory: Path, wrong: str) -> list[str]:
    """Breaches of a build during which a master and a tablet server die."""
    with cluster(directory / "c", wrong, NOTING, chunk_rows=4) as supervisor:
        filled(supervisor)
        build_two(supervisor)
        client = supervisor.client(PATIENCE)
        until(client, "i", lambda b: b.rows > b.expected // 2)
        supervisor.kill(leader(supervisor, MASTER))
        time.sleep(0.5)
        supervisor.kill(leader(supervisor, "table/0"))
        supervisor.start()
        both_are_built(supervisor)
        client.close()
        supervisor.stop()
        return Noted(supervisor.layout).breaches(faults=2)


@pytest.mark.thorough
def test_wrong_builds_of_processes_are_noticed(tmp_path: Path) -> None:
    wrong = (
        "one_scan_an_index,waiting_is_credit,writes_wait_for_the_backfill,success_is_reported_early"
    )
    with cluster(tmp_path / "c", wrong, NOTING) as supervisor:
        filled(supervisor)
        writers = writing(supervisor, range(1, 3))
        build_two(supervisor)
        both_are_built(supervisor)
        ended(writers)
        supervisor.stop()
        noted = Noted(supervisor.layout)
    for said in ("more than once", "in the second from", "SUCCESS is reported of"):
        assert any(said in one for one in noted.breaches()), (said, noted.breaches())
    for said in (
        "the rows are the next ones of the tablet",
        "nothing but a row's lock makes a statement wait",
        "every tablet reads the index of which SUCCESS is reported",
    ):
        assert any(said in one for one in noted.refused()), (said, noted.refused())
