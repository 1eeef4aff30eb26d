"""Running automata, one a thread for each `Automaton`: what one task has found out, the next one knows.

To find a step between two sets of possible states costs thousands of times what it takes to look it up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
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
    found = _here.known.get(source.identity)
    return _kept(source.identity, _begun(source) if found is None else found)


@overload
def anew(source: Automaton) -> Determinised: ...
@overload
def anew(source: Source) -> Running: ...
def anew(source: Source) -> Running:
    """The same, of which nothing is numbered yet: what this thread has found out is forgotten."""
    found = _here.known.get(source.identity)
    if isinstance(source, Candidates):
        return _kept(source.identity, Product(source, tuple(map(_anew, source.members))))
    renewed = found.renewed() if isinstance(found, Determinised) else Determinised(source)
    return _kept(source.identity, renewed)


def _kept(identity: str, running: Running) -> Running:
    known = _here.known
    known[identity] = running
    known.move_to_end(identity)
    if len(known) > _KEPT_MAX:
        known.popitem(last=False)
    return running


def _anew(automaton: Automaton) -> Determinised:
    return anew(automaton)


def _begun(source: Source) -> Running:
    if isinstance(source, Candidates):
        return Product(source, tuple(map(_of_member, source.members)))
    return Determinised(source)


def _of_member(automaton: Automaton) -> Determinised:
    return of_this_thread(automaton)


def beside(automaton: Automaton) -> Determinised:
    """The automaton for what is looked at beside the traces; so many states may be numbered in all."""
    identity = f"{automaton.identity}, beside"
    found = _here.known.get(identity)
    most = automaton.max_states + _STATES_BESIDE
    if not isinstance(found, Determinised) or len(found.states) > most // 2:
        found = Determinised(automaton, most=most)
    _kept(identity, found)
    return found
