"""Fields of a row: found by name or path, put into texts, and read as times."""

from datetime import UTC, date, datetime

import pytest

from stagewright.traces.mapping.templates import field_of, template
from stagewright.traces.mapping.times import TimeFormat, zone_named

ROW = {
    "a": "x",
    "b.c": 1,
    "d": {"e": {"f": True}, "g.h": [2.0, {"i": None}]},
    "empty": "",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", "x"),
        ("b.c", 1),
        ("d.e.f", True),
        ("d.g.h.0", 2.0),
        ("d.g.h.1.i", None),
        ("d.g.h.2", None),
        ("a.b", None),
        ("z", None),
    ],
)
def test_fields_are_found_by_name_and_by_path(name: str, value: object) -> None:
    assert field_of(ROW, name) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a}", "x"),
        ("{d.e.f}", True),
        ("{a}/{d.g.h.0}", "x/2"),
        ("{{{a}}}", "{x}"),
        ("plain", "plain"),
        ("{a}{empty}", None),
        ("{z}", None),
        ("{d.e}", {"f": True}),
        ("<{d.e}>", '<{"f": true}>'),
    ],
)
def test_templates_are_filled(text: str, value: object) -> None:
    assert template(text).fill(ROW) == value


@pytest.mark.parametrize("text", ["{", "}", "{}", "{a}}", "{a{b}}"])
def test_a_stray_brace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="belongs to no field"):
        template(text)


SECOND = 1_000_000_000
DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("time_format", "value", "nanoseconds"),
    [
        (TimeFormat(), "1970-01-02T00:00:01.5Z", DAY + SECOND + SECOND // 2),
        (TimeFormat(), "1970-01-02 00:00:00,000000123", DAY + 123),
        (TimeFormat(), "1970-01-02T01:00:00+01:00", DAY),
        (TimeFormat("iso", "+01:00"), "1970-01-02T01:00:00", DAY),
        (TimeFormat("iso", "Europe/Berlin"), "1970-01-02T01:00:00", DAY),
        (TimeFormat("unix"), "1.25", SECOND * 5 // 4),
        (TimeFormat("unix"), "-1.25", -SECOND * 5 // 4),
        (TimeFormat("unix-ms"), 1500, SECOND * 3 // 2),
        (TimeFormat("unix-ns"), "1725991426441303123", 1725991426441303123),
        (TimeFormat("%d/%m/%Y %H:%M:%S"), "02/01/1970 00:00:00", DAY),
        (TimeFormat("%m%d %H:%M:%S.%f"), "0910 18:03", None),
        (TimeFormat(), datetime(1970, 1, 2, tzinfo=UTC), DAY),
        (TimeFormat(), date(1970, 1, 2), DAY),
        (TimeFormat(), "yesterday", None),
        (TimeFormat(), "0001-01-01T00:00:00Z", None),
        (TimeFormat("unix"), "1e9", None),
        (TimeFormat("unix"), True, None),
        (TimeFormat("unix"), float("inf"), None),
        (TimeFormat("unix"), float("nan"), None),
        (TimeFormat("iso", "Europe/Berlin"), "0001-01-01", None),
        (TimeFormat(), None, None),
    ],
)
def test_times_are_nanoseconds(
    time_format: TimeFormat, value: object, nanoseconds: int | None
) -> None:
    assert time_format.read(value) == nanoseconds


def test_times_without_a_year_are_known_as_such() -> None:
    assert not TimeFormat("%b %d %H:%M:%S").has_year
    assert TimeFormat("%Y-%m-%d").has_year
    assert TimeFormat().has_year
    with pytest.raises(ValueError, match="no time zone"):
        zone_named("Nowhere/Else")
