"""The steps that the masters of a cluster have taken, as traces for `stagewright validate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.stored_catalog import steps_in
from stagewright.impl.indexes.simulated.watcher import Watcher


@dataclass(frozen=True)
class Trace:
    """A file, and the sizes that its definition is to be checked with."""

    path: Path
    sizes: Mapping[str, int]


def watched(layout: IndexLayout) -> Watcher:
    """All steps of all masters in their order, checked by the definitions anew: `problems` has what they refuse."""
    tablets = layout.file().settings.tablets
    watcher = Watcher(tablets, by_master=True)
    path = layout.directory / "catalog.sqlite"
    for _, at, note in steps_in(path) if path.exists() else ():
        watcher.now = at
        watcher.hear(note)
    return watcher


def write_traces(layout: IndexLayout, directory: Path) -> tuple[Trace, ...]:
    """Write a file for each kind of definition."""
    directory.mkdir(parents=True, exist_ok=True)
    watcher, tablets = watched(layout), layout.file().settings.tablets
    sizes = {
        "permissions": {"Server": tablets},
        "job": {"Tablet": tablets, "Index": watcher.indexes},
        "tablets": dict[str, int](),
    }
    paths = watcher.write(directory, "masters")
    return tuple(Trace(path, sizes[path.stem]) for path in paths)
