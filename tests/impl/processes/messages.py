"""Any message, with numbers as MessagePack has them."""

from __future__ import annotations

from enum import Enum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from stagewright.impl.node.messages import Message
from stagewright.impl.processes.codec import KINDS

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 100)


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type of plain data."""
    if kind is int:
        return NUMBERS
    if isinstance(kind, UnionType):
        return st.one_of(*map(of, get_args(kind)))
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if parts[-1] is Ellipsis:
            return st.lists(of(parts[0]), max_size=3).map(tuple)
        return st.tuples(*map(of, parts))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if hasattr(kind, "__dataclass_fields__"):
        hints = get_type_hints(kind)
        return st.builds(kind, **{name: of(hint) for name, hint in hints.items()})
    return st.from_type(kind)


def messages() -> st.SearchStrategy[Message]:
    """Any message."""
    return st.one_of(*map(of, KINDS))
