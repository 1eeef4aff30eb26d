"""What clients do in a run, in words: `keys=12,gap=0-3,reads=0.5,scans=0.2,deletes=0.1,clients=4,chunk=3`."""

from __future__ import annotations

from dataclasses import replace

from stagewright.impl.simulator.database.clients import Workload
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

CHUNK = 64  # rows that are streamed at once
MOST = 10_000
_FORMS = {
    "clients": "clients=NUMBER",
    "keys": "keys=NUMBER",
    "gap": "gap=MS-MS",
    "reads": "reads=SHARE",
    "scans": "scans=SHARE",
    "deletes": "deletes=SHARE",
    "odd": "odd=SHARE",
    "all": "all=SHARE",
    "refused": "refused=on",
    "chunk": "chunk=NUMBER",
}


def parse_workload(text: str) -> tuple[Workload, int]:
    """The workload of a comma-separated list, and how many rows nodes stream at once.

    Raises:
        InputError: a word of it is not understood.
    """
    found, chunk = Workload(), CHUNK
    for word in filter(None, (w.strip() for w in text.split(","))):
        name, _, value = word.partition("=")
        try:
            match name:
                case "clients":
                    found = replace(found, clients=_number(value))
                case "keys":
                    found = replace(found, keys=_number(value))
                case "gap":
                    low, _, high = value.partition("-")
                    found = replace(found, gap=(_number(low, 0), _number(high, int(low))))
                case "reads":
                    found = replace(found, reads=_share(value))
                case "scans":
                    found = replace(found, scans=_share(value))
                case "deletes":
                    found = replace(found, deletes=_share(value))
                case "odd":
                    found = replace(found, odd=_share(value))
                case "all":
                    found = replace(found, all=_share(value))
                case "refused":
                    found = replace(found, refused=_switch(value))
                case "chunk":
                    chunk = _number(value)
                case _:
                    raise InputError(
                        f"--workload: there is no `{name}`",
                        help=f"{did_you_mean(name, [*_FORMS])}known: {', '.join(_FORMS.values())}",
                    )
        except ValueError:
            raise InputError(f"--workload: `{word}`", help=f"write {_FORMS[name]}") from None
    return found, chunk


def _number(text: str, least: int = 1) -> int:
    value = int(text)
    if not least <= value <= MOST:
        raise ValueError(text)
    return value


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise ValueError(text)
    return text == "on"


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:  # with 1 nothing would ever be written
        raise ValueError(text)
    return value


def workload_text(workload: Workload, chunk: int) -> str:
    """The list that `parse_workload` reads as this."""
    w = workload
    scans = f"scans={w.scans:g}," if w.scans else ""
    odd = f"odd={w.odd:g}," if w.odd else ""
    levels = f"all={w.all:g}," if w.all else ""
    refused = "refused=on," if w.refused else ""
    return (
        f"clients={w.clients},keys={w.keys},gap={w.gap[0]}-{w.gap[1]},reads={w.reads:g},{scans}"
        f"deletes={w.deletes:g},{odd}{levels}{refused}chunk={chunk}"
    )
