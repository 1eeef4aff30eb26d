"""Where rows go that come by a stream: the decision of 000's section "Staging sstables", on its shipped machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.catalog.view import View
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.views.building.tasks import status_in
from stagewright.machines.scylladb.views import view_destinations as machine
from stagewright.spec import define
from stagewright.spec.values import FrozenMap

ROW = machine.Sstable("rows")


@lru_cache(maxsize=1)
def destinations_program() -> Program:
    """The machine of the decision, which keeps what is in staging there when its tablet moves."""
    return Program(define(machine.ViewDestinations, machine.SEED_KEPT.name))


def goes_to_staging(
    tables: Mapping[str, Rows], view: View, base: str, *, repairs: bool, staged: bool = False
) -> bool:
    """Whether rows of a table that come now wait for a task; by a repair, or else with their tablet.

    `staged`: they were in staging where they come from.
    """
    found = {machine.View(v.name): status_in(tables, v.name) for v in view.views_of(base)}
    there = machine.Place.with_task if staged else machine.Place.base
    nowhere = FrozenMap({ROW: machine.Place.nowhere})
    state: dict[str, Any] = {
        "status": FrozenMap(found),
        "scanned": frozenset[machine.View](),
        "view": FrozenMap({v: frozenset[machine.Sstable]() for v in found}),
        "migration": machine.Migration.ahead if repairs else machine.Migration.under_way,
        "place": FrozenMap(
            {
                machine.Replica.leaving: nowhere if repairs else FrozenMap({ROW: there}),
                machine.Replica.pending: nowhere,
            }
        ),
    }
    instance = Instance(destinations_program(), state, name=base)
    if repairs:
        instance.fire("repair", r=machine.Replica.leaving, s=ROW)
    else:
        instance.fire("stream", s=ROW)
    places = instance.read("place")
    at = machine.Replica.leaving if repairs else machine.Replica.pending
    return places[at][ROW] is machine.Place.with_task
