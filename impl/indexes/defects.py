"""Known ways to build it wrongly, for tests that show that an oracle and the trace notice each of them."""

from __future__ import annotations

from enum import Enum


class Defect(Enum):
    """One mistake; its value says what is wrong, with the issue of YugabyteDB that had it."""

    old_transactions_are_not_awaited = "GetSafeTime answers while old ones are pending (#3471)"
    user_enforced_are_not_awaited = (
        "GetSafeTime answers while a user-enforced write may be under way"
    )
    markers_are_reclaimed_early = "a compaction drops delete markers during the backfill (#4211)"
    entries_are_written_now = "entries get the time of their writing (#25250)"
    only_the_first_page = "a tablet is done after its first page (#5031)"
    no_check_backwards = "rows that share a key at the time of the scan pass (#5811)"
    no_check_forwards = "a row that got the key after the scan is not seen (#6208)"
    last_write_of_a_time = "of a key handed over at one time, the later write counts (#30312)"
    row_itself_is_a_duplicate = "an entry of the same row is taken for another's (#3611)"
    intents_are_not_looked_at = "the unique check sees committed entries only"
    failure_is_of_all = "one index's violation fails the whole job (#6290)"
    lost_chunks_are_not_retried = "a chunk without an answer is waited for forever (#3627)"
    late_requests_count = "a late copy of an older request makes a tablet read its chunk again"
    old_answers_count = "an answer to an older request is taken for the last one's (#20510)"
    publishes_too_early = "the index is published when the first tablet is done"
    schemas_do_not_converge = "the next version is started before all tablets have the last (#6238)"
    readiness_is_not_tested = "a chunk is handled whatever the tablet knows of the index (#33123)"
    one_scan_an_index = "rows are read once for each index of a job"
    writes_wait_for_the_backfill = "writes to a tablet wait while a chunk is read (#26520)"
    waiting_is_credit = "rows that were not read in a second are read in the next"
    old_reads_are_served = "a read point before the scan finds nothing through the index (#32570)"
    permission_goes_back = "the end of a job publishes an index that was dropped (#8780)"
    requests_are_not_checked = "a statement planned under an old schema is taken (#4584)"
    tablets_have_times_of_their_own = "each tablet reads its rows at a time of its own"
    safe_time_is_the_least = "rows are scanned at the least of the safe times"
    success_is_reported_early = "SUCCESS is reported before every tablet reads the index (#6234)"
    reports_end_the_alteration = "the table is said to be altered while a job runs (#33207)"
    later_checkpoints_are_not_kept = "the checkpoints after the first of a tablet are not stored"
    unchanged_entries_are_left = "an update that leaves a value as it was skips its entry (#30653)"
    batches_are_not_checked_within = "two rows of a batch that share a key pass"
    checkpoint_skips_a_row = "the next chunk begins after the row that it should begin with"
    parents_take_writes = "a tablet that has split still takes writes"
    intents_stay_with_the_parent = (
        "what is pending when a tablet splits is not given to its children"
    )
    children_have_no_history = "a tablet that splits gives its children the newest versions alone"
    children_have_all_rows = "each child has all rows of its parent, and reads them for backfills"
    late_writes_stay_with_the_parent = (
        "what is written while a tablet's children are filled is not given to them"
    )
    splits_do_not_wait_for_jobs = "tablets split while a job reads, and one child answers (#6704)"
    parents_take_entries = "a tablet of an index that has split still takes entries"
    pending_entries_stay_with_the_parent = (
        "entries that are pending when a tablet of an index splits are not given to its children"
    )
    late_entries_stay_with_the_parent = "entries that are written while the children of an index's tablet are filled are not given to them"
    children_have_all_entries = "each child has all entries of its parent"
    splits_reclaim_markers = (
        "a tablet of an index that splits gives its children no delete markers, nor what they hide"
    )
    children_do_not_know_values = (
        "the children of an index's tablet check keys without the values that it had"
    )
    entries_follow_the_first_child = (
        "of an index's tablet that has split, the first child is sent all, and checks all keys"
    )
    refused_entries_count_as_written = (
        "entries of a scan that a tablet of an index has refused, as it has split, count as written"
    )
    checkpoints_count_for_children = "a tablet that had a checkpoint and has split counts as done"


Defects = frozenset[Defect]
