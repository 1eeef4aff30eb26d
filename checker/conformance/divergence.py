"""How an implementation differs from its definition, as a story: what happened, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from stagewright.spec.scope import BUDGET_PREFIX
from stagewright.spec.values import State, Value, flatten, show, summarised
from stagewright.spec.verdict import Step

_FIRST_SHOWN = 3  # moves of a long run that are shown before the gap
_LAST_SHOWN = 27  # and after it
_WIDTH = 100  # columns, of which one change may take more


class Fault(Enum):
    """What an implementation does wrong."""

    DIFFERS = "ends in another state"
    REFUSED = "refuses what must happen"
    ACCEPTED = "accepts what must be refused"
    CHANGED = "is changed by what it refuses"
    WRONG_REASON = "refuses for a requirement that holds"
    FAILED = "fails"


@dataclass(frozen=True)
class Move:
    """One event given to an implementation: to be carried out, or `refused`."""

    step: Step
    refused: bool = False

    def __repr__(self) -> str:
        return f"not {self.step.label}" if self.refused else self.step.label


@dataclass(frozen=True)
class Walk:
    """One run: an initial state and what to do from there."""

    start: State
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Difference:
    """A leaf whose observed value is not the expected one."""

    leaf: str
    expected: object
    observed: object

    def __str__(self) -> str:
        return f"{self.leaf}: expected {_value(self.expected)}, observed {_value(self.observed)}"


@dataclass(frozen=True)
class Divergence:
    """Where an implementation first differs: `states[i]` is the definition's state after i moves.

    The last move is the one that went wrong; none if it was the reset. `requirements` are those that
    should have refused it (in words), `error` is what the implementation raised.
    """

    machine: str
    fault: Fault
    states: tuple[State, ...]
    moves: tuple[Move, ...]
    differences: tuple[Difference, ...] = ()
    requirements: tuple[str, ...] = ()
    error: str = ""

    @property
    def headline(self) -> str:
        """`TabletMigration (seed): in step 4, `use_new`, the implementation accepts what ...`."""
        last = (
            f"in step {len(self.moves)}, `{self.moves[-1].step.label}`"
            if self.moves
            else "at reset"
        )
        return f"{self.machine}: {last}, the implementation {self.fault.value}"

    def story(self) -> str:
        """The whole divergence as text: headline, numbered steps, what is wrong."""
        return "\n".join([self.headline, "", *self._steps(), "", *self._wrong()])

    def _steps(self) -> Iterator[str]:
        width = max((len(move.step.label) for move in self.moves), default=0)
        yield from _wrapped("  initially  ", _all_of(self.states[0]))
        gap = len(self.moves) - _FIRST_SHOWN - _LAST_SHOWN
        for i, move in enumerate(self.moves):
            if gap > 1 and _FIRST_SHOWN <= i < _FIRST_SHOWN + gap:
                if i == _FIRST_SHOWN:
                    yield f"       ... {gap} more steps ..."
                continue
            yield from _wrapped(
                f"  {i + 1:>3}  {move.step.label:<{width}}  ", self._remarks(i, move)
            )

    def _remarks(self, index: int, move: Move) -> list[str]:
        if move.refused:
            last = index == len(self.moves) - 1
            return ["must be refused" if last else "is refused, as it must be"]
        return _changes(self.states[index], self.states[index + 1]) or ["changes nothing"]

    def _wrong(self) -> Iterator[str]:
        if self.error:
            yield f"  the implementation raised {self.error}"
        match self.fault:
            case Fault.ACCEPTED | Fault.CHANGED:
                yield "  it must be refused, and change nothing, because this does not hold:"
                yield from (f"    - {requirement}" for requirement in self.requirements)
            case Fault.WRONG_REASON:
                yield "  but this holds:"
                yield from (f"    - {requirement}" for requirement in self.requirements)
            case Fault.REFUSED:
                none = "it has no requirements" if not self.requirements else "these hold:"
                yield f"  it must happen, because {none}"
                yield from (f"    - {requirement}" for requirement in self.requirements)
            case Fault.DIFFERS | Fault.FAILED:
                pass
        yield from (f"  {difference}" for difference in self.differences)


class ConformanceError(AssertionError):
    """An implementation does not do what its definition says."""

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence
        super().__init__(divergence.story())


def _wrapped(head: str, texts: list[str]) -> Iterator[str]:
    """Texts with commas between them, in lines that are broken after a comma and begin below each other."""
    line = head + texts[0]
    for text in texts[1:]:
        if len(line) + len(text) + 3 > _WIDTH:
            yield f"{line},"
            line = " " * len(head) + text
        else:
            line += f", {text}"
    yield line


def _changes(old: State, new: State) -> list[str]:
    before = dict(_leaves(old))
    return [
        f"{name}: {show(before[name])} → {show(value)}"
        for name, value in _leaves(new)
        if before[name] != value
    ]


def _all_of(state: State) -> list[str]:
    shown = {name: show(value) for name, value in _leaves(state)}
    return [f"{place} {value}" for place, value in summarised(shown)]


def _leaves(state: State) -> Iterator[tuple[str, Value]]:
    """All but the budgets, which are the check's own business."""
    for name, value in state.items():
        if not name.startswith(BUDGET_PREFIX):
            yield from flatten(name, value)


def _value(value: object) -> str:
    """A plain value as people read it: a name bare, a list as a set; anything else as Python writes it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case list() if all(isinstance(item, str) for item in value):
            return "{" + ", ".join(value) + "}"
        case _:
            return repr(value)
