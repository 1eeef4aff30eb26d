"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "tablet-guard": "stagewright.machines.tablet_guard:TabletGuard",
    "stream-session": "stagewright.machines.tablet_stream_session:StreamSession",
    "tablet-repair": "stagewright.machines.tablet_repair:TabletRepair",
    "tablet-replicas": "stagewright.machines.tablet_replicas:TabletReplicas",
    "fencing": "stagewright.machines.fencing:Fencing",
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
}
"""What the command line calls a machine, and where its class is."""
