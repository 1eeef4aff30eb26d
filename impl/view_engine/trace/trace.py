"""The trace of a node: what it did, as steps of definitions. Nothing is computed where nothing is kept."""

from __future__ import annotations

from stagewright.impl.recording.recording import Take


class Trace:
    """Of one node. Any thread may call it, if the sink allows that."""

    def __init__(self, sink: Take | None, node: str = "ns_1@127.0.0.1") -> None:
        """`sink` takes each step, None where no trace is kept."""
        self._sink = sink
        self.node = node

    @property
    def is_kept(self) -> bool:
        """Whether what is recorded goes anywhere."""
        return self._sink is not None

    def record(self, kind: str, entity: str, action: str, /, **arguments: bool) -> None:
        """A step; `kind` is one of `machines.recorded.OF_VIEW_ENGINE`."""
        if self._sink is not None:
            self._sink(kind, entity, self.node, action, **arguments)


NO_TRACE = Trace(None)
