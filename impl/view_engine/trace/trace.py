"""The trace of a node: what it did, as steps of definitions. Nothing is computed where nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Recorded(NamedTuple):
    """One step of one entity."""

    machine: str  # as `machines.recorded.OF_VIEW_ENGINE` has it
    entity: str
    action: str
    arguments: tuple[tuple[str, bool], ...]
    node: str


class Trace:
    """Of one node. Any thread may call it, if the sink allows that."""

    def __init__(
        self, sink: Callable[[Recorded], object] | None, node: str = "ns_1@127.0.0.1"
    ) -> None:
        """`sink` gets each step, None where no trace is kept."""
        self._sink = sink
        self.node = node

    @property
    def is_kept(self) -> bool:
        """Whether what is recorded goes anywhere."""
        return self._sink is not None

    def record(self, machine: str, entity: str, action: str, **arguments: bool) -> None:
        """A step."""
        if self._sink is not None:
            self._sink(Recorded(machine, entity, action, tuple(arguments.items()), self.node))


NO_TRACE = Trace(None)
