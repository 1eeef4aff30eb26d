"""What nodes say that they have done with rows, and what coordinators rely on, by lines that are written by hand."""

from __future__ import annotations

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret, line, violations

TABLE = "10bc2e47-d213-5d43-ba03-4967219b0b6b"
TABLET = f"{TABLE}:3"
A, B, C, NEW = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abcd")
STARTS = "Scylla version 2026.2.0-0.20260821.0123456789ab with build-id 0123 starting ..."
OLDER = STARTS.replace("2026.2.0", "2025.1.0")
EXECUTING = "executing global topology command "
DRAIN = f"{EXECUTING}barrier_and_drain, excluded nodes: {{}}"
COMMIT = "updating topology state: "
MIGRATES = f"{COMMIT}Tablet migration"
STREAMED = f"Streaming for tablet migration of {TABLET} finished table=ks.t range=(1, 2]"
STREAMING_SUCCEEDED = f"Streaming for tablet migration of {TABLET} successful"
CLEANED = "Cleaned up tablet 3 of table ks.t successfully."
CLEANUP_SUCCEEDED = f"Cleanup for tablet migration of {TABLET} successful"
REPAIR_SUCCEEDED = f"Repair for tablet migration of {TABLET} successful"

Line = tuple[str, str]  # the logger and what it says


def log(*lines: Line, host: str = "h", starts: str = STARTS) -> list[str]:
    """The log of a node from its start on."""
    texts = [("init", starts), *lines]
    return [line(m, second, host, logger) for second, (logger, m) in enumerate(texts)]


def topology(*messages: str) -> list[Line]:
    return [("raft_topology", message) for message in messages]


def refused(*files: list[str]) -> set[str]:
    return {machine for machine, _, _ in violations(interpret(*files))}


def coordinator(*messages: str, starts: str = STARTS) -> list[str]:
    """The log of the node that coordinates."""
    lines = topology("start topology coordinator fiber", *messages)
    return log(*lines, host="coordinator", starts=starts)


# -- tablets at their replicas -----------------------------------------------------------------------------


def streams(kind: str) -> list[str]:
    return coordinator(f"Initiating tablet streaming ({kind}) of {TABLET} to {A}:0")


def test_a_tablet_that_is_said_to_be_streamed_was_streamed() -> None:
    done = ("storage_service", STREAMED)
    files = f"stream_sstables[{A}] {STREAMED}"
    for lines in ([done], [("storage_service", files)]):
        assert refused(streams("migration"), log(*lines, *topology(STREAMING_SUCCEEDED))) == set()
    nothing = log(*topology(STREAMING_SUCCEEDED))
    assert refused(streams("migration"), nothing) == {"LoggedWork"}
    twice = log(done, *topology(STREAMING_SUCCEEDED, STREAMING_SUCCEEDED))
    assert refused(streams("migration"), twice) == {"LoggedWork"}


def test_a_tablet_that_moves_within_a_node_is_cloned() -> None:
    cloned = f"Finished intra-node streaming of tablet {TABLET} from shard 0 to 1"
    found = streams("intranode_migration")
    assert refused(found, log(*topology(cloned, STREAMING_SUCCEEDED))) == set()
    assert refused(found, log(*topology(STREAMING_SUCCEEDED))) == {"LoggedWork"}


@pytest.mark.parametrize("kind", ["rebuild", "rebuild_v2"])
def test_a_rebuild_may_have_nobody_to_stream_from(kind: str) -> None:
    assert refused(streams(kind), log(*topology(STREAMING_SUCCEEDED))) == set()


def test_without_the_lines_of_a_coordinator_nobody_knows_whether_a_tablet_is_rebuilt() -> None:
    assert refused(log(*topology(STREAMING_SUCCEEDED))) == set()


def test_of_releases_that_may_not_say_what_was_done_nothing_is_asked() -> None:
    said = topology(STREAMING_SUCCEEDED, CLEANUP_SUCCEEDED, REPAIR_SUCCEEDED)
    assert refused(streams("migration"), log(*said, starts=OLDER)) == set()
    assert refused(streams("migration"), log(*said)[1:]) == set()  # nor of a log without a start


def test_a_tablet_that_is_said_to_be_cleaned_up_was_cleaned_up() -> None:
    for logger, text in (
        ("table", CLEANED),
        ("table", "Storage group for tablet 3 is deallocated. Ignore cleanup."),
    ):
        assert refused(log((logger, text), *topology(CLEANUP_SUCCEEDED))) == set()
    another = log(("table", CLEANED.replace("3", "4")), *topology(CLEANUP_SUCCEEDED))
    assert refused(another) == {"LoggedWork"}
    assert refused(log(*topology(CLEANUP_SUCCEEDED))) == {"LoggedWork"}


