"""Which design documents there are: one small file, replaced as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine.design.design import DesignDocument, View


@dataclass(frozen=True)
class Entry:
    """What is stored of a design document: with Python functions only which functions it had."""

    signature: bytes
    definition: Mapping[str, Any]
    storable: bool

    def document(self, name: str) -> DesignDocument:
        """The design document itself, if it is storable."""
        views = {view: View.of_definition(d) for view, d in self.definition.items()}
        return DesignDocument(name, views)

    @classmethod
    def of(cls, design: DesignDocument) -> Entry:
        return cls(design.signature, design.definition, design.storable)


class Catalog:
    """The file; after `save` returns, a crash does not lose it."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError for a file that is no catalog."""
        self._path = path
        self.entries: dict[str, Entry] = {}
        if not path.exists():
            return
        try:
            for name, stored in json.loads(path.read_text("utf-8"))["designs"].items():
                signature = bytes.fromhex(stored["signature"])
                self.entries[name] = Entry(signature, stored["views"], stored["storable"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no catalog of design documents: {error}") from None

    def save(self) -> None:
        designs = {
            name: {
                "signature": entry.signature.hex(),
                "storable": entry.storable,
                "views": entry.definition,
            }
            for name, entry in sorted(self.entries.items())
        }
        new = self._path.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"designs": designs}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        sync_folder(self._path.parent)
