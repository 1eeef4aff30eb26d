"""What goes wrong in a run, and how often; times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.impl.group0.simulated import CALM, STORM, Weather
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState
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
    action: float = (
        0.0  # of the calls by which a coordinator has rows streamed or removed: they break
    )
    partition: float = (
        0.0  # a node is cut off from the others and from group0, and comes back as it is
    )
    suspend: float = 0.0  # the process of a node stops, and goes on with what came meanwhile
    skew: float = 0.0  # how far the clock of a node may be off
    aimed: tuple[tuple[str, str], ...] = ()  # kinds with the states that they await

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
    "action": 0.03,
    "skew": 0.0,  # these are asked for by name
    "partition": 0.0,
    "suspend": 0.0,
}
FAULTS = tuple(_RATES)
AIMED_SHARE = 0.4  # of messages and calls, while the state lasts
OF_MESSAGES = ("loss", "delay", "duplicate")
OF_NODES = ("crash", "failover", "election")
OF_TABLETS = (*OF_NODES, *OF_MESSAGES, "action", "dead", "cut")  # what can be aimed at their stages
PENDING = "pending"  # the same: the replica that comes is gone for good
SUSPEND = "suspend"
DEATHS = ("dead", PENDING)


def at_stage(stage: Stage) -> str:
    """A stage of tablets as faults are aimed at it: topology states have some of the same names."""
    return f"tablet.{stage.name}"


_AIMS = {
    **{s.name: (*OF_NODES, *OF_MESSAGES, "action") for s in TransitionState},
    **{at_stage(s): (*OF_TABLETS, PENDING, SUSPEND) for s in Stage if s is not Stage.none},
}


def parse_faults(text: str) -> Faults:
    """The faults that a comma-separated list names, each maybe with `=RATE`; `all`, `none`.

    Raises:
        InputError: there is no such fault, or its rate is none.
    """
    found = NONE
    for word in filter(None, (w.strip() for w in text.split(","))):
        name, _, rate = word.partition("=")
        kind, at, state = name.partition("@")
        if at and not rate and kind in _AIMS.get(state, ()):
            found = replace(found, aimed=(*found.aimed, (kind, state)))
            continue
        if at:
            raise InputError(
                f"--faults {word}: it cannot be aimed so",
                help=f"{did_you_mean(state, [*_AIMS])}write KIND@STATE; kinds: {', '.join((*OF_TABLETS, PENDING, SUSPEND))} "
                f"(dead, cut, pending and suspend only at tablet.STAGE); states: {', '.join(_AIMS)}",
            )
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
            if value < 0 or (one in (*OF_MESSAGES, "action") and value > 1):
                raise InputError(
                    f"--faults {word}: `{rate}` is not a rate",
                    help="of messages and actions a share from 0 to 1, of events how often in a minute",
                )
            if one == "storm":
                found = replace(found, storm=value > 0)
            else:
                found = replace(found, **{one: value})  # type: ignore[arg-type]
    return found


def faults_text(faults: Faults) -> str:
    """The list that `parse_faults` reads as these faults."""
    words = [
        "storm" if name == "storm" else f"{name}={getattr(faults, name):g}"
        for name in FAULTS
        if getattr(faults, name)
    ]
    return ",".join([*words, *(f"{kind}@{state}" for kind, state in faults.aimed)]) or "none"


ENTERED = "entered"  # counted beside the faults of a state
KINDS = (
    "message lost",
    "message late",
    "message repeated",
    "barrier lost",
    "stream lost",
    "node crashes",
    "coordinator crashes",
    "unsynced rows lost",
    "coordinator deposed",
    "group0 elects",
    "commit unknown",
    "action fails",
    "node dies",
    "node cut off",
    "node suspended",
)
"""The faults that a run counts by the state in which they happen, of the topology or of a tablet."""
