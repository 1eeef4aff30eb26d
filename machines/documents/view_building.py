"""Design document 000, "View building coordinator": the promises in the words of its sections."""

from __future__ import annotations

from stagewright.machines.documents.document import Document, Section
from stagewright.machines.scylladb.views.view_building import ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import ViewCoordinator
from stagewright.machines.scylladb.views.view_destinations import ViewDestinations
from stagewright.machines.scylladb.views.view_resize import ViewResize
from stagewright.machines.scylladb.views.view_staging import ViewStaging
from stagewright.machines.scylladb.views.view_task import ViewTask
from stagewright.machines.scylladb.views.view_updates import ViewUpdates
from stagewright.machines.scylladb.views.view_wakeups import ViewWakeups
from stagewright.machines.scylladb.views.view_worker import ViewWorker
from stagewright.machines.systems.cluster_views import ClusterViews
from stagewright.machines.systems.tablet_views import TabletViews

VIEW_BUILDING = Document(
    "000",
    "View building coordinator",
    "scylladb/docs/dev/view-building-coordinator.md, 2025-12",
    (
        Section(
            "View building coordinator",
            (
                ViewCoordinator.one_base_at_a_time,
                ViewCoordinator.bases_are_left_when_done,
            ),
        ),
        Section(
            "View building task",
            (
                ViewCoordinator.tasks_are_of_views,
                ViewCoordinator.views_are_created_at_any_time,
                ViewCoordinator.batches_run_where_the_tablet_is,
                ViewBuilding.views_are_created_at_any_time,
                ViewWorker.views_are_created_at_any_time,
                ViewBuilding.tasks_are_of_replicas,
                ViewBuilding.one_task_for_a_replica,
                ViewDestinations.processed_sstables_are_in_the_views,
                ViewDestinations.rows_reach_built_views,
                ViewResize.tasks_are_of_tablets,
                TabletViews.tasks_are_of_tablets,
                TabletViews.staging_tasks_are_created_for_something,
                TabletViews.views_are_created_while_tablets_change,
                ViewStaging.tasks_are_created_for_something,
                ViewStaging.aborted_tasks_are_of_tablets_in_transition,
                ViewUpdates.rows_come_into_the_view,
                ViewWorker.executed_tasks_leave_no_row,
                ViewWakeups.nothing_leaves_the_queue_unregistered,
            ),
        ),
        Section(
            "Lifetime of a task",
            (
                ViewWorker.removed_tasks_are_forgotten,
                ViewWorker.unfinished_views_have_a_task,
                ViewWorker.tasks_are_of_views,
                ViewWorker.completed_tasks_are_not_executed_again,
                ViewWorker.finished_tasks_are_remembered,
                ViewWorker.finished_tasks_are_removed_once,
                ViewBuilding.missing_rows_have_a_task,
                ViewBuilding.aborted_tasks_are_of_tablets_in_transition,
                ViewBuilding.views_are_dropped_at_any_time,
                ViewBuilding.dropped_views_have_no_tasks,
                ViewStaging.tasks_are_finished_or_deleted,
                ViewTask.finished_tasks_were_worked_on,
                ViewTask.answers_are_true,
                TabletViews.missing_rows_have_a_task,
                TabletViews.aborted_tasks_are_of_tablets_in_transition,
                TabletViews.aborts_are_not_revoked,
                ViewCoordinator.views_are_dropped_at_any_time,
                ViewCoordinator.tables_are_dropped_at_any_time,
                ViewCoordinator.dropped_tables_have_no_tasks,
                ViewWorker.views_are_dropped_at_any_time,
                ViewCoordinator.tasks_are_finished_by_answers,
                ViewCoordinator.a_new_coordinator_finds_a_finished_batch,
                ViewTask.finished_tasks_are_not_called,
                ViewTask.tasks_begin_alive,
                ViewTask.aborts_are_not_revoked,
                ViewTask.ids_are_used_once,
                ViewTask.only_executed_tasks_are_completed,
                ViewTask.completed_tasks_are_not_executed_again,
                ViewTask.tasks_are_processed,
                ViewWakeups.calls_are_for_stored_tasks,
                ViewWakeups.stored_tasks_are_worked_on,
                ViewWakeups.tasks_are_removed_when_answered,
                ViewUpdates.the_view_is_what_the_base_row_says,
                ViewUpdates.tasks_and_updates_end,
            ),
        ),
        Section(
            "Schema",
            instead="A table of columns: the variables of `view-task` and `view-building`; `validate` reads dumps of it.",
        ),
        Section(
            "View building worker",
            (
                ViewCoordinator.batches_are_of_one_table_and_tablet,
                ViewCoordinator.running_batches_are_not_replaced,
                ViewCoordinator.shards_work_at_once,
                ViewCoordinator.batches_end,
                ViewWorker.one_batch_on_the_shard,
                ViewBuilding.one_call_for_a_replica,
                ViewBuilding.one_batch_on_a_shard,
                ViewResize.one_batch_on_the_shard,
                TabletViews.one_batch_on_a_shard,
                ViewResize.batches_read_one_tablet,
                ViewStaging.one_batch_on_the_shard,
                ViewStaging.batches_start_with_tasks,
                ViewTask.only_stored_tasks_start,
                ViewWakeups.every_command_is_for_the_observer_to_see,
                ViewWakeups.finished_batches_are_reported,
                ViewWakeups.changes_are_observed,
            ),
        ),
        Section(
            "RPC",
            (
                ViewCoordinator.calls_are_to_shards_with_a_batch,
                ViewCoordinator.calls_are_for_tasks_of_the_table,
                ViewWorker.finished_tasks_were_worked_on,
                ViewWorker.an_answer_ends_the_call,
                TabletViews.calls_are_for_stored_tasks,
                ViewTask.answers_are_asked_for,
                ViewTask.only_the_current_coordinator_starts_work,
                ViewTask.calls_end,
            ),
        ),
        Section(
            "Tablet operations",
            (
                ViewBuilding.tablets_are_moved_at_any_time,
                ViewBuilding.replicas_are_added_at_any_time,
                ViewBuilding.replicas_are_removed_at_any_time,
                ViewStaging.tablets_leave_at_any_time,
                ClusterViews.tablets_are_balanced_while_views_are_built,
                ClusterViews.nodes_are_drained_while_views_are_built,
                TabletViews.tablets_migrate_while_views_are_built,
                TabletViews.tablets_split_while_views_are_built,
                TabletViews.rows_are_written_at_any_time,
                TabletViews.tablets_are_stored_by_their_replicas,
                ViewDestinations.tablets_move_at_any_time,
                ViewBuilding.tasks_under_way_are_aborted,
                ViewResize.missing_ranges_have_a_task,
                ViewResize.splits_do_not_wait_for_views,
                ViewResize.merges_do_not_wait_for_views,
                ViewStaging.tasks_go_with_their_replica,
            ),
        ),
        Section(
            "Staging sstables",
            (
                ViewCoordinator.staging_tasks_are_of_tables_with_views,
                ViewDestinations.tasks_wait_for_the_migration,
                ViewDestinations.sstables_without_need_are_not_staged,
                ViewDestinations.sstables_have_a_task_while_a_view_is_built,
                ViewDestinations.tables_are_repaired_while_views_are_built,
                ViewResize.sstables_are_staged_while_a_view_is_built,
                ViewStaging.sstables_are_staged_at_any_time,
                ViewCoordinator.sstables_are_staged_at_any_time,
                ViewStaging.processed_sstables_are_in_the_view,
                ViewStaging.batches_hold_sstables_while_they_run,
                TabletViews.batches_begin_at_rest,
                TabletViews.staged_rows_have_a_task,
                ViewStaging.registered_sstables_have_a_task,
            ),
        ),
    ),
)
