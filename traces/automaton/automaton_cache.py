"""Running automata, one a thread for each source: what one task has found out, the next one knows.

To find a step between two sets of possible states costs thousands of times what it takes to look it up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import overload

from stagewright.traces.automaton.nfa import Automaton
from stagewright.traces.automaton.product_automaton import Candidates, Product, Running, Source
from stagewright.traces.automaton.subset_automaton import Determinised

_KEPT_MAX = 128  # automata; a run over all shipped machines has about half as many


class _Here(threading.local):
    """What this thread has running."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, Running] = OrderedDict()

    def keep(self, identity: str, running: Running) -> None:
        """Keep what runs, and give up what was not asked for longest."""
        self.known[identity] = running
        self.known.move_to_end(identity)
        if len(self.known) > _KEPT_MAX:
            self.known.popitem(last=False)


_here = _Here()


@overload
def of_this_thread(source: Automaton) -> Determinised: ...
@overload
def of_this_thread(source: Source) -> Running: ...
def of_this_thread(source: Source) -> Running:
    """The automaton, or all candidates at once, as this thread runs them."""
    found = _here.known.get(source.identity) or _begun(source)
    _here.keep(source.identity, found)
    return found


def beside(automaton: Automaton, what: str, most: int) -> Determinised:
    """The automaton for what is looked at beside the traces, in at most so many states."""
    identity = f"{automaton.identity}, {what}"
    found = _here.known.get(identity)
    if not isinstance(found, Determinised):
        found = Determinised(automaton, most=most)
    _here.keep(identity, found)
    return found


def renewed(running: Running) -> Running:
    """The same, of which nothing is numbered yet; who has the old one may go on with it."""
    if isinstance(running, Product):
        members = tuple(_renewed(member) for member in running.members)
        found: Running = Product(running.source, members)
        _here.keep(running.source.identity, found)
        return found
    return _renewed(running)


def _renewed(running: Determinised) -> Determinised:
    found = running.renewed()
    _here.keep(running.source.identity, found)
    return found


def _begun(source: Source) -> Running:
    if isinstance(source, Candidates):
        return Product(source, tuple(of_this_thread(member) for member in source.members))
    return Determinised(source)
