"""The machines of view building batches; their lines are among those of view building tasks."""

from __future__ import annotations

from stagewright.machines.recorded.logged_views import LoggedBatches, LoggedTask
from stagewright.traces.events.observability import Recording

SHARD = LoggedBatches.__name__
TASK = LoggedTask.__name__
MACHINES = (SHARD, TASK)
RECORDING = Recording(end_marked=False)
