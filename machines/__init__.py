"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
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
