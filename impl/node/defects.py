"""Known ways to build a node wrongly, for tests that show that they are noticed.

A defect is no switch of the command line: only a test can build a node with one.
"""

from __future__ import annotations

from enum import Enum, auto


class Defect(Enum):
    """One mistake that an implementation could make."""

    barrier_asks_nobody = auto()  # the coordinator counts a barrier as passed at once
    barrier_of_before_counts = auto()  # of the same version, that did not ask who takes part since
    barrier_does_not_learn = auto()  # a node acknowledges a barrier with what it knows
    barrier_does_not_drain = auto()  # a node acknowledges while older requests are going on
    fence_is_ignored = auto()  # replicas accept requests of any version
    scans_are_not_fenced = auto()  # though reads of single rows are
    scans_ask_one_replica = auto()  # whatever the level
    session_is_not_checked = auto()  # rows are streamed whatever became of the session
    writes_skip_pending = auto()  # writes go to the old ring alone
    pending_is_not_awaited = auto()  # a write counts without the pending replicas
    reads_use_the_new_ring_early = auto()  # as soon as writes go to both
    streaming_misses_rows = auto()  # every third row is left out
    streaming_from_one_source = auto()  # which may lack what the others acknowledged
    streaming_is_skipped = auto()  # a node says that it has streamed, and has not
    streamed_rows_are_not_synced = auto()  # before a node says that it has streamed them
    sources_lag_behind = auto()  # they give rows before they know what the node knows that asks
    given_up_sources_are_asked = auto()  # for rows, though they are to be removed or replaced
    late_answers_count = auto()  # of orders of an earlier term, for those that have their number
    agreeing_reads_leave_pending_out = auto()  # the replicas that come do not get what was read
    sync_is_forgotten = auto()  # a replica answers before the row is on the disk
    cleanup_drops_owned_rows = auto()  # a cleanup that looks at the ring of before
    stale_plans_are_committed = auto()  # though something was committed since they were made
    limits_are_ignored = auto()  # of the balancer: shards stream as much as would help
    compare_and_set_is_ignored = auto()  # a commit does not care which state it follows
    features_are_not_checked = auto()  # a node is let in that lacks what the cluster uses
    leaves_are_not_checked = auto()  # a node is let go that others cannot stand in for
    rows_of_left_nodes_are_dropped = auto()  # a node that left is forgotten by the tables
    one_answer_less = auto()  # a write counts when one of its replicas has not answered yet
    timeouts_acknowledge = auto()  # a write of which nothing is heard is said to be written
    writes_use_the_new_ring_early = auto()  # and leave the old one out, while reads still use it
    reads_are_not_drained = auto()  # a node acknowledges while older reads are going on
    fence_is_not_spread = auto()  # the coordinator does not wait until the fence is known
    joining_node_is_not_asked = auto()  # a barrier asks the normal nodes only
    tombstones_are_not_streamed = auto()  # as if a deleted row were no row
    rows_between_chunks_are_lost = auto()  # the next chunk begins one row too late
    leaving_replicas_suffice = auto()  # a write counts that nobody who stays has on a quorum
    log_takes_the_newest_generation = auto()  # as soon as it is committed, it is logged to
    log_goes_with_the_row = auto()  # to the replicas of the row, whoever has the stream
    log_skips_pending = auto()  # nodes that gain the range get no log rows
    cut_off_nodes_write_to_logs = auto()  # to streams that are known, however long ago
    log_window_is_open = auto()  # any timestamp is let through
    log_rows_are_sent_apart = auto()  # in messages of their own, also to who stores both rows
    log_rows_are_stored_apart = auto()  # a replica writes the two rows in two batches
    log_takes_the_stream_of_the_key = auto()  # by its hash, as if streams had no places
    # old versions go before other replicas have newer ones
    superseded_rows_are_not_awaited = auto()
    newest_versions_are_removed = auto()  # with those that they have replaced
    # with the versions that they have replaced, as soon as those go
    tombstones_are_removed = auto()
    rows_settle_before_views = auto()  # others are told of a version that views may not have yet
    rows_settle_unsynced = auto()  # or that is not on the disk yet
    log_rows_expire_early = auto()  # after an eighth of the time for which they are kept
    generations_are_cleared_early = auto()  # as soon as another one is committed
    only_the_last_generation_is_loaded = auto()  # by a node that starts
    generations_are_not_queued = auto()  # to be published, as they are committed
    readers_are_sent_back = auto()  # to older streams, by a node that has not learned of newer ones
    generations_precede_each_other = auto()  # a timestamp that is before that of the last one
    streams_are_limited = auto()  # to one of a vnode, however many shards its owner has
    images_are_of_one_replica = auto()  # the first that answers, whatever it lacks
    images_may_be_newer = auto()  # than the write that they are of
    logs_stay_behind = auto()  # a tablet moves without the rows of its log
    streams_outlive_their_tablets = auto()  # these are split or merged, and no new streams begin
    unready_replica_answers = auto()  # a node that starts answers before it has learned
    tablet_streaming_is_skipped = auto()  # a tablet moves without its rows
    tablet_cleanup_leaves_rows = auto()  # a node says that it has cleaned up, and has not
    streaming_does_not_wait = auto()  # until every node writes to both replica sets of a tablet
    old_reads_are_not_awaited = auto()  # writes leave the replicas that are still read
    cleanup_does_not_wait = auto()  # the leaving replica is cleaned up while it is written to
    waived_barriers_move_no_fence = auto()  # though who seems to be down may live and read
    # in a barrier: they may live, cut off, and know no fence
    fence_skips_nodes_that_seem_down = auto()
    # for a tablet's barrier, as it was given up when that began
    who_is_spared_again_is_not_asked = auto()
    lost_rows_are_kept = auto()  # of tablets that were rebuilt while the node was given up
    repairs_are_skipped = auto()  # a replica says that it has repaired a tablet, and has not
    repairs_ask_one_replica = auto()  # the others do not get what they lack
    repairs_fetch_from_one_replica = auto()  # which may lack what another one has
    any_dead_replica_refuses = auto()  # a request for which enough others are alive
    pending_replicas_are_alive = auto()  # when a request is to be refused, or not
    refused_writes_are_sent = auto()  # to the replicas that are alive
    who_was_down_stays_down = auto()  # though its failure detector has seen it again
    quorums_are_of_the_table = auto()  # though its tablets have another number of replicas yet
    removed_replicas_are_not_repaired = auto()  # nor are the others, before they go
    removed_replicas_keep_rows = auto()  # they are not cleaned up
    splits_are_not_prepared = auto()  # nobody is asked whether it is ready for one
    halves_of_tablets_are_mixed_up = auto()  # the map of a split table is in another order
    apart_tablets_are_merged = auto()  # though they lie on different nodes
    resizes_do_not_await_the_fence = auto()  # tablets are split or merged before it is known
    resizes_do_not_await_requests = auto()  # of tablets: what they ask for goes with these
    end_is_not_awaited = auto()  # a migration is over before every node knows its last stage
    view_updates_are_sent_unsynced = auto()  # before the base row is on the disk
    view_updates_go_to_the_first_replica = auto()  # of the view, wherever the base replica stands
    view_updates_skip_pending = auto()  # a view tablet moves without what is updated meanwhile
    an_answer_counts_for_all = auto()  # of a call, whichever tasks were finished
    a_call_joins_with_all_its_tasks = auto()  # a batch that has some of them
    aborted_tasks_are_removed = auto()  # though they wait for the end of an operation
    terms_are_not_compared = auto()  # a worker works for coordinators of any term
    old_view_rows_are_kept = auto()  # when the value of a base row changes
    view_updates_are_not_kept = auto()  # a crash loses those that have not arrived
    hints_of_lost_tablets_are_loaded = auto()  # by a node that was given up and comes back
    view_building_does_not_wait = auto()  # a task is finished when its updates are sent
    view_building_makes_timestamps = auto()  # rows are put into a view as of now
    view_building_skips_rows = auto()  # the first of each chunk but the first
    view_building_does_not_flush = auto()  # sstables are read that miss what is in the memtable
    views_of_the_end_are_flushed = auto()  # those that came while a memtable was written out, too
    view_updates_change_sides = auto()  # at once, as places in lists of replicas change
    view_rows_are_deleted_in_pairs = auto()  # also those that others have put there
    merged_tablets_have_their_places = auto()  # for what is built on them, which began before
    late_rows_are_not_handed_over = auto()  # those that only a replica has which a tablet leaves
    spared_nodes_keep_silent = auto()  # of tablets that are rebuilt without them
    spared_view_replicas_keep_silent = auto()  # the same of tablets of views
    late_rows_update_their_partners = auto()  # of now, though others had them with other partners
    nothing_is_taken_back = auto()  # out of views, of what a lost replica has put there alone
    tasks_of_undone_moves_stay_aborted = auto()  # though nothing replaces them
    tasks_stay_behind = auto()  # when their tablet has moved
    tasks_outlive_their_tablet = auto()  # when it is split or merged
    recreated_views_are_the_same = auto()  # as the dropped ones of their names, by id
    dropped_rows_are_not_looked_for = auto()  # of tables, by a node that was down then
    rows_come_to_dropped_tables = auto()  # whoever is late, or cut off, sends some
    rows_come_to_truncated_tables = auto()  # that are from before
    truncations_are_not_awaited = auto()  # by the coordinator: nodes have rows of before
    recreated_tables_are_the_same = auto()  # as the dropped ones of their names, by id
    statements_act_on_names = auto()  # on what has the name when they are carried out, however late
    last_tablets_move_silently = auto()  # nobody says that a node holds none any more
    tablets_that_come_are_counted = auto()  # as those of a node that a view leaves without any
    tasks_outlive_their_view = auto()  # a view is dropped, and its tasks are not
    staging_is_forgotten = auto()  # whatever comes by a stream goes to the base directory
    staging_is_not_looked_for = auto()  # by a node that starts
    staging_stays_behind = auto()  # a tablet moves, and what was staged is base at its new replica
    staging_is_registered_late = auto()  # streaming ends before there is a task
    # by a replica that has no view replica yet: updates are lost
    staging_is_processed_early = auto()
    staged_rows_do_not_wait = auto()  # they leave staging when their updates are sent
    staging_goes_unsettled = auto()  # with a replica that nobody follows
    repeated_cleanups_settle_again = auto()  # what was staged of a tablet that is gone
    staging_tasks_stay_behind = auto()  # when their tablet has moved
