"""A form of input: its name, how its files are known, and the module that reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Form:
    """One form: `endings` of its files, and what their first bytes contain where the ending says nothing.

    `shared` are endings of files that may be of this form: their content decides.

    `module` reads it, and `releases` knows which profile of a machine each release has: modules below
    `stagewright.traces`, or with `own` by their whole names, of another package.

    `log`: its lines mean something only together and in the order of time, so its reader is a `LogReader`.
    """

    name: str
    module: str
    endings: tuple[str, ...] = ()
    content: str = (
        ""  # a regular expression over bytes; none: only known by its ending, or when named
    )
    log: bool = False
    grows: bool = False  # a file of it may be appended to, and read on from where it ended
    apart: bool = False  # of a log: each file has entities of its own
    skips: bool = False  # its reader can leave out what has none of some entities
    shared: tuple[str, ...] = ()
    once: bool = False  # its events have no number, nor its files a meaning of their name: copies are not read
    releases: str = ""
    by_mapping: bool = False  # read as a mapping file says, and never without one
    own: bool = False  # of another package, which names it as an entry point

    def looks_like(self, begin: bytes) -> bool:
        """Whether a file that begins so is of this form."""
        return bool(self.content) and re.search(self.content.encode(), begin) is not None

    def imported(self, module: str) -> ModuleType:
        """One of the form's modules."""
        return import_module(module if self.own else f"stagewright.traces.{module}")
