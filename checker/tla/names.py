"""Names that TLA+ and TLC accept: ASCII identifiers, no reserved word, and none given twice."""

from __future__ import annotations

import re
import unicodedata

# Lamport, "Specifying Systems", appendix A, and the words that TLA+2 added.
_OF_TLA = """
    ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS
    DOMAIN ELSE ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW
    OBVIOUS OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE STRING
    STRONG_FAIRNESS SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE VARIABLE
    VARIABLES WEAK_FAIRNESS WF_ WITH WITNESS
"""
# What a configuration file of TLC cannot name.
_OF_TLC = """
    ACTION_CONSTRAINT ACTION_CONSTRAINTS ALIAS CHECK_DEADLOCK CONSTRAINT CONSTRAINTS INIT INVARIANT
    INVARIANTS NEXT PERIODIC POSTCONDITION PROPERTIES PROPERTY SPECIFICATION SYMMETRY TYPE
    TYPE_CONSTRAINT VIEW
"""
# What the modules define that ours extends: Integers, FiniteSets, and Sequences where there are some.
_OF_MODULES = """
    Append Cardinality FiniteSets Head Int Integers IsFiniteSet Len Nat Naturals SelectSeq Seq Sequences
    SubSeq Tail
"""

RESERVED = frozenset(f"{_OF_TLA} {_OF_TLC} {_OF_MODULES}".split())

_WORD = re.compile(r"\w+", re.ASCII)
_NOT_IN_IDENTIFIERS = re.compile(r"[^A-Za-z0-9_]")


def identifier(name: str) -> str:
    """The name as a TLA+ identifier; equal where it is one already.

    A letter that ASCII lacks is written by its nearest one, or else by its number: `größe` is `grosse`.
    """
    text = _NOT_IN_IDENTIFIERS.sub(_spelled, unicodedata.normalize("NFKD", name.replace("ß", "ss")))
    plain = bool(re.match(r"[A-Za-z]", text)) and not text.startswith(("WF_", "SF_"))
    if not plain:
        text = f"x{text}" if text.startswith("_") else f"x_{text}"
    return f"{text}_" if text in RESERVED else text


def _spelled(found: re.Match[str]) -> str:
    letter = found.group()
    if unicodedata.combining(letter):
        return ""
    return "_" if letter.isascii() else f"u{ord(letter):04x}"


class Names:
    """Hands out identifiers, each once: who comes first keeps the plain name, others get a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def give(self, name: str) -> str:
        """An identifier like `name` that nothing else has."""
        found = unused(identifier(name), self._taken)
        self._taken.add(found)
        return found

    @property
    def taken(self) -> frozenset[str]:
        """All that have been given."""
        return frozenset(self._taken)


def unused(name: str, taken: set[str] | frozenset[str]) -> str:
    """The name itself if nothing has it, else with the first number that makes it differ."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def words_in(*texts: str) -> frozenset[str]:
    """All names and words that some texts mention."""
    return frozenset(word for text in texts for word in _WORD.findall(text))


def model_value(kind: str, index: int) -> str:
    """How a member of an entity sort is called: `node0`.

    TLC takes a model value whose second letter is `_` for a typed one, which it compares with no other.
    """
    name = f"{identifier(kind).lower()}{index}"
    return f"the_{name}" if name[1:2] == "_" else name
