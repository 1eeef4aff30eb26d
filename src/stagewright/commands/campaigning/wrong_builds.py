"""`--wrong-build all`: each wrong build by itself, and which seed shows it first to each check."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from stagewright.commands.campaigning.asked import ALL, Asked
from stagewright.commands.campaigning.runs import run_seeds
from stagewright.commands.campaigning.subject import Subject
from stagewright.impl.recording.failure import Failure
from stagewright.impl.simulator.campaign.trial import BY_LOG
from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

LONGEST = 120  # of what a check says, in the table


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


def hunt(of: Subject[Any, Any], seeds: range, number: int = 0) -> Shown:
    """Run seeds until each check has noticed the wrong build, or all are run."""
    first: dict[str, tuple[int, str]] = {}
    done = 0
    for seed in seeds:
        done += 1
        for failure in of.attempt(seed).failures:
            first.setdefault(failure.by, (seed, _said(failure)))
        if all(check in first for check in of.checks):
            break
    return Shown(number, of.asked.wrong_builds[0], done, first)


class WrongBuildHunts:
    """One hunt a build."""

    def __init__(self, asked: Asked, kind: type[Subject[Any, Any]]) -> None:
        """Raises InputError if a name is of no build."""
        self.name = f"{asked.of} wrong builds of {asked.seeds} logs={asked.logs}"
        self.asked = asked
        self._kind = kind
        self._sound = kind(replace(asked, wrong_builds=()))
        known = self._sound.wrong_builds
        self.builds = [one for one in known if any(_is(one, w) for w in asked.wrong_builds)]
        for word in asked.wrong_builds:
            if not any(_is(one, word) for one in known):
                raise InputError(
                    f"--wrong-build {word}: there is no such wrong build",
                    help=f"{did_you_mean(word, known)}there are {', '.join(known)}",
                )
        self.tally = Hunted()

    def run(self) -> None:
        """Hunt all of them."""
        run_seeds(self, range(len(self.builds)), self.tally)

    def prepare(self) -> None:
        """What all processes have from their parent."""
        self._sound.prepare()

    def attempt(self, seed: int) -> Shown:
        """Hunt the build of this number."""
        wrong = (self.builds[seed],)
        of = self._kind(replace(self.asked, wrong_builds=wrong, out=None))
        return hunt(of, self.asked.seeds, seed)

    def died(self, seed: int) -> Shown:
        """Of a hunt without an end."""
        return Shown(seed, self.builds[seed])

    def result(self, line: dict[str, Any]) -> Shown:
        """From the file of results."""
        first = {check: (seed, text) for check, (seed, text) in line["first"].items()}
        return Shown(**{**line, "first": first})

    def rows(self) -> Iterator[str]:
        """A table in Markdown: who notices each build, by what, at which seed first."""
        checks = self._sound.checks
        columns = [self._sound.by[check] for check in checks]
        yield f"| wrong build | {' | '.join(columns)} | runs |"
        yield f"| --- |{' --- |' * len(columns)} ---: |"
        for _, shown in sorted(self.tally.shown.items()):
            cells = [_cell(shown.first.get(check)) for check in checks]
            yield f"| {shown.build} | {' | '.join(cells)} | {shown.runs} |"

    def as_json(self) -> dict[str, object]:
        """All of it."""
        return {
            "of": self.asked.of,
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


def _is(build: str, word: str) -> bool:
    return word == ALL or fnmatchcase(build, word)


def _said(failure: Failure) -> str:
    """What a check says, without the names of a run: of a step that is refused, what it requires; of logs, the machine."""
    text = failure.text
    if failure.by == BY_LOG:
        return text.partition(":")[0]
    if "; unmet: " in text:
        return text.rpartition("; unmet: ")[2]
    return " ".join(failure.sort[1:])


def _cell(found: tuple[int, str] | None) -> str:
    if found is None:
        return "no"
    seed, text = found
    short = textwrap.shorten(text.replace("|", "/"), LONGEST, placeholder=" …")
    return f"{short} (seed {seed})"
