"""Quick code is followed by good code once this pays; nobody sees when."""

from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.explicit.native.code import tiers
from stagewright.checker.explicit.native.code.llvm_text import MODULE_END, Function
from stagewright.checker.explicit.native.code.tiers import Tiered
from stagewright.machines import SHIPPED
from stagewright.spec.definition import PropertyKind
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Report

OF_RUNS = (PropertyKind.LEADS_TO, PropertyKind.EVENTUALLY, PropertyKind.REACHABLE)


@pytest.fixture(autouse=True)
def _nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(tiers, "_AT_ONCE", 0)


def a_module() -> str:
    f = Function("answer", [], local=False)
    f.return_(42)
    return f.source() + MODULE_END


def test_good_code_follows_once_and_answers_the_same() -> None:
    code = Tiered(a_module())
    assert code.function("answer", 0)() == 42
    assert not code.ran(0)
    assert code.ran(1)
    assert code.function("answer", 0)() == 42
    assert not code.ran(1)


def test_good_code_that_is_kept_is_taken_at_once() -> None:
    Tiered(a_module()).ran(1)
    assert not Tiered(a_module()).ran(1)


def checked() -> Report:
    definition = load("tablet-migration", "", SHIPPED)
    return replace(check(definition, scope_of(definition)), seconds=0, verdicts=())


def test_a_search_finds_the_same_whenever_good_code_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiers, "_PAYS_AFTER", 1e9)
    quick = checked()
    monkeypatch.setattr(tiers, "_PAYS_AFTER", 0)
    changed: list[bool] = []
    ran = Tiered.ran

    def reported(self: Tiered, seconds: float) -> bool:
        changed.append(ran(self, seconds))
        return changed[-1]

    monkeypatch.setattr(Tiered, "ran", reported)
    assert checked() == quick
    of_runs = [p for p in load("tablet-migration", "", SHIPPED).properties if p.kind in OF_RUNS]
    assert sum(changed) == 2 + len(
        of_runs
    )  # of the search, the graph, and what each asks of states
    assert len(changed) > sum(changed)
