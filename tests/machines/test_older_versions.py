"""What an older version breaks, its machine's docstring names; where it says that all holds, nothing is broken.

By default the nearest states are searched, where most of what can go wrong shows; a thorough run searches all of them.
"""

from __future__ import annotations

import re
from itertools import chain

import pytest
from tests.machines.judged import broken
from tests.thorough import THOROUGH

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.verdicts import NO_DEADLOCK
from stagewright.machines import SHIPPED
from stagewright.spec.definition import PropertyKind
from stagewright.spec.loading import find, load
from stagewright.spec.machine import Machine, Many, Part, members, profile_names
from stagewright.spec.scope import scope_of

NEAREST = 5_000
OLDER = [
    (name, profile)
    for name in SHIPPED
    for profile in profile_names(find(name, SHIPPED))[:-1]  # the newest one is checked by itself
]


def text_of(machine: type[Machine]) -> str:
    """Its docstring in one line."""
    return " ".join(next(one.__doc__ for one in machine.__mro__ if one.__doc__).split())


def text_with_parts(machine: type[Machine]) -> str:
    """With those of its parts, which may name what is broken in them."""
    parts = [one.machine for one in members(machine).values() if isinstance(one, Part | Many)]
    return " ".join(chain([text_of(machine)], map(text_with_parts, parts)))


def says_that_all_holds(text: str, profile: str, older: list[str]) -> bool:
    """Whether it says so of the profile, by name or as one of "the releases before it"."""
    told = re.finditer(r"`([\w.-]+)`( and the releases before it)? every promise holds", text)
    for named, before in (match.groups() for match in told):
        if named == profile or (before and profile in older and profile != "seed"):
            return True
    return bool(re.search(r"[Ee]very promise holds,? under both", text))


def names(text: str, promise: str) -> bool:
    """Whether a docstring names the promise: in backticks, as itself or as one of a part."""
    if promise == NO_DEADLOCK:
        return "deadlock" in text
    return bool(re.search(rf"`([\w.]+\.)?{re.escape(promise.rpartition('.')[2])}`", text))


@pytest.mark.parametrize(("machine", "profile"), OLDER)
def test_the_docstring_says_what_a_version_breaks(machine: str, profile: str) -> None:
    definition = load(machine, profile, SHIPPED)
    report = check(
        definition,
        scope_of(definition),
        limits=Limits(states=None if THOROUGH else NEAREST),
        engine=EngineKind.AUTO if THOROUGH else EngineKind.NUMPY,
        workers=1,
        coverage=False,
        symmetry=True,
    )
    assert report.exhausted or report.states >= NEAREST
    # What happens at all, at this scope or at another one, is asked of the newest version.
    witnesses = {p.name for p in definition.properties if p.kind is PropertyKind.SOMETIMES}
    found = broken(report) - witnesses
    kind = find(machine, SHIPPED)
    text = text_with_parts(kind)
    assert {promise for promise in found if not names(text, promise)} == set()
    if says_that_all_holds(text_of(kind), profile, list(profile_names(kind))):
        assert found == set()
