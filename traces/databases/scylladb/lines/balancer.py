"""The lines of ScyllaDB's load balancer that matter to others: after a resize, tablet ids begin anew.

A decision is planned again whenever its commit is lost, so no run is ruled out by these lines: they
are no events, and a resize is reported in a note.
"""

from __future__ import annotations

from stagewright.traces.databases.scylladb.log.patterns import UUID, form

RESIZE = "resize"  # the tablet ids of a table begin anew
DECISION = "resize decision"

_LOGGER = ("load_balancer", "raft_topology")
_TABLE = rf"(?P<table>{UUID})"

FORMS = (
    form(
        RESIZE,
        _LOGGER,
        "Finalizing resize decision for table ",
        rf"Finalizing resize decision for table {_TABLE}",
    ),
    form(RESIZE, _LOGGER, "Split tablets for table ", rf"Split tablets for table {_TABLE}, "),
    form(RESIZE, _LOGGER, "Merge tablets for table ", rf"Merge tablets for table {_TABLE}, "),
    form(
        DECISION,
        _LOGGER,
        "Emitting resize decision of type ",
        rf"Emitting resize decision of type \w+ for table {_TABLE}",
    ),
    form(
        DECISION,
        _LOGGER,
        "Generating resize decision for table ",
        rf"Generating resize decision for table {_TABLE} of type ",
    ),
    form(
        DECISION,
        _LOGGER,
        "Revoking resize decision for table ",
        rf"Revoking resize decision for table {_TABLE}",
    ),
)
