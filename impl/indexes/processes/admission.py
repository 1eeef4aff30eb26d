"""What clients may ask: questions that a server can answer whatever is in them."""

from __future__ import annotations

import re

from stagewright.impl.indexes.processes.wire import (
    Changes,
    HalveTablet,
    LookUp,
    MakeIndex,
    Question,
    RemoveIndex,
    Scan,
    Transact,
    WhichTablets,
)
from stagewright.impl.indexes.schema import COLUMNS
from stagewright.impl.processes.errors import WireError
from stagewright.spec.text.counting import counted

LARGEST = (1 << 63) - 2
MOST_ROWS = 1_000  # of a transaction, or of a page of a scan
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")


def admit(question: Question, latest: int) -> None:
    """Take a client's question; `latest` is the latest hybrid time at which it may read.

    Raises:
        WireError: it says something that cannot be.
    """
    wrong = _wrong(question, latest)
    if wrong:
        problem, _, right = wrong.rpartition(": ")
        raise WireError(problem, help=right)


def _wrong(question: Question, latest: int) -> str:
    """What is wrong with a question, and, after a colon, what would be right."""
    match question:
        case Transact(_, changes):
            return _wrong_changes(changes)
        case MakeIndex(_, name, column):
            return _wrong_name(name) or _wrong_column(column)
        case RemoveIndex(_, name):
            return _wrong_name(name)
        case LookUp(_, index, value, at):
            return _wrong_name(index) or _wrong_number(value) or _wrong_time(at, latest)
        case Scan(_, tablet, first, limit, at):
            if wrong := _wrong_tablet(tablet):
                return wrong
            if not 0 < limit <= MOST_ROWS:
                return f"a scan of {counted(limit, 'row')}: from 1 to {MOST_ROWS} at a time"
            return _wrong_number(first or 0) or _wrong_time(at, latest)
        case HalveTablet(_, tablet, index):
            return _wrong_tablet(tablet) or (_wrong_name(index) if index else "")
        case WhichTablets(_, index) if index:
            return _wrong_name(index)
        case _:
            return ""


def _wrong_tablet(tablet: int) -> str:
    return "" if 0 <= tablet <= LARGEST else f"tablet {tablet}: the first is 0"


def _wrong_changes(changes: Changes) -> str:
    keys = [key for key, _ in changes]
    if not 0 < len(keys) <= MOST_ROWS or len({*keys}) < len(keys):
        return f"a transaction of {counted(len(keys), 'row')}: from 1 to {MOST_ROWS}, each once"
    for key, values in changes:
        for name, value in (values or {}).items():
            if wrong := _wrong_column(name) or _wrong_number(value):
                return wrong
        if wrong := _wrong_number(key):
            return wrong
    return ""


def _wrong_name(name: str) -> str:
    if _NAME.fullmatch(name):
        return ""
    return f"{name[:60]!r} is no name: letters, digits and _, at most 48"


def _wrong_column(name: str) -> str:
    if name in COLUMNS:
        return ""
    return f"the table has no column {name[:60]!r}: it has {' and '.join(COLUMNS)}"


def _wrong_number(number: int) -> str:
    return "" if abs(number) <= LARGEST else f"{number}: numbers are from {-LARGEST} to {LARGEST}"


def _wrong_time(at: int, latest: int) -> str:
    return "" if 0 <= at <= latest else f"{at} is in the future: the time is now {latest}"
