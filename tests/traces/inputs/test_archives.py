"""Archives are read as the folders of what is in them, whatever is wrong with them."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.thorough import by_turns

from stagewright.commands import run_command_line
from stagewright.spec.errors import InputError
from stagewright.traces.inputs.archives import unpacked

SHIPPED_LOG = Path(__file__).parents[3] / "traces/samples/scylla-coordinator-debug.log"


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return path


def tarred(path: Path, mode: str, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(SHIPPED_LOG, "n1/scylla.log")
        for member in members:
            archive.addfile(member)
    return path


@pytest.mark.parametrize("kind", by_turns(["zip", "tar", "tar.gz", "tar.xz", "tar.bz2"]))
def test_validate_reads_what_is_in_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / f"support.{kind}"
    if kind == "zip":
        zipped(path, n1__scylla=b"no trace", **{"n1__scylla.log": SHIPPED_LOG.read_bytes()})
    else:
        tarred(path, f"w:{kind.removeprefix('tar').removeprefix('.')}")
    plain = run_command_line(["validate", str(SHIPPED_LOG), "--json"])
    expected = capsys.readouterr().out
    assert run_command_line(["validate", str(path), "--json"]) == plain
    captured = capsys.readouterr()
    assert f"unpacked {path}: " in captured.err
    assert captured.out.count('"entity"') == expected.count('"entity"')
    assert f"support.{kind}/n1/scylla.log" in captured.out


def test_paths_that_are_no_archives_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    paths = [SHIPPED_LOG, tmp_path, tmp_path / "not there", tmp_path / "empty.log"]
    with unpacked(paths) as there:
        assert [*there.paths] == paths
        assert not there.notes


def test_links_are_passed_over_and_nothing_is_left_behind(tmp_path: Path) -> None:
    link = tarfile.TarInfo("n1/current")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with unpacked([tarred(tmp_path / "logs.tar.gz", "w:gz", link)]) as there:
        assert [path.name for path in there.paths[0].rglob("*")] == ["n1", "scylla.log"]
        assert any("n1/current is not a file" in note for note in there.notes)
    assert not there.paths[0].exists()


def test_members_outside_of_an_archive_are_refused(tmp_path: Path) -> None:
    outside = tarfile.TarInfo("../outside.log")
    outside.size = 0
    bad = [
        tarred(tmp_path / "a.tar", "w", outside),
        zipped(tmp_path / "a.zip", **{"..__outside.log": b"x"}),
    ]
    for path in bad:
        with pytest.raises(InputError, match=r"outside"), unpacked([path]):
            pass
    assert not (tmp_path.parent / "outside.log").exists()


def test_damaged_and_empty_archives_are_refused_by_name(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "whole.tar", "w").read_bytes()
    packed = gzip.compress(whole)
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.tar.gz").write_bytes(packed[: len(packed) // 2])
    zip_bytes = zipped(tmp_path / "whole.zip", **{"a.log": b"x" * 5000}).read_bytes()
    (tmp_path / "cut.zip").write_bytes(zip_bytes[: len(zip_bytes) // 2])
    with zipfile.ZipFile(tmp_path / "nothing.zip", "w") as archive:
        archive.mkdir("folder")
    for name, said in (
        ("cut.tar", "cut.tar cannot be unpacked"),
        ("cut.tar.gz", "cut.tar.gz cannot be unpacked"),
        ("cut.zip", "cut.zip cannot be unpacked"),
        ("nothing.zip", "nothing.zip has no files"),
    ):
        with pytest.raises(InputError, match=said), unpacked([tmp_path / name]):
            pass


@pytest.mark.parametrize("flags", [["--state", "kept"], ["--master", "spark://other:7077"]])
def test_archives_are_refused_where_files_have_to_stay(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tarred(tmp_path / "logs.tar", "w")
    assert run_command_line(["validate", str(path), *flags]) == 2
    assert "unpack it and name its folder" in capsys.readouterr().err


def test_text_in_utf_16_is_named_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scylla.log"
    path.write_text(SHIPPED_LOG.read_text("utf-8"), "utf-16")
    assert run_command_line(["validate", str(path)]) == 2
    assert "is text in UTF-16" in capsys.readouterr().err
