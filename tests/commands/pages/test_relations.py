"""The list of machines says what each is seen as, and what it is made of."""

from __future__ import annotations

from stagewright.commands.pages.relations import made_of, seen_as
from stagewright.machines import REFINEMENTS, SHIPPED


def test_a_machine_is_seen_as_those_that_it_refines() -> None:
    found = seen_as(SHIPPED, REFINEMENTS)
    assert found["tablet-repair"] == ["tablet-migration"]
    assert found["backfill-rpcs"] == ["index-permissions"], "what is seen is a variant of it"
    assert found["tablet-migration"] == []


def test_a_system_is_made_of_its_parts_and_of_what_it_extends() -> None:
    found = made_of(SHIPPED)
    assert found["cluster-views"] == ["topology-control", "tablet-migration", "view-building"]
    assert found["partition-index"] == ["partition-states"], "the part is the base of that"
    assert found["index-postgres-rows"] == ["index-postgres", "index-rows"]
    assert found["group0"] == []
