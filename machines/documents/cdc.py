"""Design document 003, "CDC": the promises in the words of its sections."""

from __future__ import annotations

from stagewright.machines.documents.document import Document, Section
from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration
from stagewright.machines.scylladb.cdc.cdc_generations import CdcGenerations
from stagewright.machines.scylladb.cdc.cdc_log import CdcLog
from stagewright.machines.scylladb.cdc.cdc_mapping import CdcMapping
from stagewright.machines.scylladb.cdc.cdc_publication import CdcPublication
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.machines.systems.topology_change import TopologyChange

CDC = Document(
    "003",
    "CDC",
    "scylla/docs/dev/cdc.md",
    (
        Section(
            "Stream IDs",
            instead="How an id is made of bits: `machines/scylladb/cdc/cdc_streams.py`, tested with vectors.",
        ),
        Section(
            "Generations",
            (
                CdcGeneration.generations_are_used_with_their_timestamp,
                CdcGeneration.generations_are_used_before_they_are_published,
                CdcGeneration.generations_are_used_until_the_next_one_operates,
                CdcGenerations.generations_start_in_the_order_of_their_introduction,
                CdcGenerations.log_writes_use_the_generation_that_operates,
                CdcGenerations.decided_timestamps_are_kept,
                CdcGenerations.timestamps_are_kept,
                CdcGenerations.old_generations_are_not_prepared_again,
                CdcGenerations.a_generation_operates_after_the_first,
                CdcMapping.every_token_has_a_stream,
            ),
        ),
        Section(
            "The generation's mapping",
            (
                CdcLog.replicas_receive_both_writes_or_none,
                CdcLog.writes_are_received_while_nodes_join,
                CdcLog.writes_go_to_the_replicas_of_their_tokens,
                CdcLog.log_rows_go_to_streams_of_their_generation,
                CdcMapping.ranges_have_a_stream_for_each_shard,
                CdcMapping.streams_lie_in_their_range,
                CdcMapping.base_and_log_rows_are_in_one_vnode,
                CdcMapping.base_and_log_rows_are_on_one_shard,
            ),
        ),
        Section(
            "Generation switching",
            (
                TopologyTransition.tokens_wait_for_their_generation,
                CdcGenerations.writes_without_a_timestamp_are_accepted,
                CdcGenerations.timestamps_are_in_the_window,
                CdcGenerations.timestamps_in_the_window_are_accepted,
                CdcGenerations.decisions_in_the_window_are_applied,
                CdcGenerations.changes_are_written_ahead_of_their_generation,
                CdcGenerations.conditional_writes_are_decided_at_any_time,
                CdcGenerations.prepared_generations_are_committed,
                CdcGenerations.nodes_are_prepared_when_they_are_reached,
                CdcGenerations.data_is_read_whoever_is_cut_off,
                CdcGenerations.nodes_learn_whoever_else_does,
                CdcGenerations.nodes_learn_whatever_is_published,
                CdcGenerations.generations_wait_for_no_write,
                CdcGenerations.nodes_start_without_the_data,
                CdcGenerations.what_is_given_up_is_refused_no_longer,
                CdcLog.generations_get_their_timestamp_at_once,
                CdcGenerations.prepared_generations_become_usable,
                CdcLog.writes_are_accepted_while_nodes_join,
                CdcLog.joins_leave_rows_readable,
                CdcLog.nodes_join,
                CdcLog.new_nodes_are_written_to_at_once,
                CdcLog.nodes_join_whatever_is_written,
                CdcLog.nodes_join_after_their_generations,
                CdcMapping.ranges_refine_the_vnodes,
                CdcMapping.a_join_is_of_a_node_with_a_token,
                CdcMapping.joins_only_add_tokens,
                CdcMapping.vnodes_are_split,
                CdcMapping.nodes_join_with_any_token,
                CdcPublication.tokens_join_after_their_generation,
                CdcPublication.tokens_come_with_a_join_and_go_with_its_failure,
                CdcPublication.each_topology_change_has_a_generation_of_its_own,
                CdcGenerations.generations_do_not_wait_for_each_other,
                CdcGenerations.nodes_join_whatever_is_published,
                CdcGenerations.nodes_gossip_whatever_is_published,
                CdcGenerations.data_is_written_whatever_is_published,
                CdcGenerations.generations_are_committed_whatever_is_published,
                CdcGenerations.nodes_join_after_others_were_given_up,
                TopologyChange.changes_are_read_with_their_rows,
                TopologyChange.replicas_receive_both_writes_or_none,
                TopologyChange.what_is_streamed_is_colocated,
                TopologyChange.colocation_is_lost_for_a_while,
                TopologyChange.generations_operate,
            ),
        ),
        Section(
            "Streams description table",
            (
                CdcGenerations.clients_see_introduced_generations_only,
                CdcGenerations.descriptions_have_streams,
                CdcGenerations.generations_are_described,
                CdcGenerations.generations_are_described_whatever_is_on_its_way,
                CdcGenerations.whoever_has_learned_describes,
                CdcGenerations.clients_see_a_generation_before_it_operates,
                CdcPublication.clients_see_a_generation_while_its_node_joins,
                CdcPublication.generations_are_published_whatever_the_topology_does,
                CdcLog.changes_are_read_with_the_rows,
            ),
        ),
        Section(
            "TODO: expired generations",
            (
                CdcGenerations.descriptions_are_kept,
                CdcGenerations.clients_can_read_what_is_cleared,
                CdcGenerations.old_generations_are_cleared,
                CdcGenerations.old_generations_are_cleared_whoever_is_cut_off,
            ),
        ),
    ),
)
