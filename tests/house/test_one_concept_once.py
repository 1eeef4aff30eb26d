"""One concept is defined once: enums of like members in two machines are tied by a refinement, or have a reason."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from itertools import combinations

from stagewright.machines import REFINEMENTS, SHIPPED
from stagewright.spec.refinement import refinements_in

LIKE = 3  # members in common, or all of them

ACCIDENTAL = {
    frozenset({"tablet_migration.Progress", "index_life.Job"}): "what may happen to any work",
    frozenset({"tablet_repair.Operation", "index_life.Job"}): "what may happen to any work",
    frozenset({"fencing.Shard", "view_destinations.Replica"}): "two roles, of whatever moves",
    frozenset({"intranode_migration.Shard", "view_destinations.Replica"}): "roles of what moves",
    frozenset({"cdc_mapping.Token", "index_rows.HybridTime"}): "tokens and times are numbered",
    frozenset({"view_updates.Key", "cdc_mapping.Shard"}): "ordinals",
    frozenset({"cdc_publication.Generation", "backfill_chunks.Row"}): "ordinals",
    frozenset({"index_file.Leaf", "index_tree.KVNode"}): "sides",
    frozenset({"tablet_views.Row", "backfill_split.Half"}): "halves of what splits",
    frozenset({"tablet_views.Tablet", "resize_guards.TabletId"}): "tablets are numbered",
}


def enums_of_machines() -> dict[str, tuple[str, frozenset[str]]]:
    """Of each enum that a machine's module, or that of its base, defines: the machine's module, and the members' names."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for where in SHIPPED.values():
        place, _, name = where.partition(":")
        machine = getattr(import_module(place), name)
        bases = {base.__module__ for base in machine.__mro__}
        for module in sorted(base for base in bases if base.startswith("stagewright.machines.")):
            for value in vars(import_module(module)).values():
                own = getattr(value, "__module__", "") == module
                if own and isinstance(value, type) and issubclass(value, Enum):
                    name = f"{module.rpartition('.')[2]}.{value.__name__}"
                    found.setdefault(name, (place, frozenset(value.__members__)))
    return found


def tied_modules() -> list[set[str]]:
    """Modules of which one machine is seen as another's, directly or by way of a third."""
    groups: list[set[str]] = []
    for place in REFINEMENTS:
        for one in refinements_in(import_module(place)):
            pair = {one.concrete.__module__, one.seen.__module__}
            joined = [group for group in groups if group & pair]
            groups = [group for group in groups if not group & pair]
            groups.append(pair.union(*joined))
    return groups


def untied() -> set[frozenset[str]]:
    groups = tied_modules()
    return {
        frozenset({a, b})
        for (a, (here, ours)), (b, (there, theirs)) in combinations(enums_of_machines().items(), 2)
        if here != there
        and (ours == theirs or len(ours & theirs) >= LIKE)
        and not any({here, there} <= group for group in groups)
    }


def test_enums_of_like_members_are_tied_or_have_a_reason() -> None:
    assert untied() - set(ACCIDENTAL) == set()


def test_no_reason_is_out_of_date() -> None:
    assert set(ACCIDENTAL) - untied() == set()
