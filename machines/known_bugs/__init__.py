"""Bugs that the real systems had, and mistakes that a document rules out, each put back into a machine.

A folder for each database, with a file for each machine or subject, and one for those by which somebody waits who need
not. Every row of the list of 77 historical bugs is here, found or with the reason why not.
"""

from __future__ import annotations

from stagewright.machines.known_bugs.couchbase import (
    design_documents,
    index_compaction,
    index_file,
    index_files,
    index_tree,
    index_triggers,
    index_update,
    locked_out as locked_out_of_indexes,
    partition_data,
    partition_lists,
    partition_roles,
    partitions,
    view_server,
)
from stagewright.machines.known_bugs.scylladb import locked_out
from stagewright.machines.known_bugs.scylladb.cdc import (
    cdc,
    cdc_generations,
    cdc_mapping,
    cdc_publication,
)
from stagewright.machines.known_bugs.scylladb.tablets import (
    load_balancer,
    resize,
    stream_session,
    tablet_invariants,
    tablet_repair,
    tablet_replicas,
    tablets,
)
from stagewright.machines.known_bugs.scylladb.topology import (
    fencing,
    group0,
    topology,
    topology_change,
    topology_coordinator,
    topology_operations,
    topology_ranges,
)
from stagewright.machines.known_bugs.scylladb.views import (
    view_coordinator,
    view_operations,
    view_staging,
    view_tasks,
    view_workers,
    views,
    views_of_tablets,
)
from stagewright.machines.known_bugs.yugabytedb import (
    backfill,
    backfill_jobs,
    index_build,
    index_readers,
    index_rows,
    index_statements,
    index_status,
    job_steps,
    tablet_scans,
    unique_index,
)
from stagewright.spec.known_bugs import KnownBug, NotFound

KNOWN_BUGS: tuple[KnownBug, ...] = (
    *backfill.BUGS,
    *backfill_jobs.BUGS,
    *cdc.BUGS,
    *cdc_generations.BUGS,
    *cdc_mapping.BUGS,
    *cdc_publication.BUGS,
    *fencing.BUGS,
    *group0.BUGS,
    *index_compaction.BUGS,
    *index_file.BUGS,
    *index_files.BUGS,
    *index_tree.BUGS,
    *index_triggers.BUGS,
    *design_documents.BUGS,
    *index_update.BUGS,
    *index_build.BUGS,
    *index_readers.BUGS,
    *index_rows.BUGS,
    *index_statements.BUGS,
    *index_status.BUGS,
    *job_steps.BUGS,
    *load_balancer.BUGS,
    *locked_out.BUGS,
    *locked_out_of_indexes.BUGS,
    *unique_index.BUGS,
    *partition_data.BUGS,
    *partition_lists.BUGS,
    *partition_roles.BUGS,
    *partitions.BUGS,
    *resize.BUGS,
    *tablet_invariants.BUGS,
    *tablet_repair.BUGS,
    *tablet_replicas.BUGS,
    *stream_session.BUGS,
    *tablet_scans.BUGS,
    *tablets.BUGS,
    *topology.BUGS,
    *topology_change.BUGS,
    *topology_coordinator.BUGS,
    *topology_operations.BUGS,
    *topology_ranges.BUGS,
    *view_coordinator.BUGS,
    *view_operations.BUGS,
    *view_staging.BUGS,
    *view_server.BUGS,
    *view_tasks.BUGS,
    *view_workers.BUGS,
    *views.BUGS,
    *views_of_tablets.BUGS,
)
"""What the checker must find."""

NOT_FOUND: tuple[NotFound, ...] = (
    *backfill.NOT_FOUND,
    *backfill_jobs.NOT_FOUND,
    *cdc.NOT_FOUND,
    *fencing.NOT_FOUND,
    *group0.NOT_FOUND,
    *index_compaction.NOT_FOUND,
    *index_file.NOT_FOUND,
    *index_tree.NOT_FOUND,
    *index_triggers.NOT_FOUND,
    *design_documents.NOT_FOUND,
    *index_update.NOT_FOUND,
    *index_build.NOT_FOUND,
    *index_rows.NOT_FOUND,
    *load_balancer.NOT_FOUND,
    *unique_index.NOT_FOUND,
    *partition_data.NOT_FOUND,
    *partition_lists.NOT_FOUND,
    *partitions.NOT_FOUND,
    *resize.NOT_FOUND,
    *tablet_repair.NOT_FOUND,
    *tablet_replicas.NOT_FOUND,
    *stream_session.NOT_FOUND,
    *tablets.NOT_FOUND,
    *topology.NOT_FOUND,
    *view_server.NOT_FOUND,
    *views.NOT_FOUND,
)
"""What it cannot find, and why."""
