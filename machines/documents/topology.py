"""Design document 001, "Topology state machine": the promises in the words of its sections."""

from __future__ import annotations

from stagewright.machines.documents.document import Document, Section
from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration
from stagewright.machines.scylladb.cdc.cdc_generations import CdcGenerations
from stagewright.machines.scylladb.cdc.cdc_publication import CdcPublication
from stagewright.machines.scylladb.tablets.intranode_migration import IntranodeMigration
from stagewright.machines.scylladb.tablets.load_balancer import LoadBalancer
from stagewright.machines.scylladb.tablets.stream_session import StreamSession
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_repair import TabletRepair
from stagewright.machines.scylladb.tablets.tablet_replicas import TabletReplicas
from stagewright.machines.scylladb.tablets.tablet_resize import TabletResize
from stagewright.machines.scylladb.topology.fencing import Fencing
from stagewright.machines.scylladb.topology.group0 import Group0
from stagewright.machines.scylladb.topology.shared_fence import SharedFence
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import TopologyCoordinator
from stagewright.machines.scylladb.topology.topology_node import TopologyNode
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import TopologySessions
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.machines.scylladb.views.view_destinations import ViewDestinations
from stagewright.machines.scylladb.views.view_staging import ViewStaging
from stagewright.machines.systems.cluster_views import ClusterViews
from stagewright.machines.systems.topology_change import TopologyChange

