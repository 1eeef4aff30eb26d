"""etcd's members as child processes, on the loopback only: for `cluster start`, and for tests that kill them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from stagewright.impl.group0.port import Group0Error

# Upstream withdrew 3.5.0 to 3.5.2: "inconsistent revision and data" after a kill under load.
_WITHDRAWN = {(3, 5, 0), (3, 5, 1), (3, 5, 2)}


def find_etcd() -> Path | None:
    """The binary: what `STAGEWRIGHT_ETCD` names, or `etcd` on the path."""
    found = os.environ.get("STAGEWRIGHT_ETCD") or shutil.which("etcd")
    return Path(found) if found else None


def version_of(binary: Path) -> tuple[int, int, int]:
    """The version that a binary says it has.

    Raises:
        Group0Error: it is no etcd, or one of the versions that lose data when they are killed.
    """
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Group0Error(
            f"{binary} cannot be started: {error}", help="name another etcd"
        ) from None
    found = re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said.stdout)
    if found is None:
        raise Group0Error(f"{binary} is no etcd", help="name one by STAGEWRIGHT_ETCD")
    version = (int(found[1]), int(found[2]), int(found[3]))
    if version in _WITHDRAWN:
        raise Group0Error(
            f"{binary} is etcd {'.'.join(map(str, version))}, withdrawn because it can lose data",
            help="use 3.4.22 or later, or 3.5.6 or later",
        )
    return version


@dataclass
class Member:
    """One member: its directory, its two addresses, its process while it runs."""

    name: str
    directory: Path
    client: str
    peer: str
    process: subprocess.Popen[bytes] | None = None


class EtcdCluster:
    """A cluster in a directory; a context manager that starts it and ends it.

    Start it from the main thread: a member dies with the thread that started it.

    Raises:
        Group0Error: there is no etcd, or none that can be trusted.
    """

    def __init__(self, directory: Path, size: int = 1, binary: Path | None = None) -> None:
        found = binary or find_etcd()
        if found is None:
            raise Group0Error(
                "no etcd was found",
                help="install Debian's `etcd-server`, or name a binary by STAGEWRIGHT_ETCD",
            )
        version_of(found)
        self.binary = found
        self.directory = directory
        self.members: list[Member] = []
        ports = _free_ports(2 * size)
        for i in range(size):
            client, peer = (f"http://127.0.0.1:{p}" for p in ports[2 * i : 2 * i + 2])
            self.members.append(Member(f"member{i}", directory / f"member{i}", client, peer))

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Where clients reach the members."""
        return tuple(m.client for m in self.members)

    def start(self, index: int) -> None:
        """Start a member, with the data that it has."""
        member = self.members[index]
        member.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = {
            "name": member.name,
            "data-dir": str(member.directory),
            "listen-client-urls": member.client,
            "advertise-client-urls": member.client,
            "listen-peer-urls": member.peer,
            "initial-advertise-peer-urls": member.peer,
            "initial-cluster": ",".join(f"{m.name}={m.peer}" for m in self.members),
            "initial-cluster-state": "new",  # ignored when there is data
            "logger": "zap",
            "log-level": "warn",
            "pre-vote": "true",
        }
        with (self.directory / f"{member.name}.log").open("ab") as log:
            member.process = subprocess.Popen(
                [*_tied(), self.binary, *(f"--{name}={value}" for name, value in flags.items())],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.defpath, "GOMAXPROCS": "1"},  # no proxies, no ETCD_*
            )

    def wait_until_ready(self, index: int, seconds: float = 20.0) -> None:
        """Until a member answers a linearizable read.

        Raises:
            Group0Error: it ended, or does not in time.
        """
        deadline, member = time.monotonic() + seconds, self.members[index]
        while not _is_healthy(member):
            ended = member.process is None or member.process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise Group0Error(
                    f"etcd's {member.name} {'has ended' if ended else 'is not ready'}",
                    help=f"see {self.directory / member.name}.log",
                )
            time.sleep(0.02)

    def kill(self, index: int, how: signal.Signals = signal.SIGKILL) -> None:
        """End a member and wait for that."""
        process = self.members[index].process
        if process is not None and process.poll() is None:
            process.send_signal(how)
            process.wait(timeout=10)

    def leader(self) -> int | None:
        """Which member leads the others, as the first one says that answers and knows."""
        ids: dict[str, int] = {}
        said: list[str] = []
        for i, member in enumerate(self.members):
            with contextlib.suppress(OSError, ValueError, KeyError):
                url = f"{member.client}/v3/maintenance/status"
                with urllib.request.urlopen(url, data=b"{}", timeout=1) as answer:
                    body = json.load(answer)
                ids[body["header"]["member_id"]] = i
                said.append(body.get("leader", ""))
        return next((ids[leader] for leader in said if leader in ids), None)

    def __enter__(self) -> EtcdCluster:
        try:
            for i in range(len(self.members)):
                self.start(i)
            for i in range(len(self.members)):
                self.wait_until_ready(i)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        for i in range(len(self.members)):
            self.kill(i)


def _is_healthy(member: Member) -> bool:
    try:
        with urllib.request.urlopen(f"{member.client}/health", timeout=1) as answer:
            return json.load(answer)["health"] in ("true", True)
    except (OSError, ValueError, KeyError):  # refused, 503, cut off
        return False


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; all are held at once, so that no two are equal."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _tied() -> list[str]:
    """Before a command: it is killed when the thread that starts it ends (where the system can do that)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
