"""What clients do in a run and how backfills are cut, in words: `clients=3,keys=40,values=60,batch=2,chunk=4,rate=20`."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.run import Plan
from stagewright.impl.indexes.simulated.workload import Workload
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

MOST = 10_000
_OF_WORKLOAD = {"keys": 1, "values": 1}
_OF_SETTINGS = {  # what they are called in `Settings`, and the least of each
    "batch": ("batch", 1),
    "chunk": ("chunk_rows", 1),
    "rate": ("rows_per_second", 0),
    "slots": ("slots", 1),
    "tablets": ("tablets", 1),
    "wait": ("wait_for_old", 0),
    "rpc": ("rpc_timeout", 1),
    "bound": ("upper_bound", 0),
    "split": ("split_rows", 0),
}
SIZES = ("clients", *_OF_WORKLOAD, "slow", *_OF_SETTINGS)


def with_sizes(plan: Plan, text: str) -> Plan:
    """The plan with what a comma-separated list says.

    Raises:
        InputError: a word of it is not understood.
    """
    for word in filter(None, (w.strip() for w in text.split(","))):
        name, _, value = word.partition("=")
        if name not in SIZES:
            raise InputError(
                f"--workload: there is no `{name}` where indexes are built",
                help=f"{did_you_mean(name, [*SIZES])}known: {', '.join(SIZES)}",
            )
        try:
            plan = _with(plan, name, value)
        except ValueError:
            form = "a share, as in slow=0.1" if name == "slow" else f"a number, as in {name}=3"
            raise InputError(f"--workload: `{word}`", help=f"write {form}") from None
    return plan


def _with(plan: Plan, name: str, value: str) -> Plan:
    if name == "clients":
        return replace(plan, clients=_number(value, 1))
    if name == "slow":
        share = float(value)
        if not 0 <= share <= 1:
            raise ValueError(value)
        return replace(plan, workload=replace(plan.workload, slow=share))
    if name in _OF_WORKLOAD:
        number = _number(value, _OF_WORKLOAD[name])
        if name == "keys":
            return replace(plan, workload=replace(plan.workload, keys=number))
        return replace(plan, workload=replace(plan.workload, values=number))
    called, least = _OF_SETTINGS[name]
    changed: dict[str, int] = {called: _number(value, least)}
    return replace(plan, settings=replace(plan.settings, **changed))  # type: ignore[arg-type]


def _number(text: str, least: int) -> int:
    value = int(text)
    if not least <= value <= MOST:
        raise ValueError(text)
    return value


def sizes_text(workload: Workload, settings: Settings, clients: int) -> str:
    """The list that `with_sizes` reads as these."""
    words = [f"clients={clients}", f"keys={workload.keys}", f"values={workload.values}"]
    words += [f"slow={workload.slow:g}"]
    words += [f"{name}={getattr(settings, called)}" for name, (called, _) in _OF_SETTINGS.items()]
    return ",".join(words)
