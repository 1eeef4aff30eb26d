"""The machines of an index of Couchbase's view engine keep their promises under every profile."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.machines.couchbase.indexes.design_documents import DesignDocuments
from stagewright.machines.couchbase.indexes.index_compaction import IndexCompaction
from stagewright.machines.couchbase.indexes.index_file import IndexFile
from stagewright.machines.couchbase.indexes.index_tree import IndexTree
from stagewright.machines.couchbase.indexes.index_triggers import IndexTriggers
from stagewright.machines.couchbase.indexes.index_update import IndexUpdate
from stagewright.spec.define import define
from stagewright.spec.machine import Machine, profile_names
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Report

DEFAULTS = [
    (IndexCompaction, 111_961, 506_827),
    (IndexFile, 9_105, 17_549),
    (IndexTree, 24_008, 83_774),
    (IndexTriggers, 1_734, 4_554),
    (IndexUpdate, 365_403, 1_299_825),
    (DesignDocuments, 2_222, 12_710),
]
"""Each machine, and how many states and steps it has at its default scope under its newest profile."""


def checked(machine: type[Machine], profile: str) -> Report:
    definition = define(machine, profile)
    report = check(definition, scope_of(definition), symmetry=True)
    assert report.exhausted
    return report


@pytest.mark.parametrize(
    ("machine", "states", "steps"), DEFAULTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_newest_profile_keeps_every_promise(
    machine: type[Machine], states: int, steps: int
) -> None:
    definition = define(machine)
    report = check(definition, scope_of(definition))
    assert broken(report) == set()
    assert (report.states, report.transitions) == (states, steps)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


OLDER = [(one, profile) for one, _, _ in DEFAULTS for profile in profile_names(one)[:-1]]


@pytest.mark.parametrize(("machine", "profile"), OLDER)
def test_so_do_the_others(machine: type[Machine], profile: str) -> None:
    assert broken(checked(machine, profile)) == set()