TOPOLOGY = Document(
    "001",
    "Topology state machine",
    "scylla/docs/dev/topology-over-raft.md, 2023-07",
    (
        Section(
            'The change itself: "Balance tablets concurrently with active migrations"',
            (
                LoadBalancer.a_shard_streams_again_before_a_migration_ends,
                LoadBalancer.shards_are_not_overloaded,
                LoadBalancer.migrations_do_not_overshoot,
                LoadBalancer.balance_is_reached,
            ),
        ),
        Section(
            "Topology state machine",
            (
                TopologyControl.a_rebuild_is_done_when_it_has_streamed,
                TopologyRebuild.a_rebuilt_node_has_every_row,
                TopologyRebuild.a_rebuild_has_a_source,
                TopologyRebuild.the_named_datacenter_is_the_source,
                TopologyRebuild.nodes_that_are_down_do_nothing,
                TopologyRebuild.writes_are_stored_while_nodes_are_rebuilt,
                TopologyRebuild.writes_succeed_while_nodes_are_rebuilt,
                TopologyCluster.the_range_has_owners,
                TopologyCluster.clients_write_while_the_ring_changes,
                TopologyCluster.clients_read_while_the_ring_changes,
                TopologyCluster.writes_are_stored_while_the_ring_changes,
                TopologyCluster.reads_succeed_while_the_ring_changes,
                TopologyCluster.new_owners_are_in_the_new_ring,
                TopologyCluster.streaming_begins_when_writes_go_to_both,
                TopologyCluster.what_has_streamed_counts_for_its_operation,
                TopologyCluster.no_read_outlives_the_old_ring,
                TopologyCluster.a_node_that_is_down_does_nothing,
                TopologyCluster.a_barrier_waits_until_all_have_learned,
                TopologyCluster.a_passed_barrier_means_a_learned_fence,
                TopologyCluster.a_barrier_waits_for_older_requests,
                TopologyCluster.owners_are_in_the_ring,
                TopologyControl.nodes_follow_the_diagram,
                TopologyControl.nodes_that_left_are_kept,
                TopologyControl.the_topology_follows_its_table,
                TopologyControl.one_node_in_transition,
                TopologyControl.a_request_is_pending_until_it_is_taken_up,
                TopologyControl.requests_are_issued_at_any_time,
                TopologyControl.nodes_ask_to_join_at_any_time,
                TopologyControl.dead_nodes_can_be_replaced_at_any_time,
                TopologyControl.dead_nodes_can_be_removed_at_any_time,
                TopologyControl.nodes_can_be_rebuilt_at_any_time,
                TopologyControl.global_requests_are_issued_at_any_time,
                TopologyControl.a_pending_request_is_in_the_table,
                TopologyControl.nodes_begin_what_they_asked_for,
                TopologyControl.somebody_stays_where_a_node_goes,
                TopologyControl.dead_nodes_are_removed,
                TopologyControl.a_node_that_is_removed_is_dead,
                TopologyControl.a_dead_node_is_replaced,
                TopologyControl.ranges_are_streamed_between_live_nodes,
                TopologyControl.requests_use_both_rings_while_data_moves,
                TopologyControl.reads_move_when_all_is_streamed,
                TopologyControl.left_nodes_are_out_of_group0,
                TopologyControl.tokens_belong_to_nodes_of_the_ring,
                TopologyControl.who_stays_is_not_shut_down,
                TopologyControl.both_rings_differ_by_the_node_in_transition,
                TopologyControl.nodes_are_out_of_group0_when_nobody_needs_them,
                TopologyControl.a_node_bootstraps_with_a_committed_generation,
                TopologyControl.what_is_committed_is_to_be_published,
                TopologyControl.what_is_committed_stays_until_it_is_published,
                TopologyControl.generations_are_published,
                TopologyCoordinator.commits_follow_the_table,
                TopologyCoordinator.nodes_that_left_are_kept,
                TopologyNode.states_follow_the_diagram,
                TopologySessions.the_topology_follows_its_table,
                TopologySessions.done_means_done_by_all,
                TopologyTransition.states_are_of_the_nodes_that_they_are_for,
                TopologyTransition.states_follow_each_other_as_they_should,
                TopologyTransition.one_node_at_a_time,
                Group0.members_apply_the_same,
                Group0.what_was_told_is_stored_by_a_quorum,
                Group0.who_only_learns_makes_a_change,
                CdcGeneration.generations_go_one_way,
                CdcGeneration.committed_generations_are_published,
                CdcGenerations.generations_are_introduced,
                CdcGenerations.nodes_learn_of_generations,
                CdcPublication.a_node_joins_with_its_tokens_in_the_ring,
                CdcPublication.a_request_leaves_the_ring_alone,
                CdcPublication.a_transition_has_a_generation,
                CdcPublication.a_topology_change_goes_one_way,
                CdcPublication.one_topology_change_at_a_time,
                CdcPublication.topology_changes_do_not_wait_for_clients,
                CdcPublication.clients_see_committed_generations_only,
                CdcPublication.generations_are_described,
                ClusterViews.nodes_that_left_keep_nothing,
                TopologyChange.acknowledged_rows_are_read,
                TopologyChange.changes_are_in_the_generation_that_operates,
                TopologyChange.the_newcomer_follows_the_diagram,
                TopologyChange.clients_are_served_by_normal_nodes,
                TopologyChange.nodes_outside_of_the_ring_store_nothing,
            ),
        ),
        Section(
            "Load balancing",
            (
                TabletCluster.two_tablets_stream_at_once,
                TabletCluster.tablets_are_migrated_independently,
                TabletCluster.tablets_are_rebuilt_independently,
                TabletCluster.tablets_advance_independently,
                TabletCluster.barriers_wait_for_no_stream,
                TabletCluster.transitions_happen_in_their_track,
                TabletCluster.topology_changes_are_not_interrupted,
                TabletCluster.migrations_drain_before_a_topology_change,
                TabletCluster.topology_changes_happen,
                TabletCluster.topology_changes_are_requested_at_any_time,
                TabletResize.tablets_do_not_migrate_while_a_resize_is_finalized,
                LoadBalancer.two_migrations_stream_at_once,
                LoadBalancer.one_starts_while_another_streams,
                LoadBalancer.the_cluster_is_saturated,
                LoadBalancer.transitions_happen_in_their_track,
                LoadBalancer.nothing_starts_while_a_request_is_pending,
                LoadBalancer.topology_changes_are_not_overtaken,
                LoadBalancer.requests_are_pending_until_they_are_taken_up,
                LoadBalancer.topology_changes_happen,
                LoadBalancer.tracks_are_left,
                TopologyControl.tablets_move_in_their_tracks,
                TopologyControl.operations_on_nodes_wait_for_the_track,
                TopologyCoordinator.tablets_move_in_their_track,
                TopologyCoordinator.operators_are_answered_when_it_is_over,
                TopologyControl.tablets_are_balanced_where_there_is_no_work,
                TopologyControl.the_load_balancer_waits,
                ClusterViews.tablets_move_only_in_their_track,
                TopologyChange.tablets_move_in_their_track,
                TopologyChange.migrations_wait_for_requests,
                TopologyChange.a_request_waits_for_a_migration,
                TopologyChange.the_tablet_is_on_a_normal_node,
                TopologyChange.nodes_join,
            ),
        ),
        Section(
            "Tablet migration",
            (
                SharedFence.reads_see_acknowledged_writes,
                SharedFence.writes_succeed_while_both_change,
                TopologyChange.tablets_are_stored_by_their_replicas,
                TabletCluster.nothing_is_pending_at_rest,
                TabletCluster.replicas_are_ready_for_writes,
                TabletCluster.writes_reach_both_replica_sets,
                TabletCluster.writes_are_stored_while_tablets_move,
                TabletCluster.writes_succeed_while_tablets_move,
                TabletCluster.replicas_that_are_read_are_complete,
                TabletCluster.new_replicas_are_complete,
                TabletCluster.reads_use_the_new_replicas,
                TabletCluster.reads_succeed_while_tablets_move,
                TabletCluster.writes_have_left_the_old_replicas,
                TabletCluster.only_replicas_hold_data,
                TabletCluster.actions_are_done_when_replicas_say_so,
                TopologyCoordinator.stages_are_left_when_they_are_done,
                TopologyCoordinator.a_tablet_is_left_to_clean_up,
                TabletMigration.transition_has_a_kind,
                TabletMigration.nothing_is_remembered_at_rest,
                TabletMigration.neighbouring_stages_agree,
                TabletMigration.writes_use_the_sets_that_the_next_stage_presupposes,
                TabletMigration.every_replica_has_learned_a_stage_before_the_next,
                TabletMigration.the_action_of_a_stage_is_done_before_the_next,
                TabletRepair.what_the_coordinator_knows_belongs_to_the_stage,
                TabletReplicas.writes_reach_both_replica_sets,
                TabletReplicas.writes_are_stored_while_replicas_change,
                TabletReplicas.writes_succeed_while_replicas_change,
                TabletReplicas.new_replicas_are_complete,
                TabletReplicas.only_replicas_hold_data,
                TabletResize.only_replicas_store_rows,
                TabletResize.a_tablet_has_one_transition_at_a_time,
                IntranodeMigration.writes_reach_both_shards,
                IntranodeMigration.reads_use_the_pending_shard,
                IntranodeMigration.the_pending_shard_is_complete,
                IntranodeMigration.nothing_uses_the_leaving_shard_at_last,
                IntranodeMigration.one_shard_holds_the_tablet_at_rest,
                StreamSession.complete_means_that_all_rows_arrived,
                StreamSession.rows_are_wanted_until_they_are_there,
                TopologyCluster.reads_see_acknowledged_writes,
                TopologyCluster.new_owners_are_complete,
                TopologyCluster.owners_store_what_was_acknowledged,
                TopologyCluster.nodes_keep_what_is_newest,
                TopologyCluster.what_is_acknowledged_stays_so,
                TopologyCluster.writes_succeed_while_the_ring_changes,
                Fencing.stages_leave_nothing_older_behind,
                ViewDestinations.nothing_is_lost_by_a_migration,
                ViewStaging.standings_change_by_migrations,
                ClusterViews.rows_are_streamed_when_asked_for,
            ),
        ),
        Section(
            "Topology state persistence table", (TopologyControl.a_generation_waits_for_its_commit,)
        ),
    ),
)
