"""Archives that a user names, as the folders of what is in them: support bundles come as zip and tar files."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted
from stagewright.traces.readers.text_lines import DAMAGED, as_stream, beginning


@dataclass(frozen=True)
class Unpacked:
    """What to read in place of the paths that were named, and what there is to say of it."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...]


def archive_kind(path: Path) -> str:
    """Which archive of several files this is: `zip`, `tar`, or nothing. A tar file may be compressed."""
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            return "zip"
    return "tar" if beginning(path, 512)[257:262] == b"ustar" else ""


@contextmanager
def unpacked(paths: Sequence[Path], *, why_not: str = "") -> Iterator[Unpacked]:
    """Archives among the paths are unpacked for as long as the context lasts.

    Members are found under a folder that has the archive's name. Links and special files are left out, and named;
    members that would lie outside are refused. `why_not`: the files have to stay, or to be seen from elsewhere.

    Raises:
        InputError: an archive is damaged or has nothing, or files have to stay.
    """
    archives = [path for path in paths if path.is_file() and path.stat().st_size and _kind(path)]
    if not archives:
        yield Unpacked(tuple(paths), ())
        return
    if why_not:
        raise InputError(
            f"{archives[0]} is an archive, and {why_not}", help="unpack it and name its folder"
        )
    with tempfile.TemporaryDirectory(prefix="stagewright-") as scratch:
        found: dict[Path, Path] = {}
        notes: list[str] = []
        for number, path in enumerate(archives):
            folder = Path(scratch, str(number), path.name)
            folder.mkdir(parents=True)
            count = _unpack(path, folder, notes)
            notes.append(
                f"unpacked {path}: {counted(count, 'file')}; their paths begin with {folder}"
            )
            found[path] = folder
        yield Unpacked(tuple(found.get(path, path) for path in paths), tuple(notes))


def _kind(path: Path) -> str:
    try:
        return archive_kind(path)
    except (OSError, InputError):
        return ""  # reported where the file is read


def _unpack(path: Path, folder: Path, notes: list[str]) -> int:
    try:
        count = _unzip(path, folder) if _kind(path) == "zip" else _untar(path, folder, notes)
    except (tarfile.TarError, zipfile.BadZipFile, RuntimeError, *DAMAGED) as error:
        raise InputError(
            f"{path} cannot be unpacked: {error}", help="is it all there, and without a password?"
        ) from error
    if not count:
        raise InputError(f"{path} has no files", help="leave it out, or take another copy of it")
    return count


def _unzip(path: Path, folder: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members:
            if ".." in Path(member.filename).parts:
                raise InputError(
                    f"{path} has a member outside of it: {member.filename}",
                    help="unpack it by hand, and name its folder",
                )
            archive.extract(member, folder)
    return len(members)


def _untar(path: Path, folder: Path, notes: list[str]) -> int:
    count = 0
    with as_stream(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isdir():
                continue
            if not member.isfile():
                notes.append(f"passed over {path}: {member.name} is not a file")
                continue
            archive.extract(member, folder, filter="data")
            count += 1
    return count
