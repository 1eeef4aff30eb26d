"""The sys catalog on disk: what a master decides is there for the next one, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.impl.indexes.processes.stored_catalog import (
    FormerMasterError,
    StoredCatalog,
    catalog_in,
    steps_in,
)
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.simulated.run import Plan, Run
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.indexes.splits.tablet_map import TabletMap


def test_a_catalog_is_read_as_it_was_written_with_all_steps(tmp_path: Path) -> None:
    script = (
        "create table 9 rows; split 1; await splits; split 3; put 70 v=5; put 71 v=5; create unique index i on v; create index j on w; "
        "await job backfill_tablets; fail over; create deferred index d on v; drop index d; wait 30"
    )
    run, stored = Run(Plan(script=parse_script(script))), StoredCatalog(tmp_path / "catalog")
    kept = stored.catalog
    run.world.catalog = kept
    steps: list[Note] = []

    def hear(note: Note, _: str) -> None:
        steps.append(note)
        stored.note(note, run.events.now)
        kept.machines = dict(kept.machines)

    run.world.listeners.append(hear)
    assert run.report().kept
    stored.save()
    stored.close()
    found = catalog_in(tmp_path / "catalog")
    assert (found.term, found.version, found.jobs) == (kept.term, kept.version, kept.jobs)
    assert found.indexes == kept.indexes
    assert found.job == kept.job
    assert (found.tablets, found.split) == (kept.tablets, kept.split)
    assert found.tablets is not None
    assert [s.parent for s in found.tablets.splits] == [1, 3]
    assert {key: i.state for key, i in found.machines.items()} == {
        key: i.state for key, i in kept.machines.items()
    }
    assert {i.name for i in found.indexes} == {"i", "j", "d"}
    written = [note for _, _, note in steps_in(tmp_path / "catalog")]
    assert written == [n for n in steps if type(n) in {type(w) for w in written}]
    assert len(written) > 50


def test_a_split_that_is_going_on_is_there_for_the_next_master(tmp_path: Path) -> None:
    stored, tablets = StoredCatalog(tmp_path / "catalog"), TabletMap(3)
    stored.catalog.term, stored.catalog.tablets = 1, tablets
    stored.catalog.split = tablets.halves(2)
    assert stored.save()
    assert catalog_in(tmp_path / "catalog").split == tablets.halves(2)
    stored.catalog.split = None
    assert stored.save()
    stored.close()
    found = catalog_in(tmp_path / "catalog")
    assert (found.tablets, found.split) == (tablets, None)


def test_a_former_master_writes_nothing(tmp_path: Path) -> None:
    first, second = (StoredCatalog(tmp_path / "catalog") for _ in range(2))
    first.catalog.term += 1
    assert first.save()
    assert not first.save()  # nothing has changed
    third = StoredCatalog(tmp_path / "catalog")
    third.catalog.term += 1
    assert third.save()
    for former in (first, second):
        former.catalog.version += 1
        with pytest.raises(FormerMasterError):
            former.save()
    assert catalog_in(tmp_path / "catalog").version == 1
    for one in (first, second, third):
        one.close()
