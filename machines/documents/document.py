"""A design document as the promises that state what its sections say."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.known_bugs import Promise


@dataclass(frozen=True)
class Section:
    """A section, by its title, and the promises in its words: methods of the machines that make them.

    Where there is none, `instead` says what stands for the section.
    """

    title: str
    promises: tuple[Promise, ...] = ()
    instead: str = ""


@dataclass(frozen=True)
class Document:
    """A design document: `id` as docstrings cite it, its title, its file upstream, and its sections in order."""

    id: str
    title: str
    source: str
    sections: tuple[Section, ...]
