"""Mistakes put back into `BackfillJob`: what is never done."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.spec import Bool
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "Z15",
    "yugabyte-db #33207",
    breaks=(BackfillJob.every_index_can_be_usable_or_gone, BackfillJob.unfinished_work_is_recorded),
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class ReportsEndTheAlter(BackfillJob):
    """A tablet reports its version while the job runs. The master finds nothing to launch, for the job is
    running already, and takes the table for altered: RUNNING. The next leader does not look for a job there.
    """

    def _nothing_to_backfill(self) -> Bool:
        return super()._nothing_to_backfill() | self.is_backfilling


@known_bug(
    "Z17",
    "yugabyte-db #32976, #33009",
    breaks=(
        BackfillJob.every_index_can_be_usable_or_gone,
        BackfillJob.splitting_is_off_only_during_a_job,
    ),
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class BackfillingStaysLatched(BackfillJob):
    """A write to the sys catalog fails at the end of the job. The error path returns before `is_backfilling`
    is cleared, and no leader but another one ever takes the job up again.
    """

    def _leave_job(self) -> None:
        self._forget_memory()


BUGS = known_bugs_in(globals())
