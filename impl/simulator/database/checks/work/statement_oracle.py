"""Tables and views come and go as the script says: each statement counts once, however often, late, and by whom it is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.view import View
from stagewright.impl.simulator.database.checks.oracle import Oracle

What = Literal["create", "drop"]
_PAST = {"create": "created", "drop": "dropped"}


class StatementOracle:
    """Compares what is asked for, by name, with what is committed."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._due: Counter[tuple[str, str]] = Counter()  # asked for, and neither done nor refused

    def carry_out(self, what: What, thing: str, ask: Callable[[], str]) -> str:
        """Ask for something, and return what became of it.

        What is refused, or done, does not happen once more later; of what is not answered nothing is known.
        """
        key = what, name_of(thing)
        self._due[key] += 1
        result = ask()
        if result in ("", "done"):
            self._due[key] = 0
        elif result.startswith("refused"):
            self._due[key] -= 1
        return result

    def committed(self, before: View, after: View) -> None:
        """Something was committed: tables and views may have been made or dropped."""
        self._look("create", after.tables.keys() - before.tables.keys() - {*after.logs.values()})
        self._look("drop", before.tables.keys() - after.tables.keys() - {*before.logs.values()})

    def _look(self, what: What, changed: set[str]) -> None:
        for thing in sorted(changed):
            key = what, name_of(thing)
            if self._due[key] > 0:
                self._due[key] -= 1
            else:
                self._oracle.broken(
                    f"{thing} was {_PAST[what]}, and no statement asked for that now"
                )
