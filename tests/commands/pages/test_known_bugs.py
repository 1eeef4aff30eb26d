"""The pages of the known bugs: one for each folder of machines, and one that leads to them."""

from __future__ import annotations

from stagewright.commands.pages.known_bugs import known_bugs_pages
from stagewright.machines import SHIPPED
from stagewright.machines.known_bugs import KNOWN_BUGS, NOT_FOUND

NAMES = {where: name for name, where in SHIPPED.items()}


def test_bugs_are_listed_by_the_folder_of_their_machine() -> None:
    some = [
        bug for bug in KNOWN_BUGS if bug.right.__name__ in {"TopologyRequest", "PartitionMerge"}
    ]
    historical = sum(bug.is_historical for bug in some)
    pages = known_bugs_pages(some, NOT_FOUND, NAMES, 60)
    assert set(pages) == {"README.md", "scylladb-topology.md", "couchbase-partitions.md"}
    assert f"Found: {len(some)} of {len(some) + len(NOT_FOUND)}." in pages["README.md"]
    assert f"{historical} are historical" in pages["README.md"]
    assert "[scylladb/topology](scylladb-topology.md)" in pages["README.md"]
    heading = "## [topology-request](../machines/topology-request.md)"
    assert heading in pages["scylladb-topology.md"]
    for bug in some:
        (page,) = [name for name, text in pages.items() if f"| {bug.id} |" in text]
        assert (page == "scylladb-topology.md") == (bug.right.__name__ == "TopologyRequest")


def test_a_bug_that_is_not_found_again_is_shown_as_such() -> None:
    (bug, *_) = [bug for bug in KNOWN_BUGS if bug.right.__name__ == "TopologyControl"]
    pages = known_bugs_pages([bug], (), NAMES, 0)
    assert "Found: 0 of 1." in pages["README.md"]
    assert "**not found**" in pages["scylladb-topology.md"]
