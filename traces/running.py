"""Running automata, one a thread for each `Automaton`: what one task has found out, the next one knows.

To find a step between two sets of possible states costs thousands of times what it takes to look it up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import overload

from stagewright.traces.automaton import Automaton
from stagewright.traces.candidates import Candidates, Product, Running, Source
from stagewright.traces.determinised import Determinised

_KEPT_MAX = 128  # automata; a run over all shipped machines has about half as many

_STATES_BESIDE = 100_000


class _Here(threading.local):
    """What this thread has running."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, Running] = OrderedDict()


_here = _Here()


@overload
def of_this_thread(source: Automaton) -> Determinised: ...
@overload
def of_this_thread(source: Source) -> Running: ...
def of_this_thread(source: Source) -> Running:
    """The automaton, or all candidates at once, as this thread runs them."""
    known = _here.known
    found = known.get(source.identity)
    if found is None:
        found = known[source.identity] = _begun(source)
        if len(known) > _KEPT_MAX:
            known.popitem(last=False)
    known.move_to_end(source.identity)
    return found


def _begun(source: Source) -> Running:
    if isinstance(source, Candidates):
        return Product(source, tuple(map(_of_member, source.members)))
    return Determinised(source)


def _of_member(automaton: Automaton) -> Determinised:
    return of_this_thread(automaton)


def beside(automaton: Automaton) -> Determinised:
    """The automaton for what is looked at beside the traces: it takes nothing from the budget of their replay."""
    most = automaton.max_states + _STATES_BESIDE
    identity = f"{automaton.identity}, beside"
    return of_this_thread(replace(automaton, max_states=most, identity=identity))
