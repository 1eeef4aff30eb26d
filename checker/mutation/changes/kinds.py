"""The kinds of mutants: what is changed. It imports nothing of the checker, so that `--help` answers at once."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What was changed."""

    DROP = "drop"  # a requirement is left out
    WEAKEN = "weaken"  # a requirement asks for less
    SKIP = "skip"  # a barrier does not wait for one of those that it waits for
    LOSE = "lose"  # an effect does not happen, or happens always
    REPLACE = "replace"  # a guard or an effect names another member or parameter, or is off by one
    SWAP = "swap"  # a member of a table has another value in a column
    HELPER = "helper"  # a method that steps and properties share returns something else, for both
    EDGE = "edge"  # a step is added between two members that have none
    DISABLE = "disable"  # an action never happens
    TIGHTEN = "tighten"  # an action is refused where it was not
