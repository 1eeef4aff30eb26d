"""The files are the original engine's: its C tools take ours, we take theirs, byte by byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.impl.view_engine import couchstore
from tests.impl.view_engine.couchstore import SAMPLES, last_snapshot, needs_couchstore
from tests.impl.view_engine.rows import SUMMED, Row, document_rows, empty_header

from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.file.masks import mask_of
from stagewright.impl.view_engine.tree.apply import apply
from stagewright.impl.view_engine.tree.build import build
from stagewright.impl.view_engine.tree.check import check_file
from stagewright.impl.view_engine.tree.nodes import BACK_INDEX, Pointer
from stagewright.impl.view_engine.tree.packed import Operations, Packed
from stagewright.impl.view_engine.tree.read import leaves


def built_by_us(path: Path, ids: list[Row], rows: list[Row]) -> Path:
    file = IndexFile(RealDisk(path, create=True))
    back = build(file, BACK_INDEX, [Packed.of(ids, collated=False).sorted()])
    view = build(file, SUMMED, [Packed.of(rows, collated=True).sorted()])
    assert back is not None
    assert view is not None
    file.commit(replace(empty_header(), id_root=back.root, view_roots=(view.root,)))
    file.close()
    return path


def pointer_of(path: Path) -> Pointer:
    root = last_snapshot(path).header.view_roots[0]
    assert root is not None
    return Pointer(b"", *root)


def leaves_of(path: Path) -> list[list[Row]]:
    file = IndexFile(RealDisk(path, read_only=True))
    found = [[*leaf.rows()] for leaf in leaves(file, SUMMED, pointer_of(path))]
    file.close()
    return found


def rows_of(path: Path) -> list[Row]:
    return [row for leaf in leaves_of(path) for row in leaf]


def problems_of(path: Path) -> list[str]:
    disk = RealDisk(path, read_only=True)
    found = [problem.what for problem in check_file(disk, all_snapshots=True).problems]
    disk.close()
    return found


@needs_couchstore
def test_c_compactor_makes_the_same_bytes_of_our_file_and_of_its_own(tmp_path: Path) -> None:
    ids, rows = document_rows(20_000)
    ours = built_by_us(tmp_path / "ours.view.1", ids, rows)
    theirs = couchstore.build(tmp_path, empty_header(), ids, [rows], "_sum")
    assert problems_of(theirs) == []
    from_ours = couchstore.compact(tmp_path, ours, "_sum").read_bytes()
    assert from_ours == couchstore.compact(tmp_path, theirs, "_sum").read_bytes()
    assert leaves_of(ours) == leaves_of(theirs)
    assert pointer_of(ours).reduction == pointer_of(theirs).reduction


@needs_couchstore
def test_c_updater_takes_our_file_and_ours_takes_its(tmp_path: Path) -> None:
    ids, rows = document_rows(8_000)
    new_ids, new_rows = document_rows(900, seed=2, first=7_500)
    changed = dict(new_ids)
    gone = [key for key, _ in rows[7_500:]]
    removed: list[tuple[bytes, bytes | None]] = [(key, None) for key in gone]
    operations = sorted([*removed, *new_rows], key=lambda row: row[0][2:])
    ours = built_by_us(tmp_path / "ours.view.1", ids, rows)
    theirs = couchstore.build(tmp_path, empty_header(), ids, [rows], "_sum")
    couchstore.update(tmp_path, ours, sorted(changed.items()), [operations], "_sum")
    assert problems_of(ours) == []
    file = IndexFile(RealDisk(theirs))
    snapshot = file.last_snapshot()
    back_root = snapshot.header.id_root
    assert back_root is not None
    operations_of_view = Operations.of(new_rows, gone, collated=True)
    view = apply(file, SUMMED, pointer_of(theirs), operations_of_view)
    back = apply(
        file, BACK_INDEX, Pointer(b"", *back_root), Operations.of(changed.items(), collated=False)
    )
    assert view is not None
    assert back is not None
    file.commit(replace(snapshot.header, id_root=back.root, view_roots=(view.root,)))
    file.close()
    assert problems_of(theirs) == []
    assert rows_of(ours) == rows_of(theirs)
    assert pointer_of(ours).reduction == pointer_of(theirs).reduction


@needs_couchstore
def test_samples_are_what_the_c_tools_write(tmp_path: Path) -> None:
    for path, partitions in ((SAMPLES / "built.view.1", 8),):
        ids, rows = document_rows(250, partitions=partitions)
        made = couchstore.build(tmp_path, empty_header(partitions), ids, [rows], "_sum")
        if not path.exists():
            path.write_bytes(made.read_bytes())
        assert last_snapshot(made).header == last_snapshot(path).header


def test_file_that_the_c_tools_built_is_read(tmp_path: Path) -> None:
    _, rows = document_rows(250, partitions=8)
    sample = SAMPLES / "built.view.1"
    assert problems_of(sample) == []
    assert rows_of(sample) == sorted(rows, key=lambda row: row[0][2:])
    assert pointer_of(sample).mask == mask_of(range(8))
    total = sum(int(value[5:]) for _, value in rows)
    assert pointer_of(sample).reduction[135:] == b"%d" % total


def test_our_build_makes_the_same_trees_as_the_c_builder(tmp_path: Path) -> None:
    ids, rows = document_rows(250, partitions=8)
    ours = built_by_us(tmp_path / "ours.view.1", ids, rows)
    theirs = SAMPLES / "built.view.1"
    assert leaves_of(ours) == leaves_of(theirs)  # where they lie depends on the version of snappy
    assert pointer_of(ours).reduction == pointer_of(theirs).reduction
