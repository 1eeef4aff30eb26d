"""What goes wrong in a run, and how often; times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.impl.group0.simulated import CALM, STORM, Weather
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean


@dataclass(frozen=True)
class Faults:
    """Shares of messages (0 to 1), and how often a minute something happens to the cluster."""

    loss: float = 0.0
    delay: float = 0.0
    duplicate: float = 0.0
    crash: float = 0.0  # a node, with what it had not synced; it comes back
    failover: float = 0.0  # the topology coordinator loses its lease
    election: float = 0.0  # group0 loses its leader for a while
    storm: bool = False  # group0's own requests are lost, late and repeated

    @property
    def weather(self) -> Weather:
        """That of group0."""
        return STORM if self.storm else CALM


NONE = Faults()
_RATES = {
    "loss": 0.03,
    "delay": 0.05,
    "duplicate": 0.03,
    "crash": 20.0,
    "failover": 20.0,
    "election": 10.0,
    "storm": 1.0,
}
FAULTS = tuple(_RATES)


def parse_faults(text: str) -> Faults:
    """The faults that a comma-separated list names, each maybe with `=RATE`; `all`, `none`.

    Raises:
        InputError: there is no such fault, or its rate is none.
    """
    found = NONE
    for word in filter(None, (w.strip() for w in text.split(","))):
        name, _, rate = word.partition("=")
        names = {"all": list(_RATES), "none": []}.get(name, [name])
        for one in names:
            if one not in _RATES:
                raise InputError(
                    f"--faults: there is no fault `{one}`",
                    help=f"{did_you_mean(one, [*_RATES])}known: {', '.join(_RATES)}, all, none",
                )
            try:
                value = float(rate) if rate else _RATES[one]
            except ValueError:
                value = -1.0
            if value < 0 or (one in ("loss", "delay", "duplicate") and value > 1):
                raise InputError(
                    f"--faults {word}: `{rate}` is not a rate",
                    help="of messages a share from 0 to 1, of events how often in a minute",
                )
            if one == "storm":
                found = replace(found, storm=value > 0)
            else:
                found = replace(found, **{one: value})  # type: ignore[arg-type]
    return found
