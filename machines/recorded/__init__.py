"""What the parts of the executable system promise each other, as definitions that check what they record.

The steps of tablets are checked by the definition that drives them. That barriers, requests, sessions and
replicas did what these steps rely on is recorded, too: each kind by a small definition, in a file of its own.
"""

OF_NODES = {
    "barriers": "stagewright.machines.recorded.barriers:NodeBarrier",
    "replicas": "stagewright.machines.recorded.replicas:RecordedReplica",
    "sessions": "stagewright.machines.recorded.replicas:RecordedSession",
    "repairs": "stagewright.machines.recorded.repairs:RecordedRepair",
    "resizes": "stagewright.machines.recorded.resizes:RecordedResize",
    "shards": "stagewright.machines.recorded.resizes:RecordedShard",
    "writes": "stagewright.machines.recorded.writes:RecordedWrite",
    "lives": "stagewright.machines.recorded.lives:RecordedLife",
}
"""What a file is called (without its ending), and where the class of its definition is."""

OF_VIEWS = {
    "view-updates": "stagewright.machines.recorded.views:RecordedUpdates",
    "view-places": "stagewright.machines.recorded.views:RecordedTasks",
    "view-batches": "stagewright.machines.recorded.views:RecordedBatch",
    "staging": "stagewright.machines.recorded.views:RecordedStaging",
}
"""The same of a run that has views; tasks and choices are checked by the definitions that drive them."""

OF_CHANGES = {
    "changes": "stagewright.machines.recorded.changes:RecordedChange",
    "streams": "stagewright.machines.recorded.changes:RecordedStreams",
    "readers": "stagewright.machines.recorded.changes:RecordedReader",
}
"""The same of a run whose changes are logged."""

OF_INDEXES = {
    "index-scans": "stagewright.machines.recorded.index_builds:RecordedScan",
    "index-builds": "stagewright.machines.recorded.index_builds:RecordedBuild",
    "index-statements": "stagewright.machines.recorded.index_data:RecordedStatement",
    "index-transactions": "stagewright.machines.recorded.index_data:RecordedTransaction",
    "index-entries": "stagewright.machines.recorded.index_data:RecordedEntries",
    "index-keys": "stagewright.machines.recorded.index_data:RecordedKey",
    "index-schemas": "stagewright.machines.recorded.index_data:RecordedSchema",
    "index-splits": "stagewright.machines.recorded.index_data:RecordedSplit",
}
"""The same of tables with secondary indexes; permissions, jobs and chunks are checked by those that drive them."""

OF_LOGS = (
    "stagewright.machines.recorded.logged:LoggedBarrier",
    "stagewright.machines.recorded.logged:LoggedFence",
    "stagewright.machines.recorded.logged:LoggedTenure",
    "stagewright.machines.recorded.logged_views:LoggedBatches",
    "stagewright.machines.recorded.logged_views:LoggedTask",
    "stagewright.machines.recorded.logged_views:LoggedScan",
    "stagewright.machines.recorded.logged_tablets:LoggedStage",
    "stagewright.machines.recorded.logged_tablets:LoggedWork",
    "stagewright.machines.recorded.logged_tablets:LoggedJoin",
    "stagewright.machines.recorded.logged:LoggedReadTime",
    "stagewright.machines.recorded.logged_generations:LoggedGenerations",
)
"""What the readers of a database's logs follow beside the machines that are shipped."""

OF_VIEW_ENGINE = {
    "engine-indexes": "stagewright.machines.recorded.engine_index:RecordedIndex",
    "engine-streams": "stagewright.machines.recorded.engine_query:RecordedStream",
    "engine-answers": "stagewright.machines.recorded.engine_query:RecordedAnswer",
}
"""The same of the view engine's indexes and queries."""
