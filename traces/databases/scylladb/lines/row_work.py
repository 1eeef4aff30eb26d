"""The lines of nodes that stream, repair and clean up because the topology coordinator has asked for it.

"… for tablet migration of T successful" is at DEBUG, as are the peers of a repair and the neighbors of a range; that
something was streamed, repaired or cleaned up is at INFO. The words are those of 2026-08.
"""

from __future__ import annotations

import re

from stagewright.machines.recorded.logged_tablets import LoggedJoin, LoggedStage, LoggedWork
from stagewright.machines.recorded.logged_views import LoggedScan
from stagewright.traces.databases.scylladb.log.patterns import UUID, form
from stagewright.traces.events.observability import Recording

STAGE = LoggedStage.__name__
WORK = LoggedWork.__name__
JOIN = LoggedJoin.__name__
SCAN = LoggedScan.__name__
MACHINES = (STAGE, WORK, JOIN, SCAN)
RECORDING = Recording(end_marked=False)

STREAMED = "tablet streamed"
REPAIRED = "tablet repaired"
CLEANED = "tablet cleaned up"
SUCCEEDED = "work on a tablet succeeded"
PEERS = "peers of a repair"
SKIPPED = "replica filtered out"
BOOTSTRAPS = "node bootstraps"
SERVES = "node serves"
ENDPOINTS = "replicas of a range"
NEIGHBORS = "neighbors of a range"
SYNC_NODES = "nodes to fetch from"
NATURAL = "replicas of a range, and neighbors"
RANGES_STREAMED = "ranges streamed"
FLUSHED = "base table flushed"
READS = "base table read"

_TOPOLOGY = ("raft_topology",)
_SERVICE = ("storage_service",)
_REPAIR = ("repair",)
_TABLE = ("table",)
_STREAMER = ("range_streamer",)
_WORKER = ("view_building_worker",)
_GID = rf"(?P<tablet>{UUID}:\d+)"
_MIGRATION = " for tablet migration of "
_MODE = "entering "
_OPERATION = r"(?:bootstrap|replace|rebuild)_with_repair"
_BY_REPAIR = "_with_repair: "
_REPAIRED = " tablet repair for table="
_UUID = rf"repair\[(?P<repair>{UUID})\]"

FORMS = (
    form(
        STREAMED,
        _SERVICE,
        _MIGRATION,
        rf"(?:stream_sstables\[\S+\] )?Streaming for tablet migration of {_GID} finished\b",
    ),
    form("", _SERVICE, _MIGRATION, r""),
    form(
        STREAMED,
        _TOPOLOGY,
        "Finished intra-node streaming of tablet ",
        rf"Finished intra-node streaming of tablet {_GID} from",
    ),
    form(
        SUCCEEDED,
        _TOPOLOGY,
        _MIGRATION,
        rf"(?P<what>Streaming|Repair|Cleanup) for tablet migration of {_GID} successful$",
    ),
    form("", _TOPOLOGY, _MIGRATION, r""),
    form(
        REPAIRED,
        _REPAIR,
        _REPAIRED,
        rf"{_UUID}: (?:Finished|Skipped) tablet repair for .*replicas=(?P<replicas>.*) "
        rf"global_tablet_id={_GID}\b",
    ),
    form("", _REPAIR, _REPAIRED, r""),
    form(
        PEERS,
        _REPAIR,
        "]: Repair ",
        rf"{_UUID}: Repair \d+ out of \d+ ranges, .*, peers=(?P<peers>.*), live_peers=[^=]*$",
    ),
    form("", _REPAIR, "]: Repair ", r""),
    form(
        SKIPPED,
        _REPAIR,
        "]: Check node=",
        rf"{_UUID}: Check node=(?P<peers>{UUID}) .* skipped$",
    ),
    form("", _REPAIR, "]: Check node=", r""),
    form(
        CLEANED,
        _TABLE,
        "Cleaned up tablet ",
        r"Cleaned up tablet (?P<number>\d+) of table \S+ successfully",
    ),
    form(
        CLEANED,
        _TABLE,
        "Storage group for tablet ",
        r"Storage group for tablet (?P<number>\d+) is deallocated",
    ),
    form("", _TABLE, "Storage group for tablet ", r""),
    form(BOOTSTRAPS, _SERVICE, f"{_MODE}BOOTSTRAP mode", rf"{_MODE}BOOTSTRAP mode$"),
    form("", _SERVICE, f"{_MODE}BOOTSTRAP mode", r""),
    form(SERVES, _SERVICE, f"{_MODE}NORMAL mode", rf"{_MODE}NORMAL mode$"),
    form("", _SERVICE, f"{_MODE}NORMAL mode", r""),
    form(
        ENDPOINTS,
        _REPAIR,
        _BY_REPAIR,
        r"bootstrap_with_repair: (?P<range>keyspace=.*, range=.*), old_endpoints=(?P<old>[^=]*), "
        r"new_endpoints=(?P<new>[^=]*)$",
    ),
    form(
        NEIGHBORS,
        _REPAIR,
        _BY_REPAIR,
        r"bootstrap_with_repair: (?P<range>keyspace=.*, range=[^=]*), neighbors=(?P<neighbors>[^=]*), "
        r"mandatory_neighbors=[^=]*$",
    ),
    form(
        SYNC_NODES,
        _REPAIR,
        _BY_REPAIR,
        r"(?P<of>\w+_with_repair: )started with (?P<keyspace>keyspace=[^=]*, )(?:nr_ranges=\d+, )?"
        r"sync_nodes=(?P<sync>[^=]*), ignore_nodes=",
    ),
    form(
        NATURAL,
        _REPAIR,
        _BY_REPAIR,
        r"(?P<of>\w+_with_repair: )(?P<keyspace>keyspace=[^=]*, )range=.*, natural_en\w*points=(?P<natural>[^=]*), "
        r"neighbors=(?P<neighbors>[^=]*)$",
    ),
    form(
        RANGES_STREAMED,
        _REPAIR,
        _BY_REPAIR,
        rf"{_OPERATION}: finished with keyspaces=",
    ),
    form("", _REPAIR, _BY_REPAIR, r""),
    form(
        RANGES_STREAMED,
        _STREAMER,
        " succeeded, took ",
        r"(?:Bootstrap|Replace) succeeded, took ",
    ),
    form("", _STREAMER, " succeeded, took ", r""),
    form(FLUSHED, _WORKER, "Flushed base table ", r"Flushed base table (?P<base>\S+) for views"),
    form(
        READS,
        _WORKER,
        " building for base table: ",
        r"Starting range .* building for base table: (?P<base>\S+)$",
    ),
)

_FIND = re.compile(UUID)


def hosts_in(text: str) -> set[str]:
    """The host ids of a list of hosts or of replicas."""
    return {*_FIND.findall(text)}


def too_few(old: set[str], new: set[str], neighbors: set[str]) -> bool:
    """Whether a node that joins fetches a range so that a write on a quorum may be on none afterwards.

    Where it takes the place of another replica: neither from that one, nor from so many that each quorum has one.
    """
    lose = old - new
    return len(lose) == 1 and not lose & neighbors and len(neighbors) < len(old) - len(old) // 2
