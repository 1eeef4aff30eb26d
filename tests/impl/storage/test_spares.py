"""Stores that a server opens before a tablet wants one: new tablets get them, others keep theirs, none is left over."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from stagewright.impl.indexes.processes.layout import IndexLayout, TableFile
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.storage.spares import Spares

ROW = Put("rows", Version(b"k", 1, b"v"))


def spares_of(layout: IndexLayout, name: str, count: int) -> Spares:
    return Spares(layout.stores, name, count, layout.rows_of_all())


@pytest.fixture
def layout(tmp_path: Path) -> IndexLayout:
    made = IndexLayout(tmp_path / "c")
    made.create(TableFile(("n1", "n2"), ("m1",)))
    for place in ("index1/0", "index1/1"):
        made.add_tablet(place)
    return made


def test_a_new_tablet_gets_a_store_that_is_open_and_has_its_rows_when_it_is_opened_again(
    layout: IndexLayout,
) -> None:
    ours = spares_of(layout, "n1", 1)
    ours.open_another()
    (there,) = layout.stores.iterdir()
    with closing(ours.store_at(layout.rows("index1/0"))) as rows:
        rows.write([ROW])
        rows.sync()
    ours.close()
    assert layout.rows("index1/0").resolve() == there.resolve()
    with closing(
        spares_of(layout, "n2", 1).store_at(layout.rows("index1/0"))
    ) as rows:  # led by another server
        assert rows.get("rows", b"k") == ROW.version


def test_a_tablet_that_has_rows_keeps_them(layout: IndexLayout) -> None:
    with closing(RocksRows(layout.rows("index1/1"))) as rows:
        rows.write([ROW])
        rows.sync()
    ours = spares_of(layout, "n1", 1)
    ours.open_another()
    with closing(ours.store_at(layout.rows("index1/1"))) as rows:
        assert rows.get("rows", b"k") == ROW.version
    ours.close()


def test_without_a_spare_store_a_new_tablet_gets_one_of_its_own(layout: IndexLayout) -> None:
    spares_of(layout, "n1", 1).store_at(layout.rows("index1/0")).close()
    assert layout.rows("index1/0").is_dir()
    assert not layout.rows("index1/0").is_symlink()


def test_no_more_are_opened_than_wanted_and_none_when_a_tablet_has_just_come(
    layout: IndexLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ours = spares_of(layout, "n1", 1)
    ours.open_another()
    ours.open_another()
    assert len([*layout.stores.iterdir()]) == 1
    with closing(ours.store_at(layout.rows("index1/0"))):
        ours.open_another()
        assert len([*layout.stores.iterdir()]) == 1
        now += 1.1
        ours.open_another()
        assert len([*layout.stores.iterdir()]) == 2
    ours.close()


def test_what_no_tablet_has_goes_with_its_server_or_when_that_starts_again(
    layout: IndexLayout,
) -> None:
    killed = spares_of(layout, "n1", 2)
    killed.open_another()
    killed.open_another()
    taken = killed.store_at(layout.rows("index1/0"))
    other = spares_of(layout, "n2", 1)
    other.open_another()
    assert len([*layout.stores.iterdir()]) == 3

    again = spares_of(layout, "n1", 2)
    kept = {layout.rows("index1/0").resolve()}
    left = {path.resolve() for path in layout.stores.iterdir()}
    assert kept < left
    assert {path.name[:2] for path in left - kept} == {"n2"}
    taken.close()
    again.close()
    other.close()
    assert {path.resolve() for path in layout.stores.iterdir()} == kept


def test_a_tablet_that_is_removed_takes_its_store_with_it(layout: IndexLayout) -> None:
    ours = spares_of(layout, "n1", 1)
    ours.open_another()
    ours.store_at(layout.rows("index1/0")).close()
    layout.remove_tablet("index1/0")
    assert not [*layout.stores.iterdir()]
    assert [*layout.places()] == ["index1/1"]
