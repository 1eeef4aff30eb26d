"""The shell's commands about views: they are made, awaited, dropped and read, and say how far they are built."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from stagewright.commands.clusters.waiting import Waiting
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.processes.builds import Build
    from stagewright.impl.processes.client import Session, ViewRow

COMMANDS = """\
  create view NAME on TABLE by value [mod N] [where value < N]   on a table with tablets; it is built in the background
  build status         how far each view is built, and how long that will take
  await NAME           wait until the view is built
  drop view NAME       drop it, whether it is built or not
"""
AWAIT = 600.0  # seconds
_LOOK = 0.2

Say = Callable[[dict[str, object]], None]


class ViewCommands:
    """What a line of the shell says of views; `say` prints what comes of it."""

    def __init__(self, session: Session, say: Say, named: Callable[[str], str]) -> None:
        self._session = session
        self._say = say
        self._named = named

    def do(self, words: list[str]) -> bool:
        """Carry a command out; whether it is one of views.

        Raises:
            InputError: there is no such view.
            ClusterError: the cluster refuses, or does not answer.
        """
        match words:
            case ["create", "view", name, "on", table, *rest]:
                self._create(name, table, rest)
            case ["drop", "view", name]:
                self._session.drop_view(self._known(name).name)
                self._say({"dropped": self._named(name)})
            case ["build", "status"]:
                for build in self._session.builds():
                    self._say(build.shown)
            case ["await", name]:
                self._await(name)
            case _:
                return False
        return True

    def _create(self, name: str, table: str, words: list[str]) -> None:
        from stagewright.impl.views.maintenance.definition import LARGEST_NUMBER, definition_in

        found = definition_in(words)
        if found is None:
            said = f"`{' '.join(words)}`" if words else "the line"
            raise InputError(
                f"{said} does not say which rows {name} has, and by what: `by value`, maybe `mod N`, N from 1 to "
                f"{LARGEST_NUMBER}, maybe `where value < N`",
                help=COMMANDS.splitlines()[0].strip(),
            )
        self._session.create_view(self._named(name), self._named(table), *found)
        self._say({"created": self._named(name), "on": self._named(table)})

    def _await(self, name: str) -> None:
        from stagewright.impl.processes.errors import ClusterError

        until, waiting = time.monotonic() + AWAIT, Waiting()
        while (build := self._known(name)).status != "SUCCESS":
            waiting.report(as_text(build.shown))
            if time.monotonic() > until:
                problem = f"{build.name} is not built after {AWAIT:g} s"
                raise ClusterError(problem, help="see `build status`, and `cluster status`")
            time.sleep(_LOOK)
        self._say(build.shown)

    def _known(self, name: str) -> Build:
        builds = {b.name: b for b in self._session.builds()}
        found = builds.get(self._named(name))
        if found is None:
            known = ", ".join(builds) or "none"
            raise InputError(f"there is no view {self._named(name)}", help=f"known: {known}")
        return found

    def base_of(self, table: str) -> str:
        """The base table of a view; empty if the table is none."""
        return next((b.base for b in self._session.builds() if b.name == table), "")

    def show(self, rows: Iterable[ViewRow]) -> None:
        """Print rows of a view, and how many there are."""
        count = 0
        for row in rows:
            self._say(
                {"key": text(row.key), "base key": text(row.base_key), "value": text(row.value)}
            )
            count += 1
        self._say({"rows": count})


def raw(word: str) -> bytes:
    """The key or value that a word is, also one that is no UTF-8: such bytes are words as surrogates."""
    return word.encode("utf-8", "surrogateescape")


def text(value: bytes) -> str:
    """Bytes of a row, as they are printed."""
    return value.decode("utf-8", errors="backslashreplace")


def as_text(what: dict[str, object]) -> str:
    """How far a view is built, as a line."""
    line = f"{what['view']} on {what['base']} {what['definition']}: {what['status']}"
    if what["status"] == "SUCCESS":
        return line
    left = what["seconds left"]
    estimate = "" if left is None else f", about {left:g} s to go"
    return f"{line}, {100 * float(str(what['done'])):.0f} %, {counted(int(str(what['tasks left'])), 'task')} left{estimate}"
