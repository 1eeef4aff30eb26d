"""What the command line asks of a campaign."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

D = TypeVar("D", bound=Enum)
ALL = "all"  # wrong builds


@dataclass(frozen=True)
class Asked:
    """Seeds, and how they are run. `wrong_builds` are names of mistakes that the build is to have."""

    of: str
    seeds: range
    workers: int
    out: Path | None = None
    seconds: int | None = None
    shrink: int | None = None
    wrong_builds: tuple[str, ...] = ()
    logs: bool = False  # of the database: check these, too

    @property
    def name(self) -> str:
        """What results are results of."""
        logs = ("logs",) if self.logs else ()
        return " ".join((self.of, *logs, *sorted(self.wrong_builds)))

    def again(self, seed: int, *more: str) -> str:
        """The command that runs one of the seeds once more."""
        words = ["stagewright", "campaign", "--of", self.of, "--seeds", str(seed)]
        words += ["--logs"] if self.logs else []
        for name in self.wrong_builds:
            words += ["--wrong-build", name]
        return shlex.join([*words, *more])


def is_hunt(names: Iterable[str]) -> bool:
    """Whether wrong builds are asked for one after the other: all, or those that a pattern matches."""
    return any(name == ALL or "*" in name for name in names)


def defects_named(names: Iterable[str], kinds: type[D]) -> frozenset[D]:
    """The mistakes of these names.

    Raises:
        InputError: there is none of a name.
    """
    known = {one.name: one for one in kinds}
    for name in names:
        if name not in known:
            raise InputError(
                f"--wrong-build {name}: there is no such wrong build",
                help=f"{did_you_mean(name, known)}there are {', '.join(known)}",
            )
    return frozenset(known[name] for name in names)
