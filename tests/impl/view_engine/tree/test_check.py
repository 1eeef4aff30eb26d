"""The walker finds every kind of damage and says where; `stagewright view-file check` reports it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.view_engine.couchstore import SAMPLES
from tests.impl.view_engine.recording_disk import MemoryDisk
from tests.impl.view_engine.rows import SUMMED, document_rows, empty_header

from stagewright.commands import run_command_line
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.index_file import IndexFile
from stagewright.impl.view_engine.tree.build import build, build_levels
from stagewright.impl.view_engine.tree.check import check_file
from stagewright.impl.view_engine.tree.nodes import (
    BACK_INDEX,
    InnerNode,
    Pointer,
    Reduction,
    read_node,
    write_inner,
)
from stagewright.impl.view_engine.tree.packed import Packed

Change = Callable[[list[Pointer]], list[Pointer]]


def file_of(change: Change = lambda pointers: pointers, **header: object) -> MemoryDisk:
    """1,200 documents; `change` alters the pointers to the view's leaves above which a root is written."""
    ids, rows = document_rows(1200)
    disk = MemoryDisk()
    file = IndexFile(disk)
    back = build(file, BACK_INDEX, [Packed.of(ids, collated=False).sorted()])
    view = build(file, SUMMED, [Packed.of(rows, collated=True).sorted()])
    assert back is not None
    assert view is not None
    node = read_node(file, SUMMED, view.position)
    assert isinstance(node, InnerNode)
    root = write_inner(file, SUMMED, change([*node.pointers]))
    made = replace(empty_header(), id_root=back.root, view_roots=(root.root,))
    file.commit(replace(made, **header))  # type: ignore[arg-type]
    return disk


def with_second(change: Callable[[Pointer, Reduction], Pointer]) -> Change:
    def changed(pointers: list[Pointer]) -> list[Pointer]:
        second = pointers[1]
        return [pointers[0], change(second, Reduction.decode(second.reduction)), *pointers[2:]]

    return changed


def reduction(**fields: object) -> Change:
    return with_second(
        lambda pointer, old: pointer._replace(reduction=replace(old, **fields).encode())  # type: ignore[arg-type]
    )


def test_file_of_the_engine_is_intact() -> None:
    assert check_file(file_of()).problems == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (reduction(count=7), "the pointer counts 7 values, there are"),
        (reduction(mask=1 << 5), "the mask is not the union of what is below"),
        (reduction(values=(b"12",)), "the value of _sum is not that of the rows below"),
        (with_second(lambda p, _: p._replace(size=p.size + 1)), "bytes, the subtree has"),
        (with_second(lambda p, _: p._replace(key=p.key + b"x")), "is not the last of its rows"),
        (with_second(lambda p, _: p._replace(position=1 << 40)), "after the node that has it"),
        (with_second(lambda p, _: p._replace(position=p.position + 1)), "at byte|chunk|checksum"),
        (lambda pointers: pointers[::-1], "overlaps with the next one"),
        (lambda pointers: pointers[1:], "do not have the same rows"),
    ],
)
def test_wrong_pointer_is_found(change: Change, said: str) -> None:
    problems = check_file(file_of(change)).problems
    assert any(re.search(said, problem.what) for problem in problems), problems
    assert all(problem.tree == "view 0" for problem in problems)


def test_header_that_does_not_fit_its_trees_is_found() -> None:
    found = [p.what for p in check_file(file_of(cleanup=1, seqs={0: 1})).problems]
    assert "partitions [0] are active and cleanup" in found
    few = empty_header(4)
    problems = check_file(file_of(active=few.active, seqs=few.seqs)).problems
    assert {p.tree for p in problems} == {"back index", "view 0"}
    assert all("which the header does not have" in p.what for p in problems)


def test_every_changed_bit_of_a_tree_is_found() -> None:
    disk = file_of()
    header = IndexFile(disk).last_snapshot()
    for at in range(0, header.position, 1499):
        damaged = MemoryDisk(bytearray(disk.data))
        damaged.data[at] ^= 0x10
        report = check_file(damaged)
        unreachable = header.header.tree_bytes < header.position  # the root before it was rewritten
        assert report.problems or report.notes or unreachable, at
    assert sum(1 for _ in IndexFile(disk).snapshots()) == 1


def test_a_thousand_problems_end_the_walk() -> None:
    disk = file_of()
    for at in range(4096, disk.size() - 4096, 4096):
        disk.data[at + 1 : at + 9] = b"\0\0\0\0\0\0\0\0"
    report = check_file(disk)
    assert 0 < len(report.problems) <= 1000


def test_command_says_what_is_wrong_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "main_0.view.1"
    path.write_bytes(file_of().data)
    assert run_command_line(["view-file", "check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "view 0: 1,200 rows, 1,200 values" in said
    assert "reduces: _sum" in said
    path.write_bytes(file_of(reduction(count=7)).data)
    assert run_command_line(["view-file", "check", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["problems"][0]["what"].startswith("the pointer counts 7 values")
    assert run_command_line(["view-file", "check", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    path.write_bytes(b"text")
    assert run_command_line(["view-file", "check", str(path)]) == 1
    assert "no valid header" in capsys.readouterr().out
    path.write_bytes(b"text" * 20_000)  # something else: not a line for each of its blocks
    assert run_command_line(["view-file", "check", str(path)]) == 1
    said = capsys.readouterr().out
    assert "no index file" in said
    assert "nor in 15 blocks after these" in said
    assert len(said.splitlines()) < 15


def test_command_takes_a_file_of_the_original(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["view-file", "check", str(SAMPLES / "built.view.1")]) == 0
    assert "reduces: _sum" in capsys.readouterr().out


def test_disk_survives_being_unlinked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    disk = RealDisk(path, create=True)
    file = IndexFile(disk)
    assert build_levels(file, SUMMED, []) is None
    header: IndexHeader = empty_header()
    snapshot = file.commit(header)
    path.unlink()
    file.hold()
    file.close()
    assert file.last_snapshot() == snapshot
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.hold()
