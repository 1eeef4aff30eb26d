"""`--wrong-build all`: each wrong build by itself, and which seed shows it first to each check."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any, Protocol

from stagewright.commands.campaigning.asked import ALL, Asked
from stagewright.commands.campaigning.runs import run_seeds
from stagewright.impl.recording.failure import RAISED, Failure
from stagewright.impl.simulator.campaign.trial import BY_LOG
from stagewright.spec.errors import InputError

LONGEST = 120  # of what a check says, in the table


class _Trial(Protocol):
    @property
    def failures(self) -> Sequence[Failure]: ...


class Runs(Protocol):
    """Runs a seed, maybe of a wrong build."""

    def prepare(self) -> None:
        """What all processes have from their parent."""
        ...

    def attempt(self, seed: int, /) -> _Trial:
        """Run a seed."""
        ...


@dataclass(frozen=True)
class Builds:
    """The wrong builds of a subject, how one is run, and the checks by which it may be noticed."""

    kinds: type[Enum]
    runs: Callable[[Enum], Runs]
    by: Mapping[str, str]  # names of checks, with what they say


@dataclass(frozen=True)
class Shown:
    """What a hunt has found: for each check the first seed at which it notices a build, and what it says."""

    seed: int  # the number of the build: hunts are kept as runs of seeds are
    build: str
    runs: int = 0
    first: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    def to_json(self) -> dict[str, Any]:
        """One line of the file of results."""
        return asdict(self)


@dataclass
class Hunted:
    """Adds up hunts; `failed`: builds that no check has noticed."""

    runs: int = 0
    failed: int = 0
    shown: dict[int, Shown] = field(default_factory=dict[int, Shown])

    def add(self, result: Shown, /) -> None:
        """Take what one more hunt has found."""
        self.runs += 1
        self.failed += not result.first
        self.shown[result.seed] = result


def hunt(runs: Runs, build: str, seeds: range, checks: Sequence[str], number: int = 0) -> Shown:
    """Run seeds until each of the checks has noticed the build, or all are run."""
    first: dict[str, tuple[int, str]] = {}
    done = 0
    for seed in seeds:
        done += 1
        for failure in runs.attempt(seed).failures:
            first.setdefault(failure.by, (seed, _said(failure)))
        if all(check in first for check in checks):
            break
    return Shown(number, build, done, first)


class WrongBuildHunts:
    """One hunt a build."""

    def __init__(self, asked: Asked, of: Builds) -> None:
        """Raises InputError if a name is of no build."""
        self.name = f"{asked.of} wrong builds of {asked.seeds} logs={asked.logs}"
        self._asked = asked
        self._of = of
        self._checks = [check for check in of.by if check != RAISED]
        self.builds = [one for one in of.kinds if any(_is(one, w) for w in asked.wrong_builds)]
        for word in asked.wrong_builds:
            if not any(_is(one, word) for one in of.kinds):
                raise InputError(
                    f"--wrong-build {word}: there is no such wrong build",
                    help=f"there are {', '.join(one.name for one in of.kinds)}",
                )
        self.tally = Hunted()

    def run(self) -> None:
        """Hunt all of them."""
        asked = self._asked
        numbers = range(len(self.builds))
        run_seeds(self, self.tally, numbers, asked.workers, asked.out, asked.seconds)

    def prepare(self) -> None:
        """What all processes have from their parent."""
        self._of.runs(self.builds[0]).prepare()

    def attempt(self, seed: int, /) -> Shown:
        """Hunt the build of this number."""
        build = self.builds[seed]
        runs = self._of.runs(build)
        return hunt(runs, build.name, self._asked.seeds, self._checks, seed)

    def failed(self, seed: int, _failure: Failure, /) -> Shown:
        """Of a hunt without an end."""
        return Shown(seed, self.builds[seed].name)

    def result(self, line: dict[str, Any], /) -> Shown:
        """From the file of results."""
        first = {check: (seed, text) for check, (seed, text) in line["first"].items()}
        return Shown(**{**line, "first": first})

    def rows(self) -> Iterator[str]:
        """A table in Markdown: who notices each build, by what, at which seed first."""
        columns = [self._of.by[check] for check in self._checks]
        yield f"| wrong build | {' | '.join(columns)} | runs |"
        yield f"| --- |{' --- |' * len(columns)} ---: |"
        for _, shown in sorted(self.tally.shown.items()):
            cells = [_cell(shown.first.get(check)) for check in self._checks]
            yield f"| {shown.build} | {' | '.join(cells)} | {shown.runs} |"

    def as_json(self) -> dict[str, object]:
        """All of it."""
        return {
            "of": self._asked.of,
            "asked": len(self.builds),
            "builds": [
                {
                    "build": shown.build,
                    "runs": shown.runs,
                    "noticed": {
                        check: {"seed": seed, "says": text}
                        for check, (seed, text) in shown.first.items()
                    },
                }
                for _, shown in sorted(self.tally.shown.items())
            ],
        }


def _is(build: Enum, word: str) -> bool:
    return word == ALL or fnmatchcase(build.name, word)


def _said(failure: Failure) -> str:
    """What a check says, without the names of a run: of a step that is refused, what it requires; of logs, the machine."""
    text = failure.text
    if failure.by == BY_LOG:
        return text.partition(":")[0]
    if " not (" in text:
        return text.rpartition(" not (")[2].rstrip(")")
    return " ".join(failure.sort[1:])


def _cell(found: tuple[int, str] | None) -> str:
    if found is None:
        return "no"
    seed, text = found
    short = textwrap.shorten(text.replace("|", "/"), LONGEST, placeholder=" …")
    return f"{short} (seed {seed})"
