"""What a command found, as the reports for CI systems need it: neither command nor format shows here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum

from stagewright.commands.reports.places import Place
from stagewright.spec.verdict import Outcome


class Level(Enum):
    """How much a finding matters; the names are SARIF's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class FlowStep:
    """One state of a counterexample, and how it came about: `number` 0 is the first state.

    `changes` says in words what changed; `state` has the new values of those leaves, or in the first
    state the values of all.
    """

    number: int
    text: str
    where: Place | None
    state: tuple[tuple[str, str], ...] = ()
    changes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("step",)

    @property
    def is_breach(self) -> bool:
        """Whether this is no step: the promise itself, which the last state breaks."""
        return self.kinds == ("danger",)


@dataclass(frozen=True)
class Case:
    """One promise and what became of it; `outcome` None: it was left out, as `note` says.

    `headline` says in one line what happened, `why` the reasons, `story` the whole counterexample.
    """

    name: str
    rule: str  # the name, of letters that any system takes
    kind: str
    meaning: str  # what a promise of this kind demands
    promise: str  # in the words of the one who made it
    outcome: Outcome | None
    note: str
    where: Place | None
    headline: str = ""
    why: str = ""
    story: str = ""
    seconds: float | None = None
    vacuous: bool = False
    flow: tuple[FlowStep, ...] = ()

    @property
    def level(self) -> Level | None:
        """How much this case matters; None: there is nothing to report."""
        match self.outcome:
            case Outcome.VIOLATED:
                return Level.ERROR
            case Outcome.UNDECIDED:
                return Level.WARNING
            case _:
                return Level.WARNING if self.vacuous else None


@dataclass(frozen=True)
class Remark:
    """Something that is no promise: an action that never happened, a requirement that never refused.

    It is `provisional` if the search was cut short: more of it may show the contrary.
    """

    rule: str
    subject: str
    level: Level
    text: str
    where: Place | None
    provisional: bool = False


@dataclass(frozen=True)
class Suite:
    """What one command found about one machine, under one profile, at one scope."""

    command: str
    machine: str
    profile: str
    scope: str
    outcome: Outcome
    cases: tuple[Case, ...]
    summary: str  # one line: counts and method
    reproduce: str
    where: Place | None
    remarks: tuple[Remark, ...] = ()
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict[str, str])
    note: str = ""
    seconds: float = 0.0
    finished: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def title(self) -> str:
        """`TabletMigration (seed)`."""
        return f"{self.machine} ({self.profile})" if self.profile else self.machine


@dataclass(frozen=True)
class RemarkRule:
    """What a rule that is no promise finds, and what to do about it."""

    said: str
    mend: str


REMARK_RULES: Mapping[str, RemarkRule] = {
    "vacuous-property": RemarkRule(
        "A property holds only because nothing that it speaks of ever happens.",
        "Its premise is false in every reachable state, so it was never put to the test. Check the "
        "premise, or make it reachable; a larger scope may do so.",
    ),
    "profile-not-covered": RemarkRule(
        "Nothing is declared of a profile that a refinement could cover.",
        "Declare what it is seen as, or what is seen as it, in `profiles=`; or accept that nothing relates "
        "the two machines there.",
    ),
    "action-never-happens": RemarkRule(
        "An action is enabled in no reachable state.",
        "Its requirements are never all true together, so no property was tested against it. Check the "
        "requirements, or the scope: a budget or a size may keep it from happening.",
    ),
    "requirement-never-refuses": RemarkRule(
        "A requirement is true wherever its action was tried.",
        "It never keeps the action from happening: it may be superfluous, or the scope too small to "
        "need it.",
    ),
}
