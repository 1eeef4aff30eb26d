"""The folder of a cluster: its settings, its secret, and where each node listens."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine.design.catalog import Catalog, Entry
from stagewright.impl.view_engine.design.design import DesignDocument


@dataclass(frozen=True)
class ClusterFolder:
    """What all processes of a cluster read; only the manager writes the settings."""

    path: Path

    @classmethod
    def create(cls, path: Path, design: DesignDocument, partitions: int) -> ClusterFolder:
        """Raises ValueError for a design document of Python functions, which processes cannot share."""
        if not design.storable:
            raise ValueError(f"{design.name} has Python functions: use declared or JavaScript maps")
        path.mkdir(parents=True)
        catalog = Catalog(path / "designs.json")
        catalog.entries[design.name] = Entry.of(design)
        catalog.save()
        write_whole(path / "settings.json", {"design": design.name, "partitions": partitions})
        secret = os.open(path / "secret", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(secret, secrets.token_bytes(32))
        finally:
            os.close(secret)
        return cls(path)

    @property
    def secret(self) -> bytes:
        """What members of the cluster know."""
        return (self.path / "secret").read_bytes()

    @property
    def partitions(self) -> int:
        """How many there are."""
        return int(self._settings["partitions"])

    @property
    def design(self) -> DesignDocument:
        """The design document that all nodes index."""
        name = str(self._settings["design"])
        return Catalog(self.path / "designs.json").entries[name].document(name)

    def node(self, name: str) -> Path:
        """The folder of a node."""
        return self.path / name

    def address(self, name: str) -> str:
        """Where a node listens. Raises OSError if it does not run."""
        return (self.node(name) / "address").read_text("utf-8")

    @property
    def _settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "settings.json").read_text("utf-8"))
        return found


def write_whole(path: Path, content: object) -> None:
    """Replace a small file: after a crash it is the old one or the new one."""
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)
