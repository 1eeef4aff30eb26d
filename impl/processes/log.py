"""The log of commands of a cluster's directory: in SQLite, or in the etcd that its settings name."""

from __future__ import annotations

from stagewright.impl.group0 import Group0
from stagewright.impl.processes.layout import Layout

POLL = 0.03  # seconds between looks at the log in SQLite


def group0_of(layout: Layout) -> Group0:
    """Access to the log, to be closed by the caller.

    Raises:
        Group0Error: the file is something else, or cannot be opened.
    """
    settings = layout.settings()
    if settings.etcd:
        from stagewright.impl.group0.etcd import EtcdGroup0
        from stagewright.impl.group0.gateway import Gateway

        return EtcdGroup0(Gateway(settings.etcd), f"/stagewright/{settings.name}/group0/")
    from stagewright.impl.group0.sqlite import SqliteGroup0

    return SqliteGroup0(layout.directory / "group0.sqlite", poll=POLL)
