"""Compiles loops over arrays to machine code: the only place that knows `numba`.

A loop is compiled when it is first called, by one of the processes that need it then. The object code is kept
beside the source or, where that is read-only, in the user's cache. Inside `interpreted()` loops run as plain
Python: for a few hundred events that is over before numba has been imported. With `NUMBA_DISABLE_JIT=1` they
always do, slowly.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Scalar = TypeVar("_Scalar", bound=np.generic)

_interpreting = 0  # how many `interpreted()` blocks this process is in


@contextmanager
def interpreted(wanted: bool = True) -> Iterator[None]:
    """While this lasts, loops of this process run as plain Python, if that is wanted."""
    global _interpreting  # noqa: PLW0603 - one process has one mode: threads share it
    if not wanted:
        yield
        return
    _interpreting += 1
    try:
        yield
    finally:
        _interpreting -= 1


def compiled(function: _Function) -> _Function:
    """The function as machine code; other threads of this process run while it does."""
    return cast("_Function", functools.update_wrapper(_Compiled(function), function))


def read_only(array: NDArray[_Scalar], kind: type[_Scalar] | None = None) -> NDArray[_Scalar]:
    """Its values to read from: a loop that is given arrays of one kind alone is compiled once.

    They are copied where they do not lie side by side, or are of another kind than the one asked for.
    """
    view: NDArray[_Scalar] = np.ascontiguousarray(array, kind).view()
    view.flags.writeable = False
    return view


class _Compiled:
    """A loop, which is compiled when it is first called outside of `interpreted()`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._machine_code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if _interpreting:
            with np.errstate(over="ignore"):  # hashes wrap around, as they do in machine code
                return self._function(*arguments)
        return (self._machine_code or self._code_for(arguments))(*arguments)

    def __reduce__(self) -> str:
        return self._function.__qualname__  # Spark's workers import it

    def _code_for(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Machine code for such arguments: one of several processes compiles it, the others load what that one kept."""
        loop: Any = self.machine_code()
        folder = loop.stats.cache_path if hasattr(loop, "stats") else None
        if folder is not None:
            with _alone_in(Path(folder)):
                loop.compile(tuple(map(loop.typeof_pyval, arguments)))
        return cast("Callable[..., Any]", loop)

    def machine_code(self) -> Callable[..., Any]:
        """What numba makes of the function, and of those that it calls."""
        if self._machine_code is None:
            import numba

            function = cast("FunctionType", self._function)
            names = {
                name: value.machine_code() if isinstance(value, _Compiled) else value
                for name, value in function.__globals__.items()
                if name in function.__code__.co_names or name.startswith("__")
            }
            own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
            own.__module__, own.__qualname__ = function.__module__, function.__qualname__
            compile_it: Any = numba.njit(cache=_can_keep(), nogil=True, boundscheck=False)
            self._machine_code = _for_any_number(compile_it(own))
        assert self._machine_code is not None
        return self._machine_code


def _for_any_number(loop: Any) -> Callable[..., Any]:
    """The loop as others call it: numba would compile it anew for each constant, and each size of a whole number."""
    if not hasattr(loop, "get_call_template"):
        return cast("Callable[..., Any]", loop)  # with NUMBA_DISABLE_JIT=1: the function itself
    types: Any = importlib.import_module("numba.core.types")
    call_template = loop.get_call_template

    def plain(kind: Any) -> Any:
        kind = types.unliteral(kind)
        return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind

    def of_plain_types(arguments: Any, named: Any) -> Any:
        names = {name: plain(kind) for name, kind in named.items()}
        return call_template(tuple(map(plain, arguments)), names)

    loop.get_call_template = of_plain_types
    return cast("Callable[..., Any]", loop)


class _CopyBytes(_Compiled):
    """In compiled loops one call of `memcpy`: an assignment of slices takes ten times as long there."""

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def machine_code(self) -> Callable[..., Any]:
        if self._machine_code is None:
            numba: Any = importlib.import_module("numba")
            self._machine_code = self._function if numba.config.DISABLE_JIT else _copying()
        assert self._machine_code is not None
        return self._machine_code


@_CopyBytes
def copy_bytes(out: Any, at: int, data: Any, start: int, stop: int) -> int:
    """Copy the bytes `start` … `stop` of one array to `at` of another; gives the place after them.

    Both are arrays of uint8 without gaps that do not overlap; 0 ≤ `start` ≤ `stop`, and there is room: in
    compiled loops nothing of this is checked.
    """
    out[at : at + stop - start] = data[start:stop]
    return at + stop - start


def _copying() -> Callable[..., Any]:
    """What numba puts where `copy_bytes` is called."""
    core: Any = importlib.import_module("numba.core")
    extending: Any = importlib.import_module("numba.extending")
    place = core.types.intp

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, at, data, start, stop = arguments
        of_out, _, of_data, _, _ = signature.args
        target = context.make_array(of_out)(context, builder, out).data
        source = context.make_array(of_data)(context, builder, data).data
        count = builder.sub(stop, start)
        core.cgutils.raw_memcpy(
            builder, builder.gep(target, [at]), builder.gep(source, [start]), count, 1
        )
        return builder.add(at, count)

    def typed(_typing: Any, out: Any, at: Any, data: Any, start: Any, stop: Any) -> Any:  # noqa: ARG001
        return place(out, place, data, place, place), generated

    made: Callable[..., Any] = extending.intrinsic(typed)
    return made


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """While no other process compiles what is kept in this folder; where files cannot be locked, at once."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context((folder / "compiling.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Closing it would not do: a process that was forked meanwhile has it open, too.
            held.callback(fcntl.flock, lock, fcntl.LOCK_UN)
        yield


def _can_keep() -> bool:
    """Whether there is a place for object code at all: a user without a home may have none."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return True
    if os.access(Path(__file__).parent, os.W_OK):
        return True
    try:
        return os.access(Path.home(), os.W_OK)
    except RuntimeError:
        return False
