"""What a system leaves out of `tablet-migration` where only its sound way matters: repair, failures, the way back.

`cluster_views.py` and `tablet.py` have all of it.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import restricted

LEFT_OUT = (
    TabletMigration.start_repair,
    TabletMigration.begin_rebuild_repair,
    TabletMigration.stream_after_repair,
    TabletMigration.end_repair,
    TabletMigration.finish_repair,
    TabletMigration.exclude,
    TabletMigration.make_unwanted,
    TabletMigration.fail_barrier,
    TabletMigration.retry_barrier,
    TabletMigration.fail_operation,
    TabletMigration.retry_operation,
    TabletMigration.give_up_before_streaming,
    TabletMigration.give_up_streaming,
    TabletMigration.fall_back,
    TabletMigration.give_up_after_fall_back,
    TabletMigration.revert,
    TabletMigration.finish_revert,
)
RESTRICTED = (
    restricted(
        TabletMigration.tablets_at_rest_can_be_moved,
        because="a replica moves here, and to a node that can have it; none is added",
    ),
)
