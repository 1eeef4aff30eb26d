"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "backfill-leaders": "stagewright.machines.backfill_leaders:BackfillLeaders",
    "backfill-throttle": "stagewright.machines.backfill_throttle:BackfillThrottle",
    "backfill-safe-time": "stagewright.machines.backfill_safe_time:BackfillSafeTime",
    "backfill-split": "stagewright.machines.backfill_split:BackfillSplit",
    "backfill-rpcs": "stagewright.machines.backfill_rpcs:BackfillRpcs",
    "backfill-chunks": "stagewright.machines.backfill_chunks:BackfillChunks",
    "backfill-job": "stagewright.machines.backfill_job:BackfillJob",
    "tablet-guard": "stagewright.machines.tablet_guard:TabletGuard",
    "stream-session": "stagewright.machines.tablet_stream_session:StreamSession",
    "tablet-repair": "stagewright.machines.tablet_repair:TabletRepair",
    "tablet-replicas": "stagewright.machines.tablet_replicas:TabletReplicas",
    "fencing": "stagewright.machines.fencing:Fencing",
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
    "view-bases": "stagewright.machines.view_bases:ViewBases",
    "view-batches": "stagewright.machines.view_batches:ViewBatches",
    "view-building": "stagewright.machines.view_building:ViewBuilding",
    "view-destinations": "stagewright.machines.view_destinations:ViewDestinations",
    "view-flush": "stagewright.machines.view_flush:ViewFlush",
    "view-range": "stagewright.machines.view_range:ViewRange",
    "view-resize": "stagewright.machines.view_resize:ViewResize",
    "view-staging": "stagewright.machines.view_staging:ViewStaging",
    "view-task": "stagewright.machines.view_task:ViewTask",
    "view-wakeups": "stagewright.machines.view_wakeups:ViewWakeups",
}
"""What the command line calls a machine, and where its class is."""
