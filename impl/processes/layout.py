"""The directory of a cluster, and which of its nodes run.

cluster.json            what all nodes share
secret                  what shows that one belongs to it, for its owner's eyes alone
group0.sqlite           the log of commands, unless it lies in etcd
nodes/NAME/node.json    who a node is
nodes/NAME/rows/        its rows
nodes/NAME/process      the number of its process, which holds a lock on this file as long as it lives
nodes/NAME/stopped      why it is not to be started again
nodes/NAME/log          what it had to say
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stagewright.impl.node.messages import HostInfo
from stagewright.impl.node.port import Identity, Timing
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.held_files import hold, holder

REAL = Timing(
    request=2_000,
    resend=200,
    lease=3_000,
    ring_delay=2_500,
    retry=300,
    leeway=5_000,
    horizon=20_000,
    compact_after=500,
    superseding=500,
    view_call=5_000,
    view_removal=200,
)
"""Milliseconds: a machine with other work to do must not look like one that is dead."""

SECRET = 32  # bytes
LOOKED_AT = 1.0  # seconds in which those who only look whether a node runs let go of its file
_UNFINISHED = re.compile(
    r"secret|nodes(/[nm]\d+(/node\.(json|new))?)?|tablets|leaders|(cluster|table)\.new"
)


@dataclass(frozen=True)
class Settings:
    """What all nodes share. `etcd`: endpoints `http://HOST:PORT` of the log, if it is not in SQLite."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))  # tells logs in one etcd apart
    etcd: tuple[str, ...] = ()
    timing: Timing = REAL


@dataclass(frozen=True)
class NodeFile:
    """Who a node is, and where it finds others before it has learned the topology."""

    identity: Identity
    book: dict[str, str] = field(default_factory=dict[str, str])  # addresses by name


class Layout:
    """The files of a cluster in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    # -- the cluster -----------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a cluster is there."""
        return (self.directory / "cluster.json").exists()

    def create(self, settings: Settings, nodes: Iterable[NodeFile]) -> None:
        """Begin a cluster: it is there once all of it is.

        Raises:
            ClusterError: the directory is another's, or cannot be made.
        """
        self.begin()
        for node in nodes:
            self.add_node(node)
        _write(self.directory / "cluster.json", asdict(settings))

    def begin(self) -> None:
        """Make the directory, with a secret of its own; whoever was interrupted here before has left a part of it.

        Raises:
            ClusterError: it is another's, or cannot be made.
        """
        path = self.directory / "secret"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            there = {str(p.relative_to(self.directory)) for p in self.directory.rglob("*")}
            if any(_UNFINISHED.fullmatch(name) is None for name in there):
                raise ClusterError(f"{self.directory} is not empty", help="name a new directory")
            shutil.rmtree(self.directory / "nodes", ignore_errors=True)
            if not path.exists():
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w") as file:
                    file.write(secrets.token_hex(SECRET))
            elif len(self.secret()) != SECRET:
                raise ClusterError(f"{self.directory} is not empty", help="name a new directory")
        except OSError as error:
            raise ClusterError(
                f"{self.directory}: {error.strerror}", help="name another directory"
            ) from None

    def settings(self) -> Settings:
        """What all nodes share.

        Raises:
            ClusterError: (as of all that reads here) there is no cluster, or its file is damaged.
        """
        read = _read(self.directory / "cluster.json", f"there is no cluster in {self.directory}")
        return Settings(read["name"], tuple(read["etcd"]), Timing(**read["timing"]))

    def secret(self) -> bytes:
        """The secret that its processes share."""
        path = self.directory / "secret"
        try:
            return bytes.fromhex(path.read_text("ascii"))
        except FileNotFoundError:
            raise ClusterError(
                f"there is no cluster in {self.directory}",
                help="`stagewright cluster start --dir D` begins one",
            ) from None
        except (OSError, ValueError):
            raise ClusterError(f"{path} cannot be read", help="ask its owner") from None

    # -- nodes -----------------------------------------------------------------------------------------

    def node(self, name: str) -> Path:
        """The directory of a node."""
        return self.directory / "nodes" / name

    def names(self) -> list[str]:
        """Every node that there ever was, in the order of their numbers."""
        return in_order(p.parent.name for p in self.directory.glob("nodes/*/node.json"))

    def add_node(self, node: NodeFile) -> None:
        """Write down who a node is; raises FileExistsError: there is, or was, one of that name."""
        directory = self.node(node.identity.name)
        directory.mkdir(parents=True)
        _write(directory / "node.json", asdict(node))

    def node_file(self, name: str) -> NodeFile:
        """Who a node is."""
        known = ", ".join(self.names())
        path = self.node(name) / "node.json"
        if not path.exists():
            raise ClusterError(f"there is no node {name}", help=f"known: {known}")
        read = _read(path, f"{path} is gone")
        who = read["identity"]
        founders = tuple(HostInfo(**h) for h in who["founders"])
        identity = Identity(
            HostInfo(**who["host"]), founders, tuple(who["contacts"]), who["replaces"]
        )
        return NodeFile(identity, read["book"])

    # -- processes -------------------------------------------------------------------------------------

    def running(self, name: str) -> int | None:
        """The number of a node's process, if it lives."""
        said = holder(self.node(name) / "process")
        return int(said) if said.isdecimal() else None

    def claim(self, name: str) -> int:
        """Say that this process is the node, for as long as it lives; the handle that holds the lock.

        Raises:
            ClusterError: another process is.
        """
        until = time.monotonic() + LOOKED_AT
        while (handle := hold(self.node(name) / "process", str(os.getpid()))) is None:
            if time.monotonic() > until:
                raise ClusterError(f"{name} runs already", help="stop it first")
            time.sleep(0.01)
        return handle

    def stopped(self, name: str) -> str:
        """Why a node is not to be started again; empty if it may be."""
        path = self.node(name) / "stopped"
        return path.read_text("utf-8") if path.exists() else ""

    def stop_for_good(self, name: str, reason: str) -> None:
        """Write down that a node is not to be started again."""
        self.node(name).mkdir(parents=True, exist_ok=True)  # it may be lost
        (self.node(name) / "stopped").write_text(reason, "utf-8")

    def last_words(self, name: str) -> str:
        """What a node's log says last, without advice on it."""
        path = self.node(name) / "log"
        if not path.exists():
            return "nothing"
        lines = path.read_text("utf-8", errors="replace").splitlines()
        said = [line for line in lines if line.strip() and not line.startswith("  help: ")]
        return said[-1] if said else "nothing"


def in_order(names: Iterable[str]) -> list[str]:
    """Names of nodes by their numbers."""
    return sorted(names, key=lambda n: (len(n), n))


def _write(path: Path, content: object) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(content, indent=1), "utf-8")
    beside.replace(path)


def _read(path: Path, missing: str) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ClusterError(missing, help="`stagewright cluster start --dir D` makes one") from None
    except (OSError, ValueError) as error:
        raise ClusterError(f"{path} is damaged: {error}", help="restore a copy") from None
