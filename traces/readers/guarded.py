"""A reader of another package: where its code fails, the error says so, and names the file and the line of the reader."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import cast

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.source import of_traceback
from stagewright.traces.readers.protocol import Tally


class GuardedReader:
    """What the module of a reader offers, with the faults of its functions told from those of this program."""

    def __init__(self, form: str, module: ModuleType) -> None:
        self._form = form
        self._module = module

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._module, name)
        if not isinstance(found, FunctionType):
            return found

        @functools.wraps(found)
        def called(*args: object, **options: object) -> object:
            with self._faults(args):
                result: object = found(*args, **options)
            return self._all(cast("Iterator[object]", result), args) if _goes_on(result) else result

        return called

    def _all(self, items: Iterator[object], args: tuple[object, ...]) -> Iterator[object]:
        with self._faults(args):
            yield from items
            for tally in (a for a in args if isinstance(a, Tally)):
                self._check(tally, args)

    def _check(self, tally: Tally, args: tuple[object, ...]) -> None:
        """Refuse counts of lines that do not add up: each line is one of four things."""
        known = tally.blank + tally.other + tally.unparsed + tally.with_events + tally.lost
        if known != tally.lines:
            raise InputError(
                f"the reader `{self._form}` read {tally.lines:,} lines of {_file(args)} and accounts for {known:,}",
                help="count each line once: in `blank`, `other` or `with_events` of the tally, or by `refuse`; "
                "its `events` may be more",
            )

    @contextmanager
    def _faults(self, args: tuple[object, ...]) -> Iterator[None]:
        try:
            yield
        except (StagewrightError, OSError, MemoryError, GeneratorExit):
            raise
        except Exception as error:
            place = of_traceback(error.__traceback__, self._module.__file__ or "")
            raise InputError(
                f"the reader `{self._form}` fails on {_file(args)}, at {place}: "
                f"{type(error).__name__}: {error}",
                help="mend the reader: a line that it cannot understand is refused by "
                "`tally.refuse(line, reason)`",
            ) from error


def _file(args: tuple[object, ...]) -> str:
    return next((str(getattr(a, "path", a)) for a in args[:1]), "")


def _goes_on(result: object) -> bool:
    return isinstance(result, Iterator)
