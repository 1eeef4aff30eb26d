"""Which version of ScyllaDB wrote a log, and under which profile of each machine its traces are evaluated.

A version has the newest profile that is not newer than itself: `scylla-2025.4` is the releases from 2025.4 up
to the next profile. `seed`, the design document, is taken only when it is asked for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.topology import topology_transition
from stagewright.machines.scylladb.topology.topology_node import TopologyNode
from stagewright.machines.scylladb.topology.topology_request import TopologyRequest
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.machines.scylladb.views.view_coordinator import ViewCoordinator
from stagewright.machines.scylladb.views.view_task import ViewTask
from stagewright.spec.errors import InputError
from stagewright.spec.machine import Machine, profile_names
from stagewright.traces.databases.scylladb.log.patterns import form

STARTS = "server starts"

FORMS = (
    form(
        STARTS,
        ("init",),
        "Scylla version ",
        r"Scylla version (?P<version>\d+\.\d+\S*) with build-id \S+ starting",
    ),
    form("", ("init",), "Scylla version ", r"Scylla version "),
)

_OF_DOCUMENT = topology_transition.SEED.name  # the machines that have it call it alike


def _released(machine: type[Machine]) -> tuple[str, ...]:
    """The profiles of a machine that are of releases, oldest first."""
    apart = (_OF_DOCUMENT, topology_transition.ANY_RELEASE.name)
    return tuple(name for name in profile_names(machine) if name not in apart)


READ: tuple[type[Machine], ...] = (
    TabletMigration,
    TopologyTransition,
    TopologyNode,
    TopologyRequest,
    CdcGeneration,
    ViewTask,
    ViewCoordinator,
)
"""The machines that logs and tables are read by."""

PROFILES = {machine.__name__: _released(machine) for machine in READ}
RELEASES = PROFILES[TopologyTransition.__name__]  # that differ in any of them
# for logs that do not say which version wrote them
ANY = {TopologyTransition.__name__: topology_transition.ANY_RELEASE.name}
OF_SEED = frozenset(m.__name__ for m in READ if _OF_DOCUMENT in profile_names(m))

_VERSION = re.compile(r"(?:scylla-)?(\d+)\.(\d+)")
_NEXT = (2026, 3)  # the source as it is now, which will be the next release
_BUILT_BEFORE = 2  # quarters: builds of a release are in use so long before it is out


def version_of(text: str) -> tuple[int, int] | None:
    """The release of `2025.1.0-0.20250325.9dca28d2b818`, or of `scylla-2025.1`: (2025, 1)."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None


def released_by(time: int | None) -> tuple[str, ...]:
    """The releases that may have written what ends at a time, in microseconds since 1970; all if there is none.

    A release is named for the quarter in which it comes out.
    """
    if time is None:
        return RELEASES
    date = datetime.fromtimestamp(time // 1_000_000, UTC)
    quarters = date.year * 4 + (date.month - 1) // 3 + 1 + _BUILT_BEFORE
    first, *others = RELEASES
    since = {name: version_of(name) or _NEXT for name in others}
    return (first, *(name for name, (year, q) in since.items() if year * 4 + q <= quarters))


@lru_cache(1 << 10)
def profile_for(machine: str, wanted: str) -> str:
    """The profile under which a machine's traces are evaluated, given a version or a profile's name.

    Empty for the newest. If nothing is known of the version, any release may have written it.

    Raises:
        InputError: what is asked for is neither a version nor a profile's name.
    """
    known = PROFILES.get(machine, ())  # without, it is the same for all releases
    if not wanted:
        return ANY.get(machine, "")
    if wanted in (*known, ANY.get(machine)):
        return wanted
    if wanted == _OF_DOCUMENT:
        return wanted if machine in OF_SEED else ""
    version = version_of(wanted) or (_NEXT if wanted in RELEASES else None)
    if version is None:
        if wanted in ANY.values():
            return ""
        known_somewhere = dict.fromkeys(name for names in PROFILES.values() for name in names)
        raise InputError(
            f"there is no profile `{wanted}`",
            help=f"known: {_OF_DOCUMENT}, {', '.join((*ANY.values(), *known_somewhere))}; or a version, as 2025.1",
        )
    released = [name for name in known if (version_of(name) or _NEXT) <= version]
    return released[-1] if released else (known[0] if known else "")