def repair(peers: str, replicas: str, *more: str) -> list[str]:
    """A node repairs a tablet with peers."""
    of = f"repair[{NEW}]"
    ranges = f"{of}: Repair 1 out of 1 ranges, keyspace=ks, table=t, range=(1, 2], peers=[{peers}], live_peers=[{peers}]"
    ends = f"Finished tablet repair for table=ks.t range=(1, 2] duration=1s replicas=[{replicas}] global_tablet_id={TABLET}"
    lines = [("repair", text) for text in (*more, ranges, f"{of}: {ends} flush_time=0")]
    return log(*lines, *topology(REPAIR_SUCCEEDED))


def test_a_tablet_that_is_said_to_be_repaired_was_repaired_with_all_its_replicas() -> None:
    three = f"{A}:0, {B}:1, {C}:0"
    assert refused(repair(f"{A}, {B}", three)) == set()
    assert refused(repair(A, f"{A}:0, {B}:0")) == set()
    assert refused(repair(A, three)) == {"LoggedWork"}
    assert refused(log(*topology(REPAIR_SUCCEEDED))) == {"LoggedWork"}


def test_a_repair_leaves_out_replicas_that_are_filtered() -> None:
    filtered = (
        f"repair[{NEW}]: Check node={B} from dc=dc2 hosts_filter={{}} dcs_filter={{dc1}} skipped"
    )
    assert refused(repair(A, f"{A}:0, {B}:1, {C}:0", filtered)) == set()


def test_a_repair_that_has_nobody_to_repair_with_is_skipped() -> None:
    text = f"repair[{NEW}]: Skipped tablet repair for table=ks.t range=(1, 2] replicas=[{A}:0]"
    skipped = f"{text} global_tablet_id={TABLET} hosts_filter={{}} dcs_filter={{}}"
    assert refused(log(("repair", skipped), *topology(REPAIR_SUCCEEDED))) == set()


# -- a node that joins -------------------------------------------------------------------------------------

BOOTSTRAPS = ("storage_service", "entering BOOTSTRAP mode")
SERVES = ("storage_service", "entering NORMAL mode")
FINISHED = ("repair", 'bootstrap_with_repair: finished with keyspaces=["ks"]')


def test_a_node_streams_before_it_serves() -> None:
    assert refused(log(BOOTSTRAPS, FINISHED, SERVES)) == set()
    streamed = ("range_streamer", "Replace succeeded, took 3 seconds, nr_ranges_remaining=0")
    assert refused(log(BOOTSTRAPS, streamed, SERVES)) == set()
    assert refused(log(SERVES)) == set()
    assert refused(log(BOOTSTRAPS, SERVES)) == {"LoggedJoin"}


def test_the_first_node_has_nobody_to_stream_from() -> None:
    assert refused(log(*topology("start topology coordinator fiber"), BOOTSTRAPS, SERVES)) == set()


def test_what_was_streamed_before_a_node_started_again_is_there() -> None:
    again = line(STARTS, 30, "h", "init")
    rest = [line(text, 31, "h", logger) for logger, text in (BOOTSTRAPS, SERVES)]
    assert refused([*log(BOOTSTRAPS, FINISHED), again, *rest]) == set()


@pytest.mark.parametrize(
    ("old", "new", "neighbors", "fits"),
    [
        (f"{A}, {B}, {C}", f"{A}, {B}, {NEW}", C, True),  # who loses the range
        (f"{A}, {B}, {C}", f"{A}, {B}, {NEW}", f"{A}, {B}", True),  # one of each quorum
        (f"{A}, {B}, {C}", f"{A}, {B}, {NEW}", A, False),
        (f"{A}, {B}", f"{A}, {B}, {NEW}", A, True),  # nobody loses it
    ],
)
def test_a_range_is_fetched_from_who_loses_it_or_from_enough_others(
    old: str, new: str, neighbors: str, *, fits: bool
) -> None:
    of = "bootstrap_with_repair: keyspace=ks, range=(1, 2], "
    lines = (
        ("repair", f"{of}old_endpoints=[{old}], new_endpoints={{{new}}}"),
        ("repair", f"{of}neighbors=[{neighbors}], mandatory_neighbors=[]"),
    )
    found = refused(log(BOOTSTRAPS, *lines, FINISHED, SERVES))
    assert found == (set() if fits else {"LoggedJoin"})


@pytest.mark.parametrize(("neighbors", "fits"), [(f"{A}, {B}", True), (A, False)])
def test_who_replaces_a_node_fetches_from_all_replicas_that_live(
    neighbors: str, *, fits: bool
) -> None:
    of = "replace_with_repair: "
    live = f"sync_nodes={{{A}, {B}}}, ignore_nodes={{}} replaced_node={C}"
    lines = (
        ("repair", f"{of}started with keyspace=ks, nr_ranges=1, {live}"),
        (
            "repair",
            f"{of}keyspace=ks, range=(1, 2], natural_enpoints={{{A}, {B}, {NEW}}}, neighbors=[{neighbors}]",
        ),
        ("repair", f'{of}finished with keyspaces=["ks"], source_dc='),
    )
    found = refused(log(BOOTSTRAPS, *lines, SERVES))
    assert found == (set() if fits else {"LoggedJoin"})


