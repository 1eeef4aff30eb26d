"""What the master's log shows of a tablet of a backfill job, as a view of the machine with rows and checkpoints."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks
from stagewright.machines.yugabytedb.backfill.backfill_table import Index
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet as T, Scan
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import alike, every, refinement, some

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
