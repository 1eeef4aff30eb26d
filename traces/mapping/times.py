"""Times of a mapping: from a text, a number or a column of times to nanoseconds since 1970."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import cast
from zoneinfo import ZoneInfo

ISO = "iso"
UNITS = {"unix": 1_000_000_000, "unix-ms": 1_000_000, "unix-us": 1_000, "unix-ns": 1}
_NUMBER = re.compile(r"(-?\d+)(?:\.(\d+))?", re.ASCII)
_NANOSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})\d*", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LIMIT = 1 << 62  # more than a century to either side


@dataclass(frozen=True)
class TimeFormat:
    """`pattern` is `iso`, a unit of `UNITS`, or one of `strptime`; `zone` is that of times without one."""

    pattern: str = ISO
    zone: str = "UTC"

    @property
    def has_year(self) -> bool:
        """Whether two times of different years can be told apart."""
        return "%" not in self.pattern or re.search(r"%[YyGcDxs]", self.pattern) is not None

    def read(self, value: object) -> int | None:
        """Nanoseconds since 1970, or None if this is no such time."""
        try:
            found = self._read(value)
        except (OverflowError, ValueError):  # infinity, or a day before the first year
            return None
        return found if found is not None and -_LIMIT < found < _LIMIT else None

    def _read(self, value: object) -> int | None:
        if isinstance(value, datetime):
            return _since_epoch(value, self.zone)
        if isinstance(value, date):
            return _since_epoch(datetime(value.year, value.month, value.day), self.zone)  # noqa: DTZ001
        if isinstance(value, bool | None):
            return None
        if isinstance(value, int | float) and self.pattern in UNITS:
            return round(value * UNITS[self.pattern])
        return _read(str(value).strip(), self.pattern, self.zone)


def check_pattern(pattern: str) -> None:
    """Find out whether a time can be read by a pattern of `strptime`.

    Raises:
        ValueError: it has a directive that there is not.
    """
    try:
        datetime.strptime("", pattern)  # noqa: DTZ007 - the pattern is looked at, not a time
    except (ValueError, re.error) as error:
        if "does not match format" not in str(error):
            raise ValueError(str(error)) from error


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo:
    """The time zone of a name.

    Raises:
        ValueError: there is none.
    """
    if name in ("UTC", "Z"):
        return UTC
    try:
        return cast("tzinfo", datetime.strptime(name, "%z").tzinfo)
    except ValueError:
        pass
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"there is no time zone `{name}`") from error


@lru_cache(maxsize=4096)
def _read(text: str, pattern: str, zone: str) -> int | None:
    if pattern in UNITS:
        found = _NUMBER.fullmatch(text)
        if found is None:
            return None
        whole, unit = int(found[1]) * UNITS[pattern], UNITS[pattern]
        part = int((found[2] or "0").ljust(9, "0")[:9]) * unit // 1_000_000_000
        return whole - part if text.startswith("-") else whole + part
    try:
        if pattern == ISO:
            rest = _NANOSECONDS.search(text)
            below = int(rest[1].ljust(3, "0")) if rest else 0
            return _since_epoch(datetime.fromisoformat(text), zone) + below
        return _since_epoch(datetime.strptime(text, pattern), zone)  # noqa: DTZ007 - it may have a zone
    except ValueError:
        return None


def _since_epoch(when: datetime, zone: str) -> int:
    if when.tzinfo is None:
        when = when.replace(tzinfo=zone_named(zone))
    return (when - _EPOCH) // timedelta(microseconds=1) * 1000
