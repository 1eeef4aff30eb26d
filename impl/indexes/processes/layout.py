"""The directory of a cluster with an indexed table, which all its processes on this machine share.

table.json               what all of them share: servers, masters, settings
secret                   what shows that one belongs to it, for its owner's eyes alone
nodes/NAME/process       the number of a process, which holds a lock on this file as long as it lives
nodes/NAME/address       where it listens
nodes/NAME/log           what it had to say
catalog.sqlite           the sys catalog
leaders/master           which master leads, and holds a lock on this file
tablets/PLACE/leader     the server that leads a tablet, which holds a lock on this file
tablets/PLACE/rows/      its rows, or a link to a store that was opened before
stores/                  such stores
tablets/PLACE/deleted    it is to go
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.layout import Layout

MASTER = "master"
REAL = Settings(
    batch=524_288,
    chunk_rows=524_288,
    builder_share=10,
    retry=200,
    wait_for_old=2_000,
    rpc_timeout=3_000,
    upper_bound=4_000,
    transaction_timeout=10_000,
    lock_wait=4_000,
    resend=600,
    lag=2,
    patience=12_000,
    history=900_000,
    compaction=300_000,
)
"""A machine with other work to do must not look like one that is dead; history as YugabyteDB keeps it."""


@dataclass(frozen=True)
class TableFile:
    """Who there is, and what all of them share."""

    servers: tuple[str, ...]
    masters: tuple[str, ...]
    settings: Settings = REAL


class IndexLayout:
    """The files of a cluster in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.layout = Layout(directory)  # of its processes

    # -- the cluster -------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether a cluster with an indexed table is there."""
        return (self.directory / "table.json").exists()

    def create(self, file: TableFile) -> None:
        """Begin a cluster, with a secret of its own.

        Raises:
            ClusterError: the directory is another's, or cannot be made.
        """
        self.layout.begin()
        for name in (*file.servers, *file.masters):
            self.node(name).mkdir(parents=True, exist_ok=True)
        (self.directory / "tablets").mkdir(exist_ok=True)
        (self.directory / "leaders").mkdir(exist_ok=True)
        shared = {**asdict(file), "settings": _shared(file.settings)}
        new = self.directory / "table.new"
        new.write_text(json.dumps(shared, indent=1), "utf-8")
        new.replace(self.directory / "table.json")

    def file(self) -> TableFile:
        """What its processes share.

        Raises:
            ClusterError: there is none, or it is damaged.
        """
        path = self.directory / "table.json"
        try:
            read: dict[str, Any] = json.loads(path.read_text("utf-8"))
            settings = replace(REAL, **read["settings"])
            return TableFile(tuple(read["servers"]), tuple(read["masters"]), settings)
        except FileNotFoundError:
            raise ClusterError(
                f"there is no indexed table in {self.directory}",
                help="`stagewright cluster start --indexes --dir D` makes one",
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{path} is damaged: {error}", help="restore a copy") from None

    def node(self, name: str) -> Path:
        """The directory of a process."""
        return self.layout.node(name)

    def address(self, name: str) -> str:
        """Where a process listens; empty if it has not said so yet."""
        try:
            return (self.node(name) / "address").read_text("utf-8")
        except FileNotFoundError:
            return ""

    # -- tablets -----------------------------------------------------------------------------------------------

    def tablet(self, place: str) -> Path:
        """The directory of a tablet, or of the records of transactions."""
        return self.directory / "tablets" / place.replace("/", "-")

    def rows(self, place: str) -> Path:
        """The rows of a tablet."""
        return self.tablet(place) / "rows"

    def rows_of_all(self) -> Iterator[Path]:
        """The rows of all tablets."""
        return map(self.rows, self.places())

    @property
    def stores(self) -> Path:
        """The directory of stores that servers open before a tablet wants one."""
        return self.directory / "stores"

    def leader_file(self, place: str) -> Path:
        """The file that a leader holds."""
        if place == MASTER:
            return self.directory / "leaders" / MASTER
        return self.tablet(place) / "leader"

    def leader(self, place: str) -> str:
        """Who led a tablet last, maybe still does; empty if nobody ever did."""
        try:
            return self.leader_file(place).read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def places(self) -> Iterator[str]:
        """The addresses of all tablets."""
        for entry in os.scandir(self.directory / "tablets"):
            if not entry.name.startswith("."):
                yield RECORDS if entry.name == RECORDS else entry.name.replace("-", "/")

    def add_tablet(self, place: str) -> None:
        """There is one more; one that is there will do."""
        self.tablet(place).mkdir(exist_ok=True)

    def has_tablet(self, place: str) -> bool:
        """Whether it is there."""
        return self.tablet(place).exists()

    def begin_tablet(self, place: str) -> Path:
        """Where the rows are to be put of one that has some from its beginning; what was begun before is gone."""
        self.leave_tablet(place)
        self._new(place).mkdir()
        return self._new(place) / "rows"

    def finish_tablet(self, place: str) -> None:
        """It is there."""
        self._new(place).rename(self.tablet(place))

    def leave_tablet(self, place: str) -> None:
        """What was begun of it is not wanted."""
        shutil.rmtree(self._new(place), ignore_errors=True)

    def _new(self, place: str) -> Path:
        return self.directory / "tablets" / f".{place.replace('/', '-')}.new"

    def is_deleted(self, place: str) -> bool:
        """Whether a tablet is to go."""
        return (self.tablet(place) / "deleted").exists()

    def mark_deleted(self, place: str) -> None:
        """A tablet is to go: its leader removes it, or whoever would lead it next."""
        folder = self.tablet(place)
        if folder.exists():
            (folder / "deleted").touch()

    def remove_tablet(self, place: str) -> None:
        """Remove a tablet's files; its leader alone may."""
        gone = self.directory / "tablets" / f".{place.replace('/', '-')}"
        self.tablet(place).rename(gone)
        if (gone / "rows").is_symlink():
            shutil.rmtree((gone / "rows").resolve())
        shutil.rmtree(gone)


def _shared(settings: Settings) -> dict[str, Any]:
    """What a file has of settings: no processes are built wrongly on purpose."""
    return {name: value for name, value in asdict(settings).items() if name != "defects"}
