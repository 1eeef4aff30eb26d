"""Finds files that say what another one says already: the same bytes, whether compressed or not.

Where events carry no number of their own, a copy would report everything a second time, as if it happened twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from stagewright.traces.readers.text_lines import DAMAGED, beginning, compression, content

_PROBE_BYTES = 1 << 12


def copies_among(paths: Sequence[Path]) -> dict[Path, Path]:
    """The files whose content is that of an earlier one, with that one."""
    copies: dict[Path, Path] = {}
    for alike in _begin_alike(paths):
        first: dict[bytes, Path] = {}
        for path in _same_size(alike):
            digest = _digest(path)
            if digest is not None and first.setdefault(digest, path) != path:
                copies[path] = first[digest]
    return copies


def _begin_alike(paths: Sequence[Path]) -> Iterable[list[Path]]:
    """The files that begin alike, so that they are to be compared."""
    by_begin: dict[bytes, list[Path]] = {}
    for path in paths if len(paths) > 1 else ():
        by_begin.setdefault(beginning(path, _PROBE_BYTES), []).append(path)
    return [alike for alike in by_begin.values() if len(alike) > 1]


def _same_size(paths: Sequence[Path]) -> list[Path]:
    """The files with the size of another one; the size of what is compressed is not known."""
    if any(compression(path) for path in paths):
        return list(paths)
    sizes = [path.stat().st_size for path in paths]
    alike = Counter(sizes)
    return [path for path, size in zip(paths, sizes, strict=True) if alike[size] > 1]


def _digest(path: Path) -> bytes | None:
    """What tells the content from any other; None where it is damaged, which is reported when it is read."""
    found = hashlib.blake2b()
    try:
        for chunk in content(path):
            found.update(chunk)
    except DAMAGED:
        return None
    return found.digest()
