"""What view building says of itself, for those who record it: a node's log would have a line of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.impl.views.building.tasks import BUILD, Place


class What(Enum):
    """What has happened."""

    # the coordinator
    send = auto()  # it calls a worker
    answer = auto()  # the worker has answered that tasks are finished
    give_up = auto()  # the call has failed, or nothing is heard of it
    # the worker
    stage = auto()  # rows of a tablet replica have come that wait for a task
    begin_flush = auto()
    end_flush = auto()
    start = auto()  # a batch starts
    attach = auto()  # a call joins a batch, or finds tasks completed
    finish = auto()
    leave = auto()  # tasks that are aborted or gone leave their batch


@dataclass(frozen=True)
class Record:
    """One thing, of tasks of a type; `term` is that of the call where there is one."""

    what: What
    tasks: tuple[str, ...] = ()
    place: Place | None = None
    term: int = 0
    base: str = ""
    views: tuple[str, ...] = ()  # for which the base table is flushed
    type: str = BUILD
    rows: int = 0  # that have come into staging


OnRecord = Callable[[Record], None]
