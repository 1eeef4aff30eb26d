"""Words of inputs that tell the states of a Mealy machine apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stagewright.checker.conformance.fault_domain.mealy import Mealy, Numbers

Word = tuple[int, ...]


@dataclass(frozen=True)
class Separation:
    """For each state, the words that tell it from all others; two states share one that tells them apart.

    `alike`: how many pairs of states no word tells apart, though more is said of one than of the other.
    """

    words: tuple[frozenset[Word], ...]
    alike: int

    @property
    def all_words(self) -> frozenset[Word]:
        """A characterization set: it tells every two states apart."""
        return frozenset[Word]().union(*self.words)


def separation(machine: Mealy) -> Separation:
    """Few, short words. States that look different need none: they are told apart by the empty word."""
    length, first = _shortest(machine)
    chosen: list[set[Word]] = [set() for _ in range(machine.states)]
    known: list[Word] = []
    one, other = np.nonzero(np.triu(length, 1) > 0)
    for k in np.argsort(-length[one, other], kind="stable"):
        s, t = int(one[k]), int(other[k])
        if any(separates(machine, word, s, t) for word in chosen[s] & chosen[t]):
            continue
        word = next((w for w in known if separates(machine, w, s, t)), None)
        if word is None:
            word = _word(machine, first, s, t)
            known.append(word)
        chosen[s].add(word)
        chosen[t].add(word)
    alike = int(np.count_nonzero(np.triu(length < 0, 1)))
    return Separation(tuple(map(frozenset, chosen)), alike)


def separates(machine: Mealy, word: Word, s: int, t: int) -> bool:
    """Whether two states answer differently to a word that is said of both."""
    for i in word:
        after_s, after_t = int(machine.after[s, i]), int(machine.after[t, i])
        if after_s < 0 or after_t < 0:
            return False
        if machine.refused[s, i] != machine.refused[t, i]:
            return True
        s, t = after_s, after_t
        if machine.seen[s] != machine.seen[t]:
            return True
    return False


def _shortest(machine: Mealy) -> tuple[Numbers, Numbers]:
    """For each two states, how many inputs tell them apart (-1: none do), and the first of them."""
    length = np.where(machine.seen[:, None] != machine.seen[None, :], 0, -1)
    first = np.full(length.shape, -1, dtype=np.int64)
    for k in range(1, machine.states + 1):
        before = length.copy()
        for i in range(machine.inputs):
            after, refused = machine.after[:, i], machine.refused[:, i]
            said = (after[:, None] >= 0) & (after[None, :] >= 0)
            then = before[np.maximum(after, 0)][:, np.maximum(after, 0)] >= 0
            new = said & (length < 0) & ((refused[:, None] != refused[None, :]) | then)
            length[new], first[new] = k, i
        if np.array_equal(before, length):
            break
    return length, first


def _word(machine: Mealy, first: Numbers, s: int, t: int) -> Word:
    word: list[int] = []
    while machine.seen[s] == machine.seen[t]:
        i = int(first[s, t])
        word.append(i)
        if machine.refused[s, i] != machine.refused[t, i]:
            break
        s, t = int(machine.after[s, i]), int(machine.after[t, i])
    return tuple(word)
