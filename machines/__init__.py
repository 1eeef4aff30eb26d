"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "partition-headers": "stagewright.machines.partition_headers:PartitionHeaders",
    "partition-merge": "stagewright.machines.partition_merge:PartitionMerge",
    "partition-rollback": "stagewright.machines.partition_rollback:PartitionRollback",
    "partition-requests": "stagewright.machines.partition_requests:PartitionRequests",
    "partition-updater": "stagewright.machines.partition_updater:PartitionUpdater",
    "partition-versions": "stagewright.machines.partition_versions:PartitionVersions",
    "partition-replicas": "stagewright.machines.partition_replicas:PartitionReplicas",
    "partition-rebalance": "stagewright.machines.partition_rebalance:PartitionRebalance",
    "partition-queries": "stagewright.machines.partition_queries:PartitionQueries",
    "partition-index": "stagewright.machines.partition_index:PartitionIndex",
    "partition-states": "stagewright.machines.partition_group:PartitionStates",
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
}
"""What the command line calls a machine, and where its class is."""
