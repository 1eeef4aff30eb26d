"""Design document 004, "View engine": the promises in the words of its sections."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import DesignDocuments
from stagewright.machines.couchbase.indexes.index_compaction import IndexCompaction
from stagewright.machines.couchbase.indexes.index_file import IndexFile
from stagewright.machines.couchbase.indexes.index_tree import IndexTree
from stagewright.machines.couchbase.indexes.index_triggers import IndexTriggers
from stagewright.machines.couchbase.indexes.index_update import IndexUpdate
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import PartitionRebalance
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.machines.couchbase.partitions.partition_states import (
    PartitionGroup,
    PartitionStates,
)
from stagewright.machines.documents.document import Document, Section
from stagewright.machines.systems.view_server import ViewServer

VIEW_ENGINE = Document(
    "004",
    "View engine",
    'Couchbase, "View engine internals"',
    (
        Section(
            "Overview",
            (
                PartitionMerge.the_page_is_that_of_all_rows,
                DesignDocuments.an_index_is_in_a_file,
                DesignDocuments.what_is_built_can_be_queried,
                DesignDocuments.definitions_are_indexed,
                IndexTriggers.many_changes_trigger_an_update,
                IndexTriggers.time_triggers_an_update,
                IndexTriggers.fragmentation_triggers_a_compaction,
                IndexTriggers.no_update_comes_too_early,
                IndexTriggers.fragmented_files_are_compacted,
            ),
        ),
        Section(
            "Details on index structures",
            (
                DesignDocuments.equal_definitions_share_a_file,
                DesignDocuments.a_query_reads_what_it_asked_for,
                DesignDocuments.a_query_goes_on_with_the_older_file,
                DesignDocuments.only_what_is_defined_is_indexed,
                DesignDocuments.definitions_change_under_queries,
                DesignDocuments.definitions_are_deleted_under_queries,
                IndexCompaction.the_roots_are_of_the_file,
                IndexFile.a_valid_header_has_all_that_it_reaches,
                IndexFile.inserts_are_acknowledged,
                IndexFile.a_snapshot_stays_as_it_is,
                IndexFile.the_latest_snapshot_is_in_use,
                IndexFile.no_query_finds_less_in_between,
                IndexFile.what_is_written_stays,
            ),
        ),
        Section(
            "Map and Reduce functions",
            (
                IndexTree.the_root_has_the_reduce_value_of_the_view,
                IndexTree.a_reduce_query_reads_no_rows_in_vain,
            ),
        ),
        Section(
            "vBucket bitmasks (Partition bitmasks)",
            (
                IndexTree.a_bitmask_is_that_of_the_rows,
                IndexTree.the_bitmask_of_the_root_is_that_of_all_rows,
                IndexTree.no_node_is_written_in_vain,
                IndexTree.a_node_is_left_out_of_a_cleanup,
            ),
        ),
        Section(
            "Index updater operation",
            (
                PartitionIndex.the_index_of_a_partition_only_grows,
                PartitionIndex.the_updater_knows_what_it_has_to_index,
                PartitionIndex.the_index_catches_up,
                PartitionRollback.an_index_that_has_caught_up_is_right,
                PartitionRollback.the_index_goes_back_only_if_it_has_to,
                PartitionGroup.content_is_that_of_the_sequence_number,
                PartitionStates.the_index_of_a_partition_only_grows,
                IndexTriggers.an_update_has_something_to_do,
                IndexTriggers.what_is_not_loaded_waits,
                IndexTriggers.an_update_loads_all_that_waits,
                PartitionQueries.an_updater_ends_with_all_that_was_there,
                IndexUpdate.an_index_that_is_up_to_date_is_right,
                IndexUpdate.changes_are_indexed,
                ViewServer.the_file_has_the_rows_of_the_index,
                ViewServer.both_updaters_are_at_work,
            ),
        ),
        Section("Back index", (IndexUpdate.the_views_have_what_the_back_index_says,)),
        Section(
            "Initial index builder and incremental updates",
            (
                PartitionIndex.the_header_follows,
                IndexUpdate.an_initial_build_is_one_snapshot,
                IndexUpdate.batches_are_small,
            ),
        ),
        Section(
            "View query operation",
            (
                PartitionMerge.rows_come_in_order,
                PartitionMerge.a_node_has_one_row_on_the_way,
                PartitionQueries.an_answer_covers_what_was_acknowledged,
            ),
        ),
        Section(
            "Rebalance and consistent views", (PartitionRebalance.each_partition_is_served_once,)
        ),
        Section(
            "Partition states",
            (
                PartitionIndex.a_partition_starts_empty,
                PartitionQueries.only_active_partitions_are_returned,
                PartitionRebalance.only_active_partitions_are_returned,
                PartitionGroup.what_is_requested_as_active_is_queried,
                PartitionGroup.a_partition_is_in_one_of_the_states,
                PartitionGroup.rows_belong_to_partitions_of_the_index,
                PartitionGroup.partitions_are_cleaned_up,
                PartitionStates.a_partition_starts_empty,
                IndexCompaction.a_new_file_has_no_rows_to_clean_up,
                IndexCompaction.partitions_that_are_not_there_have_no_rows,
                IndexCompaction.partitions_are_cleaned_up,
                IndexCompaction.partitions_are_cleaned_up_while_documents_change,
                IndexTree.rows_are_of_partitions_of_the_index,
                IndexTree.rows_stay_until_they_are_removed,
                IndexTree.partitions_are_cleaned_up,
                IndexTree.rows_are_inserted_during_a_cleanup,
                IndexTree.rows_are_removed_during_a_cleanup,
                IndexTriggers.a_cleanup_has_something_to_do,
                IndexTriggers.what_is_to_be_removed_waits,
                IndexTriggers.a_cleanup_removes_all_that_is_to_be_removed,
                IndexTriggers.cleanups_wait_only_for_other_workers,
                IndexTriggers.partitions_are_cleaned_up,
            ),
        ),
        Section(
            "Queries during rebalance",
            (
                PartitionIndex.an_unindexable_partition_stays_as_it_is,
                PartitionQueries.an_answer_has_what_is_indexed,
                PartitionQueries.what_is_not_queried_yet_can_be_waited_for,
                PartitionQueries.partitions_come_while_queries_wait,
                PartitionQueries.partitions_go_while_queries_wait,
                PartitionRebalance.an_index_is_paused_only_while_another_catches_up,
                PartitionRebalance.nodes_have_what_the_map_names_or_what_moves,
                PartitionRebalance.an_answer_is_complete,
                PartitionRebalance.queries_are_sent_where_they_are_answered,
                PartitionRebalance.queries_come_during_a_rebalance,
                PartitionRebalance.moves_begin_while_queries_go_on,
                PartitionRebalance.the_new_index_is_built_right_away,
                PartitionRebalance.what_is_queried_is_indexed,
                PartitionRebalance.partitions_are_cleaned_up_during_a_rebalance,
                PartitionRebalance.indexes_go_on_when_nothing_moves,
                PartitionRebalance.the_nodes_are_as_the_table_says,
                PartitionReplicas.partitions_fail_over_at_once,
                PartitionReplicas.the_indexes_are_as_the_table_says,
                PartitionReplicas.a_transfer_is_started,
                PartitionReplicas.a_replica_that_is_queried_is_not_indexed,
                PartitionGroup.roles_are_those_requested,
                PartitionStates.requests_to_be_active_are_performed,
                ViewServer.pauses_end,
                PartitionStates.requests_to_be_passive_are_performed,
                PartitionStates.requests_to_clean_up_are_performed,
                PartitionStates.marks_are_made_in_every_state,
                PartitionStates.marks_are_taken_back_in_every_state,
                PartitionStates.what_is_there_is_indexed_during_a_cleanup,
                PartitionGroup.unindexable_is_what_was_marked,
                PartitionStates.an_unindexable_partition_stays_as_it_is,
                IndexCompaction.a_switch_changes_no_state,
            ),
        ),
        Section(
            "Replica partitions",
            (
                PartitionReplicas.the_main_index_has_what_is_asked_for,
                PartitionReplicas.replicas_are_indexed_before_they_are_queried,
                ViewServer.replicas_are_indexed_while_the_file_is_copied,
                ViewServer.workers_know_the_partitions,
            ),
        ),
        Section(
            "Queries during failover",
            (
                PartitionQueries.an_answer_has_every_partition_that_is_wanted,
                PartitionQueries.queries_come_at_any_time,
                PartitionQueries.documents_change_at_any_time,
                PartitionQueries.only_the_newest_is_waited_for,
                PartitionReplicas.each_partition_is_served_once,
                PartitionReplicas.a_failover_is_initiated,
                PartitionReplicas.a_transfer_is_completed,
                PartitionReplicas.no_row_is_lost,
                PartitionReplicas.the_index_in_which_a_partition_is_active_is_queried,
                PartitionReplicas.documents_change_while_partitions_are_transferred,
                PartitionReplicas.transfers_end,
                PartitionReplicas.copies_are_cleaned_up,
                ViewServer.queries_lose_no_rows,
                ViewServer.transfers_end_while_the_file_is_copied,
            ),
        ),
        Section(
            "Index compaction in view engine",
            (
                IndexCompaction.an_index_has_the_rows_of_its_sequence_numbers,
                IndexCompaction.a_fragmented_index_is_compacted,
                IndexFile.queries_come_while_the_file_is_written,
                IndexCompaction.the_previous_file_is_removed,
                IndexCompaction.the_index_catches_up,
                IndexCompaction.sort_files_are_kept_for_a_compactor,
                IndexCompaction.updates_go_on_while_it_copies,
                IndexCompaction.updates_start_while_it_compacts,
                IndexCompaction.compactions_start_while_it_is_updated,
                IndexCompaction.documents_change_at_any_time,
                IndexCompaction.partitions_are_added_while_it_compacts,
                IndexCompaction.partitions_are_handed_over_while_it_compacts,
                IndexCompaction.partitions_are_removed_while_it_compacts,
                ViewServer.partitions_move_in_at_any_time,
                ViewServer.partitions_are_activated_at_any_time,
                IndexTriggers.a_file_is_as_fragmented_as_it_is,
                IndexCompaction.a_file_is_as_fragmented_as_it_is,
                IndexCompaction.what_is_indexed_is_found_again,
            ),
        ),
    ),
)
