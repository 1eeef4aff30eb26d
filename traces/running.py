"""Running automata, one a thread for each `Automaton`: what one task has found out, the next one knows.

To find a step between two sets of possible states costs thousands of times what it takes to look it up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from stagewright.traces.automaton import Automaton
from stagewright.traces.determinised import Determinised

_KEPT_MAX = 128  # automata; a run over all shipped machines has about half as many

_STATES_BESIDE = 100_000


class _Here(threading.local):
    """What this thread has running."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, Determinised] = OrderedDict()


_here = _Here()


def of_this_thread(automaton: Automaton) -> Determinised:
    """The automaton as this thread runs it."""
    known = _here.known
    found = known.get(automaton.identity)
    if found is None:
        found = known[automaton.identity] = Determinised(automaton)
        if len(known) > _KEPT_MAX:
            known.popitem(last=False)
    known.move_to_end(automaton.identity)
    return found


def beside(automaton: Automaton) -> Determinised:
    """The automaton for what is looked at beside the traces: it takes nothing from the budget of their replay."""
    most = automaton.max_states + _STATES_BESIDE
    identity = f"{automaton.identity}, beside"
    return of_this_thread(replace(automaton, max_states=most, identity=identity))