# -- the base tables of views ------------------------------------------------------------------------------


def test_a_base_table_is_flushed_before_it_is_read() -> None:
    starts = f"Starting view building batch for tasks [{A}]. Task type build_range"
    reads = "Starting range (1, 2] building for base table: ks.t"
    flushed = f"Flushed base table ks.t for views: {{{TABLE}}}"

    def worker(*texts: str) -> list[str]:
        return log(*[("view_building_worker", text) for text in texts])

    assert refused(worker(flushed, starts, reads)) == set()
    assert refused(worker(starts, reads)) == {"LoggedScan"}
    assert refused(worker(flushed.replace("ks.t", "ks.u"), starts, reads)) == {"LoggedScan"}
    assert refused(worker(reads)) == set()  # at INFO no line says that it was flushed


# -- stages, by the coordinator's lines --------------------------------------------------------------------


def sets(stage: str) -> str:
    return f"Will set tablet {TABLET} stage to {stage}"


FENCE = f"{COMMIT}advance fence version to 7"
BOTH = [sets("write_both_read_old"), MIGRATES]


def test_a_stage_is_left_after_its_barrier() -> None:
    assert refused(coordinator(*BOTH, DRAIN, FENCE, sets("streaming"), MIGRATES)) == set()
    leaves = [sets("streaming"), MIGRATES]
    for early in ([DRAIN], [FENCE]):
        assert "LoggedStage" in refused(coordinator(*BOTH, *early, *leaves))
    assert "LoggedStage" in refused(coordinator(DRAIN, FENCE, *BOTH, *leaves))
    assert refused(coordinator(*BOTH, *leaves)) == set()  # an excerpt has lines of no barrier
    before = coordinator(DRAIN, *BOTH, FENCE, sets("streaming"), MIGRATES)
    assert "LoggedStage" in refused(before)


def test_a_barrier_counts_for_the_tablets_that_were_in_their_stage_when_it_began() -> None:
    late = [DRAIN, sets("use_new"), MIGRATES, FENCE, sets("cleanup"), MIGRATES]
    found = violations(
        interpret(coordinator(sets("write_both_read_new"), MIGRATES, DRAIN, FENCE, *late))
    )
    assert [(machine, line) for machine, _, line in found if machine == "LoggedStage"] == [
        ("LoggedStage", 11)
    ]


def test_a_stage_that_lost_its_race_was_not_entered() -> None:
    lost = ["race while changing state: Tablet migration. Retrying"]
    begun = [sets("write_both_read_new"), MIGRATES, DRAIN, FENCE, sets("use_new"), MIGRATES]
    again = [*begun, *lost, sets("use_new"), MIGRATES]
    assert "LoggedStage" not in refused(coordinator(*again))
    assert "LoggedStage" in refused(coordinator(*begun, sets("cleanup"), MIGRATES))


def test_another_coordinator_asks_for_the_barrier_again() -> None:
    entered = [sets("write_both_read_new"), MIGRATES, DRAIN, FENCE]
    another = topology("start topology coordinator fiber")
    leaves = topology(sets("use_new"), MIGRATES)
    waits = topology(f"{EXECUTING}barrier, excluded nodes: {{}}")  # for who has drained already
    after = [line(STARTS, 20, "other", "init")]
    for between, machines in (([], {"LoggedStage"}), (waits, set[str]())):
        texts = [line(m, 21 + i, "other") for i, (_, m) in enumerate([*another, *between, *leaves])]
        assert refused(coordinator(*entered), [*after, *texts]) == machines


def test_all_are_over_after_the_barrier_of_their_last_stage() -> None:
    ends = [sets("end_migration"), MIGRATES]
    cleaned = [f"cleanup for tablet {TABLET} resolved."]
    over = f"{COMMIT}Finished tablet migration"
    assert "LoggedStage" not in refused(coordinator(*cleaned, *ends, DRAIN, FENCE, MIGRATES, over))
    assert "LoggedStage" in refused(coordinator(DRAIN, FENCE, *cleaned, *ends, MIGRATES, over))


def test_a_cleanup_is_over_before_its_stage_is_left() -> None:
    resolved = f"cleanup for tablet {TABLET} resolved."
    failed = f"cleanup for tablet {TABLET} failed: a node is down"
    cleans = [sets("cleanup"), MIGRATES]
    begun = [sets("use_new"), MIGRATES, DRAIN, FENCE, *cleans]
    head = [sets("write_both_read_new"), MIGRATES, DRAIN, FENCE, *begun]
    ends = [sets("end_migration"), MIGRATES]
    assert "LoggedStage" not in refused(coordinator(*head, resolved, *ends))
    assert "LoggedStage" not in refused(coordinator(*head, failed, resolved, resolved, *ends))
    for early in ([], [failed, resolved]):
        assert "LoggedStage" in refused(coordinator(*head, *early, *ends))
    assert "LoggedStage" not in refused(coordinator(*head, *ends, starts=OLDER))
