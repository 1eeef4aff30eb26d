"""What a run says of an index in words, and whether it has come to its end."""

from __future__ import annotations

from stagewright.impl.indexes.catalog import Catalog, IndexRow
from stagewright.impl.indexes.messages import Build, SplitBegun
from stagewright.impl.indexes.simulated.script import Operation
from stagewright.impl.indexes.splits.tablet_map import TABLE, index_table, place_parts
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status

DROPPED = "DROPPED"  # before it was built, or had failed


def said_of(row: IndexRow) -> str:
    """What became of it."""
    if row.dropped and row.status is not Status.success:
        return DROPPED
    words = [row.status.name.replace("_", "-").upper(), row.error]
    words += ["dropped"] if row.dropped else []
    return ", ".join(filter(None, words))


def status_of(build: Build, tablets: int) -> str:
    """How far it is, of so many tablets."""
    if build.status is None:
        return "there is none"
    if build.dropped and build.status is not Status.success:
        return f"{DROPPED}, deleted" if build.gone else DROPPED
    text = build.status.name.replace("_", "-").upper()
    if build.status is Status.in_progress and build.tablets_done:
        text += f", {build.tablets_done} of {tablets} tablets"
    return ", ".join(filter(None, (text, build.error, "deleted" if build.gone else "")))


def place_of(operation: Operation, catalog: Catalog) -> str:
    """The address of the tablet that an operation names; empty if it is of an index that there is not."""
    row = catalog.named(operation.name)
    if row is None:
        return "" if operation.name else f"{TABLE}/{operation.number}"
    return f"{index_table(row.number)}/{operation.number}"


def split_as_text(begun: SplitBegun) -> str:
    """What becomes of a tablet that is to split."""
    children = " and ".join(str(place_parts(child)[1]) for child in begun.children)
    return f"refused: {begun.refused}" if begun.refused else f"into {children}"


def why_not_read(row: IndexRow) -> str:
    """Why it serves no reads."""
    if row.dropped:
        return f"{row.name} was dropped"
    failed = f"{row.name} has failed: {row.error}"
    return failed if row.status is Status.failed else f"{row.name} is not built yet"


def differs(row: IndexRow | None, wanted: Operation) -> str:
    """That there is another index of the name that is wanted; empty if there is none."""
    if row is None or row.dropped or row.status is Status.failed:
        return ""
    if (row.column, row.unique) == (wanted.column, wanted.unique):
        return ""
    kind = "a unique index" if row.unique else "an index"
    return f"refused: {row.name} is there already, {kind} on {row.column}"


def is_settled(row: IndexRow) -> bool:
    """Built, or gone."""
    return row.permission in (Permission.absent, Permission.read_write_and_delete)
