"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
    "topology": "stagewright.machines.topology_cluster:TopologyCluster",
    "topology-control": "stagewright.machines.topology_control:TopologyControl",
    "topology-coordinator": "stagewright.machines.topology_coordinator:TopologyCoordinator",
    "topology-sessions": "stagewright.machines.topology_sessions:TopologySessions",
}
"""What the command line calls a machine, and where its class is."""
