"""Indexes are built while their table is written to, under faults, and every promise is kept."""

import pytest

from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.run import Plan, Report, run
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.impl.simulator.database.weather import NONE, parse_faults
from stagewright.spec.errors import InputError

BUSY = (
    "create table 40 rows; write 90; wait 60; create unique index i on v; create index j on w; "
    "await i; create deferred index d on v; wait 60; drop index j; backfill; await d"
)


def done(script: str, faults: str = "none", seed: int = 0, **settings: int) -> Report:
    plan = Plan(
        seed=seed,
        script=parse_script(script),
        faults=parse_faults(faults) if faults != "none" else NONE,
        settings=Settings(**settings),  # type: ignore[arg-type]
    )
    return run(plan)


def result(report: Report, operation: str) -> str:
    return next(o.result for o in report.outcomes if o.operation == operation)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("faults", ["none", "all"])
def test_every_promise_is_kept(faults: str, seed: int) -> None:
    report = done(BUSY, faults, seed)
    assert report.breaches == []
    assert report.refused == []


def test_create_index_does_not_wait_for_the_build() -> None:
    report = done("create table 40 rows; create index i on v; status i; await i")
    created = report.outcomes[0]
    assert created.result.startswith("IN-PROGRESS")
    assert created.ended - created.began < 100
    assert result(report, "await i") == "SUCCESS"


def test_a_violation_is_told_with_value_and_rows_and_the_index_is_removed() -> None:
    report = done(
        "create table 9 rows; put 70 v=5; put 71 v=5; create unique index i on v; await i; wait 500; status i"
    )
    failure = "FAILED, rows 70 and 71 both have v = 5"
    assert result(report, "await i") == failure
    assert result(report, "status i") == f"{failure}, deleted"
    assert report.kept


def test_a_published_index_is_unique_and_read() -> None:
    report = done(
        "create table 9 rows; create unique index i on v; await i; wait 200; put 70 v=5; put 71 v=5; read i 5"
    )
    assert result(report, "put 71 v=5") == "refused: duplicate"
    assert result(report, "read i 5") == "rows [70]"


def test_one_scan_is_for_all_indexes_that_wait() -> None:
    report = done(
        "create table 40 rows; create deferred index i on v; create deferred index j on w; wait 300; "
        "backfill; await i; await j"
    )
    assert report.counted["rows scanned"] == 40
    assert report.indexes == {"i": "SUCCESS", "j": "SUCCESS"}


def test_indexes_of_a_table_that_is_empty() -> None:
    report = done("create table 0 rows; create unique index i on v; await i; put 7 v=5; read i 5")
    assert result(report, "await i") == "SUCCESS"
    assert result(report, "read i 5") == "rows [7]"
    assert report.kept


def test_an_index_that_is_dropped_before_it_is_built_stays_dropped() -> None:
    report = done("create table 40 rows; create index i on v; drop index i; wait 2000; status i")
    assert result(report, "drop index i") == "DROPPED"
    assert result(report, "status i") == "DROPPED, deleted"
    assert report.indexes == {"i": "DROPPED"}


def test_a_deferred_index_waits_for_its_statement() -> None:
    report = done("create table 9 rows; create deferred index i on v; wait 900; status i")
    assert result(report, "status i") == "IN-PROGRESS"
    assert report.counted["rows scanned"] == 0


@pytest.mark.parametrize("wait", [0, 40, 90, 200])
def test_an_index_can_be_dropped_at_any_time(wait: int) -> None:
    script = f"create table 40 rows; write 60; create index i on v; wait {wait}; drop index i; wait 600; status i"
    report = done(script, "loss=0.05", chunk_rows=2, batch=1)
    assert report.breaches + report.refused == []
    assert result(report, "status i").endswith("deleted")


def test_the_build_goes_on_under_another_master_and_other_leaders() -> None:
    report = done(
        "create table 60 rows; create index i on v; wait 150; fail over; kill n1; kill n2; await i",
        chunk_rows=2,
        batch=1,
        rows_per_second=60,
    )
    assert report.breaches + report.refused == []
    assert report.indexes == {"i": "SUCCESS"}
    assert report.counted["rows scanned"] <= 60 + 3 * 2 * 3  # a chunk of each tablet for each fault


@pytest.mark.parametrize("seed", [0, 2])
def test_the_client_of_a_transaction_that_a_build_has_aborted_is_told_at_its_next_statement(
    seed: int,
) -> None:
    """It had waited until it gave up, as tablets where the transaction had ended did not answer."""
    plan = Plan(
        seed=seed,
        script=parse_script(
            "create table 40 rows; write 90; wait 40; create index i on v; await i; "
            "create unique index j on w; await j; write 20; create index k on v; await k"
        ),
        settings=Settings(wait_for_old=60),
        workload=Workload(slow=0.6),
    )
    report = run(plan)
    assert report.kept, report.breaches or report.refused
    assert report.counted["committed"] < report.counted["transactions"]


def test_the_rate_is_kept() -> None:
    report = done("create table 60 rows; create index i on v; await i", rows_per_second=10)
    assert report.kept
    assert report.simulated_ms > 20 * 1000 / 10  # a tablet has about 20 of the rows


def test_the_same_seed_gives_the_same_run() -> None:
    script = "create table 20 rows; write 30; create index i on v; await i"
    first, second = (done(script, "all", 5) for _ in range(2))
    assert first == second
    assert first != done(script, "all", 6)


ENFORCED = "create user-enforced table 40 rows; write 120; wait 80; create index i on v; await i"


def test_a_build_waits_until_no_user_enforced_write_may_be_under_way() -> None:
    times = dict[int, int]()
    for bound in (300, 900):
        report = done(ENFORCED, seed=6, upper_bound=bound)
        assert report.kept, report.breaches + report.refused
        times[bound] = report.outcomes[-1].ended - report.outcomes[-1].began
    assert times[900] - times[300] >= 590


def test_a_bound_below_the_timeout_of_a_write_loses_entries_as_the_document_warns() -> None:
    report = done(ENFORCED, seed=6, rpc_timeout=900, upper_bound=0)
    assert any("without an entry" in text for text in report.breaches)
    assert any("from before WRITE_AND_DELETE" in text for text in report.refused)


def test_a_user_enforced_write_is_stored_once_though_it_is_sent_again_under_all_faults() -> None:
    report = done(ENFORCED, "all", seed=1)
    assert report.kept, report.breaches + report.refused
    assert report.counted["committed"] == report.counted["transactions"]


def test_a_table_with_user_enforced_writes_has_no_unique_index() -> None:
    with pytest.raises(InputError, match="user-enforced"):
        done("create user-enforced table 9 rows; create unique index i on v")


def test_another_index_of_a_name_that_is_taken_is_refused_and_why_one_is_not_read_is_said() -> None:
    report = done(
        "create table 9 rows; create index i on v; create index i on w; create index i on v; read i 5; await i; "
        "drop index i; read i 5; put 70 v=5; put 71 v=5; create unique index u on v; await u; read u 5"
    )
    said = [o.result for o in report.outcomes]
    assert said[1] == "refused: i is there already, an index on v"
    assert said[2].startswith("IN-PROGRESS")
    assert said[3] == "i is not built yet"
    assert said[6] == "i was dropped"
    assert said[-1] == "u has failed: rows 70 and 71 both have v = 5"
    assert report.kept
