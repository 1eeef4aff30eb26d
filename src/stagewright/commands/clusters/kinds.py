"""The kinds of cluster that a directory may have: each is one class, of which `cluster` and `shell` know what is here."""

from __future__ import annotations

import argparse
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.output import check_directory
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.live.pages import Watched

ACTIONS = ("start", "status", "stop", "kill", "watch")
FLAGS = (
    "replicas",
    "listen",
    "etcd",
    "cdc",
    "images",
    "tablets",
    "split_rows",
    "builder_share",
    "user_enforced",
)  # of `start`


class Done(NamedTuple):
    """What an action has come to, as a sentence, and the nodes that it was about."""

    nodes: Sequence[str]
    said: str


class Shell(Protocol):
    """Carries commands about rows out, and prints what comes of them."""

    commands: str
    """What there is, as `help` prints it."""

    def do(self, words: list[str]) -> None:
        """Raises InputError: there is no such command, or not what it is about. ClusterError: the cluster refuses."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class Supervising(Protocol):
    """Acts on the processes of a cluster."""

    def kill(self, name: str) -> int: ...
    def stop(self, names: Iterable[str] | None = None) -> list[str]: ...


S_co = TypeVar("S_co", bound=Supervising, covariant=True)


class Kind(ABC, Generic[S_co]):
    """The cluster of a directory, or what it would be."""

    name: ClassVar[str]
    begins: ClassVar[str]
    """How one is begun."""
    mark: ClassVar[str]
    """The file by which its directory is known."""
    member: ClassVar[str]
    """What its processes are called."""
    serves: ClassVar[str]
    """What is said once all are started."""
    actions: ClassVar[tuple[str, ...]]
    """Those that not all kinds have."""
    flags: ClassVar[tuple[str, ...]]
    """Of `start`, that not all kinds have."""
    supervisor: S_co

    @abstractmethod
    def __init__(self, directory: Path) -> None: ...

    @abstractmethod
    def refuse_none(self) -> None:
        """Raises ClusterError: the directory has no cluster."""

    @abstractmethod
    def start(self, args: argparse.Namespace) -> list[str]:
        """Begin a cluster, or refuse what the one that is there cannot become; start what does not run."""

    @abstractmethod
    def more(self, args: argparse.Namespace) -> Done | ExitCode:
        """One of its own actions; an exit code if it has printed what there is to say."""

    @abstractmethod
    def status(self) -> tuple[bool, dict[str, Any], Iterator[Any]]:
        """Whether all is well; how the cluster is as data; and as what a console prints."""

    @abstractmethod
    def watched(self) -> Watched:
        """What its page shows."""

    @abstractmethod
    def shell(self, args: argparse.Namespace) -> Shell:
        """What `stagewright shell` talks to."""

    # -- what all kinds do alike -------------------------------------------------------------------------------

    def act(self, args: argparse.Namespace) -> Done | ExitCode:
        """Do what the command line asks for."""
        node: str | None = getattr(args, "node", None)
        if args.action == "start":
            for flag in FLAGS:
                if getattr(args, flag) and flag not in self.flags:
                    raise self._lacks(f"--{flag}", ("nodes", *self.flags), "--")
            check_directory("--dir", args.dir)
            started = self.start(args)
            return Done(started, f"{self._named(started)} started; {self.serves}")
        self.refuse_none()
        match args.action:
            case "stop":
                stopped = self.supervisor.stop([node] if node else None)
                return Done(stopped, f"{self._named(stopped)} stopped")
            case "kill":
                assert node is not None
                self.supervisor.kill(node)
                return Done([node], f"{node} is killed")
            case "status":
                return self._show_status(as_json=args.json)
            case "watch":
                return self._watch(args)
            case action if action in self.actions:
                return self.more(args)
            case action:
                raise self._lacks(f"`{action}`", (*ACTIONS, *self.actions))

    def _lacks(self, what: str, has: Sequence[str], sign: str = "") -> InputError:
        known = ", ".join(sign + one.replace("_", "-") for one in has)
        return InputError(
            f"{self.name} has no {what.replace('_', '-')}", help=f"it has {known}; {self.begins}"
        )

    def _named(self, nodes: list[str]) -> str:
        return ", ".join(nodes) or f"no {self.member}"

    def _show_status(self, *, as_json: bool) -> ExitCode:
        from stagewright.commands.console.output import console

        well, document, shown = self.status()
        if as_json:
            print(json.dumps({"well": well, **document}, indent=1))
        else:
            out = console()
            for one in shown:
                if isinstance(one, str):
                    print(one)
                else:
                    out.print(one)
        return ExitCode.HOLDS if well else ExitCode.VIOLATED

    def _watch(self, args: argparse.Namespace) -> ExitCode:
        """Serve the page until the user has enough."""
        from stagewright.commands.console.serving import serve_page
        from stagewright.live.pages import server

        watched = self.watched()
        try:
            return serve_page(args, lambda: server(watched, args.port))
        finally:
            watched.close()


def show(text: str) -> None:
    """What goes on meanwhile."""
    print(text, file=sys.stderr, flush=True)


def kind_of(directory: Path, *, indexes: bool = False) -> Kind[Any]:
    """The cluster of a directory; of one that has none, what it would be.

    Raises:
        InputError: an indexed table is asked for, and another kind is there.
    """
    from stagewright.commands.clusters.database import Database
    from stagewright.commands.clusters.index_cluster import IndexedTable

    there = next((k for k in (Database, IndexedTable) if (directory / k.mark).exists()), None)
    if indexes and there is Database:
        raise InputError(
            f"--indexes: {directory} has {there.name}", help="leave it out, or name a new directory"
        )
    return (there or (IndexedTable if indexes else Database))(directory)
