"""What a campaign can be of: something that a seed says all of."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from rich.console import RenderableType

from stagewright.impl.recording.failure import Failure


class Outcome(Protocol):
    """What is kept of one run."""

    @property
    def seed(self) -> int:
        """Of the run."""
        ...

    def to_json(self) -> dict[str, Any]:
        """One line of the file of results."""
        ...


R_co = TypeVar("R_co", bound=Outcome, covariant=True)
R_contra = TypeVar("R_contra", bound=Outcome, contravariant=True)


class Progress(Protocol):
    """How far a campaign is."""

    runs: int
    failed: int


class Tally(Progress, Protocol[R_contra]):
    """Adds up results."""

    def add(self, result: R_contra, /) -> None:
        """Take the result of one more run."""
        ...


class Subject(Protocol[R_co]):
    """What is run. `name` tells its builds apart: results of one are none of another."""

    @property
    def name(self) -> str:
        """As results are kept under."""
        ...

    def prepare(self) -> None:
        """What all processes have from their parent."""
        ...

    def attempt(self, seed: int, /) -> R_co:
        """Run a seed; whatever goes wrong is in the result."""
        ...

    def failed(self, seed: int, failure: Failure, /) -> R_co:
        """The result of a run that came to no end."""
        ...

    def result(self, line: dict[str, Any], /) -> R_co:
        """What was kept of a run."""
        ...


class Campaign(Protocol):
    """A campaign as the command sees it."""

    def run(self) -> Progress:
        """Run the seeds."""
        ...

    def as_json(self) -> dict[str, object]:
        """The report as one object."""
        ...

    def as_text(self) -> RenderableType:
        """What was run and met, and what never was."""
        ...

    def failures(self) -> list[str]:
        """Each sort of failure, with the commands that show it."""
        ...
