"""Bugs of ScyllaDB's tablet migration."""

from __future__ import annotations

from stagewright.machines.tablet_cluster import TabletCluster
from stagewright.spec.known_bugs import NotFound, known_bugs_in, released_bug

LATE_WRITE_AFTER_CLEANUP_OF_THE_TARGET = released_bug(
    "T01",
    "scylladb #26512",
    "Streaming fails and the pending replica is cleaned up while a coordinator that has not learned of it "
    "still writes to both replicas: the write finds no storage, or is stored after the cleanup.",
    machine=TabletCluster,
    profile="scylla-2025.4",
    breaks=(TabletCluster.writes_find_storage, TabletCluster.cleaned_up_replicas_stay_empty),
    mended_in="scylla-2026.2",
)

BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
