"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "cdc-generations": "stagewright.machines.cdc_generations:CdcGenerations",
    "cdc-mapping": "stagewright.machines.cdc_mapping:CdcMapping",
    "cdc-publication": "stagewright.machines.cdc_publication:CdcPublication",
    "load-balancer": "stagewright.machines.load_balancer:LoadBalancer",
    "tablet-guards": "stagewright.machines.tablet_guards:TabletGuards",
    "tablet-resize": "stagewright.machines.tablet_resize:TabletResize",
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
}
"""What the command line calls a machine, and where its class is."""
