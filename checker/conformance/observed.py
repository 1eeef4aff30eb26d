"""What an adapter observes, leaf by leaf: whole maps, records, queues and bags are taken apart."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache

from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity
from stagewright.spec.sorts import BagSort, MapSort, RecordSort, Sort
from stagewright.spec.values import show


def flat(
    observed: Mapping[str, object], definition: Definition, leaves: tuple[str, ...]
) -> Iterator[tuple[str, object]]:
    """The leaves of what was observed, where whole maps, records, queues and bags were given, too.

    A member of an entity or an enum may be given by its name, as it is in a step's arguments. `leaves`:
    those of the state that is expected; elements of a queue that it does not have are left out, for its
    length differs then.
    """
    bags = {v.name: bag for v in definition.variables if (bag := _bag(v.sort)) is not None}
    return _flat(observed, _places(leaves), bags)


def plain_form(value: object) -> object:
    """A value as `Oracle.leaves` holds it; what no definition has stays as it is."""
    match value:
        case Enum() | Entity():
            return _name(value)
        case frozenset() | set() | list() | tuple():
            return sorted(_name(item) for item in value)
        case _:
            return value


@lru_cache(maxsize=64)
def _places(leaves: tuple[str, ...]) -> frozenset[str]:
    """The names of leaves, and of the maps, records and queues that they lie in."""
    ends = ((leaf, m.start()) for leaf in leaves for m in re.finditer(r"[.\[]|$", leaf))
    return frozenset(leaf[:end] for leaf, end in ends) | {f"{leaf}$" for leaf in leaves}


def _bag(sort: Sort) -> BagSort | None:
    while isinstance(sort, MapSort) and not isinstance(sort, BagSort):
        sort = sort.value
    return sort if isinstance(sort, BagSort) else None


def _flat(
    observed: Mapping[object, object] | Mapping[str, object],
    places: frozenset[str],
    bags: Mapping[str, BagSort],
    prefix: str = "",
) -> Iterator[tuple[str, object]]:
    for key, value in observed.items():
        name = str(key)
        if prefix:
            indexed = f"{prefix}[{_name(key)}]"
            name = f"{prefix}.{key}" if type(key) is str and indexed not in places else indexed
        if isinstance(value, Mapping):
            yield from _flat(value, places, bags, name)
        elif not isinstance(value, list | tuple | deque) or f"{name}$" in places:
            yield name, value
        elif f"{name}.length$" in places:
            yield f"{name}.length", len(value)
            known: dict[object, object] = {
                i: v for i, v in enumerate(value) if f"{name}[{i}]" in places
            }
            yield from _flat(known, places, bags, name)
        elif bag := bags.get(re.split(r"[.\[]", name)[0]):
            yield from _messages(value, bag, name, places)
        else:
            yield name, value


def _messages(
    found: Sequence[object] | deque[object], bag: BagSort, name: str, places: frozenset[str]
) -> Iterator[tuple[str, object]]:
    """How often each message is in a bag of which all messages were given."""
    often = Counter(f"{name}[{_message(item, bag)}]" for item in found)
    known = (place[:-1] for place in places if place.endswith("$"))
    yield from ((leaf, often.pop(leaf, 0)) for leaf in known if leaf.startswith(f"{name}["))
    yield from often.items()  # messages that the definition does not have


def _message(item: object, bag: BagSort) -> str:
    if not isinstance(item, Mapping) or not isinstance(bag.key, RecordSort):
        return _name(item)
    fields = [name for name, _ in bag.key.fields if name in item]
    fields += [name for name in item if name not in fields]
    return "{" + ", ".join(f"{name}: {_field(item[name])}" for name in fields) + "}"


def _field(value: object) -> str:
    return show(value) if value is None or isinstance(value, bool) else _name(value)


def _name(value: object) -> str:
    return show(value) if isinstance(value, Enum | Entity) else str(value)
