"""The nearest known name to one that is not known, for the help of error texts."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, in any case; None if none is much like it."""
    by_lower = {k.lower(): k for k in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=_ALIKE)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean `tablet`? `` with a blank behind it; empty if nothing is much like it."""
    near = nearest(name, known)
    return f"did you mean `{near}`? " if near else ""
