"""What a table of a log's lines is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True)
class LineForm:
    """One form of line: whose message has `mark` in it must fit one of the forms with that mark.

    `says`: what it means to the reader; empty for a form that is known and means nothing. `words` are said
    by the form itself, beside those that stand in its places.
    """

    says: str
    loggers: tuple[str, ...]
    mark: str
    pattern: re.Pattern[str]
    words: Mapping[str, str] = field(default_factory=dict[str, str])


def form(says: str, loggers: tuple[str, ...], mark: str, pattern: str, **words: str) -> LineForm:
    """A form; its pattern is over the whole message."""
    return LineForm(says, loggers, mark, re.compile(pattern), words)
