"""The halves of a table that is split or merged, and how many tablets they make."""

from __future__ import annotations

from enum import Enum, auto


class Half(Enum):
    """The halves of the token ring: the ranges of the two tablets, or of the two parts of the one."""

    left = auto()
    right = auto()


class Layout(Enum):
    """The tablets of the table."""

    one_tablet = auto()
    two_tablets = auto()
