"""The definitions: one file a machine, each reading like its design document."""

SHIPPED = {
    "tablet": "stagewright.machines.tablet_cluster:TabletCluster",
    "tablet-migration": "stagewright.machines.tablet_migration:TabletMigration",
    "index-permissions": "stagewright.machines.index_permissions:IndexPermissions",
    "index-statements": "stagewright.machines.index_statements:IndexStatements",
    "index-postgres": "stagewright.machines.index_postgres:PostgresIndex",
    "index-rows": "stagewright.machines.index_rows:IndexRows",
    "index-postgres-rows": "stagewright.machines.index_postgres_rows:PostgresRows",
    "unique-index": "stagewright.machines.index_unique:UniqueIndex",
}
"""What the command line calls a machine, and where its class is."""
