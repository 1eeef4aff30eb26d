"""Group0's modelled log, with listeners: they learn each entry as it is committed, before any node does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.impl.group0 import Commit, Committed, Entry, Outcome
from stagewright.impl.group0.simulated import ModelledLog

_Listeners = list[Callable[[Entry], None]]


@dataclass
class HeardLog(ModelledLog):
    """`careless` is a mistake to build group0 with: commits whose state is not the expected one count."""

    listeners: _Listeners = field(default_factory=_Listeners)
    careless: bool = False

    def append(self, request: Commit) -> Outcome:
        """What the log makes of a request at this moment."""
        if self.careless and not self._is_known(request):
            request = Commit(self.head, request.id, request.command, request.term)
        before = self.head
        outcome = super().append(request)
        if isinstance(outcome, Committed) and self.head != before:
            for listener in self.listeners:
                listener(self.entries[-1])
        return outcome

    def _is_known(self, request: Commit) -> bool:
        return isinstance(self.refusal(request), Committed)
