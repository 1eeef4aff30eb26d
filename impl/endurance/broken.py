"""What an endurance run finds, and for how long one waits in it."""

from __future__ import annotations

from collections.abc import Iterable

PATIENCE = 240.0
"""Seconds for what a cluster does by itself: much longer than a busy machine needs."""


class BrokenError(Exception):
    """A promise was broken; the text says which."""


def refuse(problems: Iterable[str]) -> None:
    """Report problems, if there are any.

    Raises:
        BrokenError: there is a problem.
    """
    if found := list(problems):
        raise BrokenError("\n".join(found[:10]))
