"""Features of the cluster: what each node must know of before it is let in.

A cluster enables what its founders know of, which stays so; a node of an older release that lacks one of them is
rejected. The names of features and columns are ScyllaDB's.
"""

from __future__ import annotations

from stagewright.impl.node.messages import HostInfo

FEATURES = (
    "COLOCATED_TABLETS",
    "TABLETS",
    "TABLET_MERGE",
    "TABLET_REPAIR_SCHEDULER",
    "VIEW_BUILDING_COORDINATOR",
)
"""Those of this release."""


def supported(host: HostInfo) -> list[str]:
    """The features of which a node knows."""
    return [name for name in FEATURES if name != host.lacks]
