"""Which view a name means: one that is created again is another view, whatever the name.

Rows, hints, tasks and updates on their way are kept by a view's id, as upstream keeps them by the id of a table:
nothing of a dropped view, on whoever was down or late, comes into the next one. The first view of a name has
the name as its id, the next one a number behind it.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.group0 import Mutation

_LOCAL = "scylla_local"
_NUMBER = "#"


def name_of(view: str) -> str:
    """The name under which a view was created, by its id."""
    return view.partition(_NUMBER)[0]


def new_id(tables: Mapping[str, Rows], name: str) -> str:
    """The id of a view that is created under a name now."""
    row = tables[_LOCAL].get(_dropped(name))
    return name if row is None else f"{name}{_NUMBER}{int(row['value']) + 1}"


def drop_of(tables: Mapping[str, Rows], name: str) -> Mutation:
    """The row that counts the views which were dropped under a name, when one more is."""
    row = tables[_LOCAL].get(_dropped(name))
    return Mutation(
        _LOCAL, _dropped(name), {"value": str(1 + (0 if row is None else int(row["value"])))}
    )


def _dropped(name: str) -> tuple[str]:
    return (f"views_dropped:{name}",)
