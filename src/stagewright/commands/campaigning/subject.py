"""What a campaign can be of: something that a seed says all of. A kind is one class: its runs, and what its report adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.commands.campaigning.asked import Asked, defects_named
from stagewright.impl.recording.failure import RAISED, Failure, Found
from stagewright.impl.recording.trial import Tally, Trial
from stagewright.spec.errors import InputError

T = TypeVar("T", bound=Trial)
D = TypeVar("D", bound=Enum)
_GONE = Failure(RAISED, "the process of the run was ended by the system")


class _Scenario(Protocol):
    @property
    def command(self) -> str: ...


class Small(Protocol):
    """A scenario that was made small, what fails in it, and how many runs that took."""

    @property
    def scenario(self) -> _Scenario: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def runs(self) -> int: ...


class Subject(ABC, Generic[T, D]):
    """What is run."""

    trial: type[T]
    known: type[D]
    """The mistakes that a build can be given."""
    by: ClassVar[Mapping[str, str]]
    """How the report says who noticed a failure."""
    shrinks = True

    def __init__(self, asked: Asked) -> None:
        """Raises InputError where something is asked for that there is not."""
        if asked.shrink is not None and not self.shrinks:
            raise InputError(
                f"--shrink: a run of --of {asked.of} is not made smaller",
                help="leave it out, or run the campaign of the database",
            )
        self.asked = asked
        self.defects = defects_named(asked.wrong_builds, self.known)

    @property
    def name(self) -> str:
        """As results are kept under."""
        return self.asked.name

    @property
    def wrong_builds(self) -> list[str]:
        """The names of the known mistakes."""
        return [one.name for one in self.known]

    @property
    def checks(self) -> list[str]:
        """By which a wrong build may be noticed."""
        return [check for check in self.by if check != RAISED]

    @abstractmethod
    def tally(self) -> Tally[T]:
        """An empty one."""

    @abstractmethod
    def prepare(self) -> None:
        """Read what all processes have from their parent."""

    @abstractmethod
    def attempt(self, seed: int) -> T:
        """Run a seed; whatever goes wrong is in the result."""

    def died(self, seed: int) -> T:
        """The result of a run whose process is no more."""
        return self.trial(seed, failures=(_GONE,))

    def result(self, line: dict[str, Any]) -> T:
        """What was kept of a run."""
        return self.trial.from_json(line)

    def shrink(self, found: Found) -> Small:
        """A smaller scenario that fails alike, of a kind that `shrinks`."""
        raise NotImplementedError(found)

    def command(self, seed: int) -> str:
        """What shows the run of a seed again."""
        return self.asked.again(seed, "--out", f"seed-{seed}")

    def keep(self, seed: int) -> Path | None:
        """Where the traces and logs of a run go that fails."""
        return None if self.asked.out is None else self.asked.out / f"seed-{seed}"

    def as_text(self, tally: Tally[T]) -> Iterator[RenderableType]:
        """What happened how often, and what never did."""
        yield Text(f"{tally.cpu / tally.runs if tally.runs else 0.0:.2f} s of CPU a run")
        table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
        table.add_column(justify="right")
        table.add_column()
        for name, number in sorted(tally.counts.items()):
            table.add_row(f"{number:,}", name)
        yield table
        if tally.runs and tally.never:
            yield Text(f"never happened: {', '.join(tally.never)}")

    def as_json(self, tally: Tally[T]) -> dict[str, object]:
        """The same as data."""
        return {"happened": dict(sorted(tally.counts.items())), "never_happened": tally.never}
