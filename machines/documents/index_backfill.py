"""Design document 002, "Online index backfill": the promises in the words of its sections."""

from __future__ import annotations

from stagewright.machines.documents.document import Document, Section
from stagewright.machines.systems.backfill_jobs import BackfillJobs
from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import BackfillSafeTime
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import BackfillThrottle
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows
from stagewright.machines.yugabytedb.indexes.unique_index import UniqueIndex

INDEX_BACKFILL = Document(
    "002",
    "Online index backfill",
    "yugabyte-db/architecture/design/online-index-backfill.md",
    (
        Section(
            "Design Goals",
            (
                IndexPermissions.a_published_index_violates_nothing,
                IndexRows.writes_are_not_locked_out,
                IndexRows.no_orphan_entry,
                IndexRows.a_deleted_index_is_empty,
                IndexLife.builds_end,
                IndexPermissions.builds_end,
                IndexPermissions.clients_hear_of_failures,
                IndexPermissions.failure_means_that_the_index_goes,
                PostgresIndex.dropped_indexes_are_forgotten,
                BackfillChunks.built_indexes_are_complete,
                BackfillChunks.checkpoints_only_advance,
                BackfillChunks.violated_constraints_fail_the_index,
                BackfillJob.tablets_are_backfilled_in_parallel,
                BackfillJob.violated_constraints_fail_the_index,
                BackfillJob.builds_are_given_up_at_any_time,
                BackfillRpcs.builds_are_given_up_at_any_time,
                IndexLife.builds_are_given_up_at_any_time,
                BackfillJob.abandoned_indexes_are_not_published,
                BackfillJob.only_what_failed_is_removed,
                BackfillJob.checkpoints_are_kept,
                BackfillJob.every_index_can_be_usable_or_gone,
                BackfillJob.every_index_becomes_usable_or_is_deleted,
                BackfillJob.unused_indexes_are_deleted_while_others_are_built,
                BackfillLeaders.checkpoints_only_advance,
                BackfillLeaders.only_what_failed_is_removed,
                BackfillRpcs.published_indexes_are_complete,
                BackfillRpcs.cancelled_indexes_are_not_published,
                BackfillRpcs.deleted_indexes_have_no_entries,
                BackfillRpcs.what_is_done_is_not_asked_for,
                BackfillRpcs.every_index_can_be_usable_or_gone,
                BackfillRpcs.every_index_becomes_usable_or_is_deleted,
                BackfillSplit.checkpoints_are_kept,
                BackfillSplit.jobs_do_not_wait_for_splits_for_ever,
                BackfillTablet.checkpoints_only_advance,
                BackfillThrottle.servers_work_in_parallel,
                BackfillThrottle.checkpoints_only_advance,
                BackfillVersions.writes_are_not_locked_out,
                BackfillVersions.deletes_are_not_locked_out,
                BackfillVersions.updates_of_other_columns_are_not_locked_out,
                IndexRows.transactions_can_be_given_up,
                IndexPermissions.indexes_are_dropped_at_any_time,
                BackfillRpcs.indexes_are_dropped_at_any_time,
                BackfillSafeTime.transactions_commit_at_any_time,
                UniqueIndex.deletes_are_not_locked_out,
                UniqueIndex.updates_are_refused_only_if_the_key_is_taken,
                UniqueIndex.keys_are_handed_over_at_any_time,
                BackfillVersions.no_orphan_entry,
                IndexBuild.what_clients_are_told_is_so,
                IndexBuild.clients_hear_of_success,
                IndexBuild.clients_hear_of_failures,
                IndexBuild.answers_are_final,
                IndexBuild.keys_are_refused_only_if_taken,
                IndexBuild.rows_are_written_while_the_index_is_built,
                IndexBuild.rows_are_deleted_while_the_index_is_built,
                IndexBuild.indexes_are_created_while_clients_write,
                IndexBuild.the_status_is_told_at_any_time,
                BackfillJobs.jobs_run_at_once,
                BackfillVersions.reads_through_the_index_find_the_rows,
            ),
        ),
        Section(
            "Intermediate states of the index table",
            (
                IndexPermissions.the_index_is_not_read_before_it_is_built,
                IndexPermissions.published_indexes_serve_reads,
                IndexPermissions.servers_write_before_the_backfill,
                IndexRows.reads_are_not_locked_out,
                IndexRows.indexes_are_not_read_before_they_are_published,
                IndexRows.entries_have_the_time_of_their_rows,
                IndexRows.rows_change_at_later_times,
                BackfillRpcs.chunks_run_only_at_do_backfill,
                BackfillJob.what_one_tablet_writes_the_others_delete,
                BackfillJob.what_one_tablet_reads_the_others_write,
                BackfillJob.tablets_write_before_the_backfill,
                BackfillJob.only_built_indexes_are_read,
                BackfillJob.published_indexes_serve_reads,
                BackfillJob.published_indexes_go_on_serving_reads,
                PostgresIndex.published_indexes_go_on_serving_reads,
                PostgresRows.valid_indexes_are_read_at_any_time,
                BackfillVersions.reads_since_t_read_use_the_index,
            ),
        ),
        Section(
            "Handle CREATE INDEX statement at YB-TServer",
            (
                IndexPermissions.the_status_can_be_asked_for,
                IndexPermissions.create_index_does_not_wait,
                IndexPermissions.indexes_are_created_at_once,
                PostgresIndex.indexes_are_created_at_once,
                IndexPermissions.clients_hear_of_success,
                BackfillJob.indexes_are_created_at_any_time,
                IndexPermissions.results_are_final,
                BackfillJob.every_job_ends,
                BackfillSplit.results_are_for_good,
                UniqueIndex.results_are_for_good,
            ),
        ),
        Section(
            "Create the index table",
            (
                IndexPermissions.indexes_begin_without_reads,
                IndexPermissions.two_versions_are_in_use,
                IndexLife.servers_learn_at_any_time,
                PostgresIndex.backends_learn_at_any_time,
                PostgresIndex.backfill_waits_for_every_backend,
                PostgresIndex.indexes_do_not_wait_for_each_other,
                BackfillJob.schema_changes_converge_first,
                BackfillJob.scans_wait_for_indexes_on_their_way,
                BackfillJob.indexes_move_on_while_others_are_built,
                BackfillJob.tablets_apply_versions_at_any_time,
                BackfillLeaders.tablets_are_one_version_behind,
                BackfillLeaders.reports_are_heard_at_any_time,
            ),
        ),
        Section(
            "Backfill the data",
            (
                IndexPermissions.backfill_waits_for_every_server,
                BackfillJob.publishing_waits_for_all_tablets,
                BackfillJob.backfill_begins_when_all_tablets_know,
                BackfillLeaders.published_indexes_are_done,
                BackfillSplit.chunks_cover_the_table,
                BackfillSplit.chunks_are_asked_of_tablets_that_serve,
                BackfillTablet.what_is_done_is_not_scanned_again,
            ),
        ),
        Section(
            "Finalize the index",
            (
                IndexPermissions.completed_builds_are_published,
                BackfillJob.completed_builds_are_published,
                BackfillLeaders.completed_builds_are_published,
                BackfillLeaders.threads_of_earlier_leaders_hold_up_nobody,
                IndexRows.no_missing_entry,
                BackfillVersions.no_missing_entry,
                IndexBuild.servers_that_read_find_the_rows,
                IndexBuild.built_indexes_serve_reads,
            ),
        ),
        Section(
            "The index backfill process",
            (
                BackfillJob.tablets_are_independent,
                IndexBuild.tablets_are_scanned_independently,
                BackfillSafeTime.tablets_are_independent,
            ),
        ),
        Section(
            "Index backfill on a single tablet",
            (
                IndexRows.writes_do_not_affect_the_scan,
                IndexRows.entries_are_backfilled_in_the_past,
                IndexRows.delete_markers_do_not_stay,
                IndexBuild.built_indexes_are_compacted,
                BackfillChunks.a_page_is_read_once_for_all_indexes,
                BackfillJob.rows_are_scanned_at_one_time,
                BackfillJob.delete_markers_are_retained,
                BackfillSafeTime.entries_have_rows,
                BackfillSafeTime.scans_share_one_time,
                BackfillSafeTime.scans_repeat,
                BackfillTablet.tablets_are_scanned_from_their_start,
                BackfillVersions.the_scan_sees_t_read,
                BackfillVersions.history_of_the_table_goes_during_the_scan,
                BackfillVersions.the_index_is_compacted_while_it_is_built,
                UniqueIndex.entries_are_written_in_batches,
                IndexBuild.entries_of_a_tablet_are_written_in_batches,
                BackfillVersions.history_can_go,
            ),
        ),
        Section(
            "Detecting constraint violations",
            (
                UniqueIndex.no_row_takes_a_key_from_another,
                UniqueIndex.keys_that_no_row_has_are_free,
                UniqueIndex.reads_are_not_locked_out,
                UniqueIndex.published_keys_are_unique,
                UniqueIndex.the_index_names_the_row_that_has_the_key,
                UniqueIndex.builds_end,
            ),
        ),
        Section(
            "Throttling index build rate",
            (
                BackfillThrottle.slots_are_bounded,
                BackfillThrottle.free_slots_are_given,
                BackfillThrottle.rate_is_bounded,
                BackfillThrottle.each_task_has_its_own_rate,
            ),
        ),
        Section(
            "Waiting for pending transactions to finish",
            (
                IndexRows.transactions_write_several_rows,
                IndexRows.only_old_transactions_are_aborted,
                BackfillJob.nobody_joins_a_scan,
                BackfillSafeTime.answers_end_no_transaction,
                BackfillSafeTime.rows_have_entries,
                BackfillSafeTime.rows_of_old_transactions_are_found,
                BackfillSafeTime.safe_times_wait_for_old_transactions_alone,
                BackfillSafeTime.indexes_are_published_under_transactions,
                BackfillSafeTime.every_scan_is_made,
                IndexBuild.only_old_transactions_are_aborted,
                IndexBuild.transactions_can_be_given_up,
                IndexBuild.transactions_commit_once,
            ),
        ),
        Section(
            "Fault tolerance using checkpointing",
            (
                BackfillThrottle.large_tablets_take_several_requests,
                BackfillThrottle.checkpoints_are_answers,
                IndexBuild.another_master_goes_on_from_a_checkpoint,
                BackfillJobs.a_new_leader_takes_up_both_jobs,
            ),
        ),
        Section(
            "Checkpointing",
            (
                BackfillChunks.checkpoints_tell_what_is_built,
                BackfillChunks.no_index_waits_for_another_one,
                BackfillRpcs.a_tablet_is_asked_again,
                BackfillLeaders.answers_are_heard_at_any_time,
                BackfillThrottle.checkpoints_are_recorded_as_they_come,
                IndexBuild.checkpoints_stand_for_entries,
                BackfillJob.a_chunk_is_of_one_tablet,
                BackfillJobs.a_step_is_of_one_job,
                BackfillChunks.only_the_last_chunk_is_repeated,
                BackfillTablet.chunks_that_end_well_are_not_repeated,
                BackfillTablet.what_is_done_was_scanned,
                BackfillThrottle.done_tablets_are_left_alone,
            ),
        ),
        Section(
            "Handling node restarts and leadership changes",
            (
                BackfillLeaders.only_the_leader_gives_up,
                BackfillJob.only_a_leader_that_waits_fails_an_index,
                BackfillRpcs.jobs_outlast_their_leaders,
                BackfillSplit.only_splits_that_last_fail_the_job,
                IndexBuild.a_peer_completes_its_chunk,
            ),
        ),
        Section(
            "Future Work",
            (
                IndexPermissions.deferred_builds_wait_for_their_statement,
                BackfillJob.one_scan_is_for_all_indexes,
            ),
        ),
    ),
)
