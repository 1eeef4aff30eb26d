"""How often events that nobody may count on happen in a check: crashes, lost messages, a client's whims."""

from __future__ import annotations

from stagewright.spec.errors import VariableError
from stagewright.spec.source import here


class BudgetName:
    """A budget of a machine; `budget(...)` or `fault_budget(...)` makes one, and actions spend it."""

    def __init__(self, default: int | None, doc: str, *, of_faults: bool = False) -> None:
        self.where = here()
        self.default = default
        self.doc = doc
        self.of_faults = of_faults
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


def budget(default: int | None = None, *, doc: str = "") -> BudgetName:
    """How often the actions that spend it may happen in a run, as in `crashes = budget(1)`; None: any number.

    They are the environment's: nobody may count on them. Where only they can happen it is a deadlock, a
    goal is not reached by them, and they cannot be fair; so a larger budget breaks more promises, never
    fewer. A check changes it by name; 0 switches the actions off.
    """
    _check("budget", default)
    return BudgetName(default, doc)


def fault_budget(default: int | None = None, *, doc: str = "") -> BudgetName:
    """The same of faults, as in `crashes = fault_budget(1)`: nobody minds if they never happen.

    What spends another budget, as a client's request does, must be possible: `stagewright mutate` asks which property
    notices that it is not.
    """
    _check("fault_budget", default)
    return BudgetName(default, doc, of_faults=True)


def _check(called: str, default: int | None) -> None:
    if default is not None and (isinstance(default, bool) or default < 0):
        raise VariableError(
            f"{called}({default}) is not a number of times",
            where=here(),
            help="write 0 or more, or None for no bound",
        )
