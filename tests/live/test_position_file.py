"""The file in which `cluster tail` keeps how far it has printed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from stagewright.impl.cdc.consumer import Position
from stagewright.live.position_file import position_file
from stagewright.spec.errors import InputError


def test_a_position_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "position"
    with position_file(path) as file:
        assert file.load() is None
        file.store(Position(3, 7))
    with position_file(path) as file:
        assert file.load() == Position(3, 7)


def test_of_two_tails_with_one_file_the_second_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "position"
    with (
        position_file(path) as first,
        pytest.raises(InputError, match="position: another `cluster tail` goes on from this file"),
        position_file(path),
    ):
        first.load()
    with position_file(path) as later:
        later.store(Position(3, 7))


@pytest.mark.parametrize("text", [b"", b"?", b"\xff", b'{"generation": 3, "read": 1.5}'])
def test_a_file_that_has_something_else_is_named(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "position"
    path.write_bytes(text)
    with (
        position_file(path) as file,
        pytest.raises(InputError, match=f"--position {path}: .* is no position"),
    ):
        file.load()
