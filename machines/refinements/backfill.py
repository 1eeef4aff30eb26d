"""The log of a tablet as a view of its chunks; and the permissions of an index, which are the same everywhere."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet as T, Scan
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_rows import PromptIndex
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import Term, alike, every, refinement, some

C = BackfillChunks


@refinement(
    steps={
        C.ask: (T.ask_first, T.ask_next, T.ask_again, T.go_on),
        C.fail_index: T.fail,
        C.finish: T.finish,
        C.fail_over: T.take_over,
    },
)
def chunks_of_a_tablet(chunks: BackfillChunks, seen: T) -> None:
    """A log names the key that a chunk begins with; how it stands to the one before is history, not state."""
    succeeded = some(chunks.job[i] == Status.success for i in Index)
    alike(
        seen.scan == Scan.done,
        succeeded & every(chunks.job[i] != Status.in_progress for i in Index),
    )


L, P = BackfillLeaders, PromptIndex


@refinement(
    profiles={"": "ycql"},
    steps={
        L.record_failure: [P.fail_backfill, P.give_up],
        L.publish: [P.finish_backfill, P.publish],
    },
    seen_at={Server: 1},
    from_start=False,
)
def threads_move_an_index(leaders: BackfillLeaders, seen: PromptIndex) -> None:
    """Whichever thread writes, the permissions are those of one index: its tablet is one server."""
    seen.permission = leaders.permission
    seen.drop_requested = leaders.dropped


@refinement(
    profiles={"yugabyte-2.x": "ycql", "yugabyte-2026": "ycql"},
    at=({BackfillJob.aborts: 1, Index: 1, Tablet: 1},),
    seen_at={Server: 1},
)
def a_job_moves_its_indexes(job: BackfillJob, seen: PromptIndex, i: Term[Index]) -> None:
    """Altered in rounds, built by jobs and dropped meanwhile, an index has the permissions that it has by itself."""
    seen.permission = job.permission[i]
    alike(seen.drop_requested, job.dropped.has(i))


R = BackfillRpcs


@refinement(
    profiles={"yugabyte-2.x": "ycql", "yugabyte-2026": "ycql"},
    steps={
        R.delete_index: [
            *(P.learn, P.stop_writes),
            *(P.learn, P.stop_deletes),
            *(P.learn, P.delete_index),
        ],
    },
    at=({Index: 1, Request: 1},),
    seen_at={Server: 1},
    from_start=False,
)
def requests_do_not_move_an_index(rpcs: BackfillRpcs, seen: PromptIndex, i: Term[Index]) -> None:
    """Whatever becomes of requests and answers, an index goes from DO_BACKFILL where it would go without them."""
    seen.permission = rpcs.permission[i]
    alike(seen.drop_requested, rpcs.dropped.has(i))
