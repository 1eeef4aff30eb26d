"""What can go wrong in a run, where and how often: `crash`, `loss=0.2`, `crash@streaming`, `all`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean


class FaultKind(Enum):
    """What goes wrong; the value says it in words."""

    loss = "messages get lost"
    delay = "messages are late, and overtake each other"
    duplicate = "messages arrive twice"
    crash = "nodes crash, in the midst of what they do, and come back later"
    failover = "another node becomes the topology coordinator"
    action = "actions and barriers of a stage fail"
    dead = "a node is gone for good, and the operator excludes it"
    unwanted = "a migration is not wanted any more while it streams"


# For messages: the share of all; for events: the chance at each stage that a tablet enters.
_RATES = {
    FaultKind.loss: 0.05,
    FaultKind.delay: 0.1,
    FaultKind.duplicate: 0.05,
    FaultKind.crash: 0.08,
    FaultKind.failover: 0.05,
    FaultKind.action: 0.15,
    FaultKind.dead: 0.03,
    FaultKind.unwanted: 0.2,
}
_RATES_AT_A_STAGE = {FaultKind.loss: 0.3, FaultKind.delay: 0.5, FaultKind.duplicate: 0.5}
OF_MESSAGES = (FaultKind.loss, FaultKind.delay, FaultKind.duplicate)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, in one stage or in every one."""

    kind: FaultKind
    rate: float
    stage: Stage | None = None

    def __str__(self) -> str:
        at = f"@{self.stage.name}" if self.stage is not None else ""
        return f"{self.kind.name}{at}={self.rate:g}"


def parse_faults(text: str) -> tuple[Fault, ...]:
    """The faults that a comma-separated list names; `none` or nothing: none at all.

    Raises:
        InputError: a part of the list is not `KIND`, `KIND@STAGE` (or `@every`), each maybe with `=RATE`.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words == ["none"]:
        return ()
    if "none" in words:
        raise InputError(f"--faults {text}: `none` cannot be combined", help="leave `none` out")
    return tuple(fault for word in words for fault in _parse(word))


def _parse(word: str) -> list[Fault]:
    what, _, rate_text = word.partition("=")
    kind_text, at, stage_text = what.partition("@")
    if kind_text == "all":
        kinds = list(FaultKind)
    else:
        kinds = [FaultKind[_known("fault", kind_text, [*FaultKind.__members__, "all", "none"])]]
    stage = None
    if at and stage_text != "every":
        stages = [s.name for s in Stage if s is not Stage.none]
        stage = Stage[_known("stage", stage_text, [*stages, "every"])]
    default = _RATES_AT_A_STAGE if at else _RATES
    return [Fault(k, _rate(word, rate_text, default.get(k, 1.0)), stage) for k in kinds]


def _known(what: str, name: str, known: list[str]) -> str:
    if name in known and name not in ("all", "none", "every"):
        return name
    hint = did_you_mean(name, known)
    raise InputError(
        f"--faults: there is no {what} `{name}`", help=f"{hint}known: {', '.join(known)}"
    )


def _rate(word: str, text: str, default: float) -> float:
    if not text:
        return default
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise InputError(
            f"--faults {word}: `{text}` is not a rate", help="write a number from 0 to 1"
        )
    return rate
