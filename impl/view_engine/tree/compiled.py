"""Compiles loops over bytes to machine code, kept beside the source or in the user's cache.

With `NUMBA_DISABLE_JIT=1` the same functions run as plain Python, slowly.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code; other threads of this process run while it does."""
    import numba

    compile_it: Any = numba.njit(cache=_can_keep(), nogil=True, boundscheck=False)
    made: _Function = compile_it(function)
    return made


def _can_keep() -> bool:
    """Whether there is a place for object code at all: a user without a home may have none."""
    if "NUMBA_CACHE_DIR" in os.environ or os.access(Path(__file__).parent, os.W_OK):
        return True
    try:
        return os.access(Path.home(), os.W_OK)
    except RuntimeError:
        return False
