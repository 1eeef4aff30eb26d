"""The decision where streamed rows go, over any number of views: as the list of 000 has it, taken on the shipped machine."""

from __future__ import annotations

from itertools import product

import pytest

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.catalog.view import View
from stagewright.impl.views.building.destinations import goes_to_staging
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.machines.scylladb.topology.topology_states import TransitionState

NODES = ("n1", "n2")
STATES = ("", "STARTED", "SUCCESS")  # of a view: there, being built, built


def tables_of(states: tuple[str, ...]) -> dict[str, Rows]:
    rows: Rows = {
        (f"v{i}", node): {"status": state}
        for i, state in enumerate(states)
        for node in NODES
        if state
    }
    return {"view_build_status_v2": rows}


def view_of(count: int, base: str = "ks.t") -> View:
    views = {f"v{i}": ViewDefinition(f"v{i}", base, 7) for i in range(count)}
    return View(TransitionState.null, 0, 0, "", {}, {}, views=views)


def in_the_words_of_the_document(states: tuple[str, ...], repairs: bool) -> bool:
    """000, the questions in their order; True: "create view building tasks for this sstable"."""
    if not states:
        return False
    if all(state == "" for state in states):
        return False
    if any(state == "STARTED" for state in states):
        return True
    return repairs


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("repairs", [False, True])
def test_rows_go_where_the_document_says(count: int, repairs: bool) -> None:
    for states in product(STATES, repeat=count):
        found = goes_to_staging(tables_of(states), view_of(count), "ks.t", repairs=repairs)
        assert found == in_the_words_of_the_document(states, repairs), states


@pytest.mark.parametrize("states", [(), ("",), ("SUCCESS",), ("SUCCESS", "STARTED")])
def test_what_is_in_staging_stays_there_when_its_tablet_moves(states: tuple[str, ...]) -> None:
    view = view_of(len(states))
    assert goes_to_staging(tables_of(states), view, "ks.t", repairs=False, staged=True)


def test_views_of_other_tables_do_not_count() -> None:
    view = view_of(1, base="ks.other")
    assert not goes_to_staging(tables_of(("STARTED",)), view, "ks.t", repairs=True)
