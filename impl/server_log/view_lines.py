"""The lines of view building as nodes do it: calls of the coordinator, batches of the worker.

The words are those of ScyllaDB's source as of 2026-08; a worker writes on the shard of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.view import View
from stagewright.impl.server_log.lines import (
    VIEW_COORDINATOR,
    VIEW_WORKER,
    Level,
    qualified,
    table_id,
)
from stagewright.impl.views.building.records import Record, What
from stagewright.impl.views.building.tasks import BUILD, Place

Say = Callable[[str, str, Level, int], None]
"""Write a line of a logger: its words, how much it matters, the shard."""


class ViewLines:
    """The lines of one life of a node."""

    def __init__(self, say: Say, view: Callable[[], View]) -> None:
        self._say = say
        self._view = view
        self._calls: dict[Place, tuple[str, ...]] = {}
        self._batches: dict[Place, set[str]] = {}

    def log(self, record: Record) -> None:
        """The node records something."""
        place = record.place
        if record.what is What.stage:  # what comes at once is an sstable of its own
            text = (
                f"Saving 1 sstables for table {table_id(record.base)} to create view building tasks"
            )
            self._say(VIEW_WORKER, text, Level.DEBUG, 0)
            return
        if place is None:
            self._of_flush(record)
            return
        replica = f"{host_id_of(place.replica.host)}:{place.replica.shard}"
        match record.what:
            case What.send:
                self._calls[place] = record.tasks
                text = f"Attaching to started tasks {_list(record.tasks)} on replica {replica}"
                self._say(VIEW_COORDINATOR, text, Level.DEBUG, 0)
            case What.give_up if self._calls.get(place) == record.tasks:
                text = f"Work on tasks {_list(record.tasks)} on replica {replica}, failed with error: no answer"
                self._say(VIEW_COORDINATOR, text, Level.WARN, 0)
            case What.start:
                self._batches[place] = {*record.tasks}
                text = f"Starting view building batch for tasks {_list(record.tasks)}. Task type {record.type}"
                self._of_worker(place, text)
                if record.type == BUILD:
                    reads = f"Starting range {self._range(place)} building for base table: {qualified(place.base)}"
                    self._of_worker(place, reads, Level.INFO)
            case What.finish:
                self._batches.pop(place, None)
                if record.type == BUILD:
                    built = (
                        f"Built range {self._range(place)} for base table: {qualified(place.base)}"
                    )
                    self._of_worker(place, built, Level.INFO)
                self._of_worker(place, f"Batch with tasks {_list(record.tasks)} finished")
            case What.leave if place in self._batches:
                self._batches[place] -= {*record.tasks}
                if not self._batches[place]:
                    del self._batches[place]
                    self._of_worker(place, "Batch aborted")
                    self._of_worker(place, "Batch with tasks [] finished")
            case _:
                pass

    def _of_flush(self, record: Record) -> None:
        """A worker has the memtable of a base table written out before it reads sstables."""
        name = qualified(record.base)
        if record.what is What.begin_flush:
            # The misspelling is upstream's.
            texts = [
                f"Awaiting penging writes and streams on base table {name}",
                f"Flushing base table {name}",
            ]
        else:
            texts = [
                f"Flushed base table {name} for views: {{{', '.join(map(table_id, record.views))}}}"
            ]
        for text in texts:
            self._say(VIEW_WORKER, text, Level.DEBUG, 0)

    def _range(self, place: Place) -> str:
        row = self._view().tablet_with(place.base, place.last_token)
        return f"({'?' if row is None else row.range[0]}, {place.last_token}]"

    def _of_worker(self, place: Place, text: str, level: Level = Level.DEBUG) -> None:
        self._say(VIEW_WORKER, text, level, place.replica.shard)


def _list(tasks: Iterable[str]) -> str:
    return f"[{', '.join(tasks)}]"
