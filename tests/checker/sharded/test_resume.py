"""A search goes on from its work directory, and from no other search's."""

import json
import shutil
from pathlib import Path

import pytest
from tests.checker.sharded.both_ways import model, on_one_machine, over_shards, timeless

from stagewright.checker.limits import Limits
from stagewright.checker.sharded.files import DamagedError
from stagewright.spec.errors import InputError
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of

COMMIT = "two_phase_commit.py"


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The work directory of a search that a limit has stopped, at depth 6."""
    folder = tmp_path / "work"
    report = over_shards(*model(COMMIT, manager=4), folder, 3, limits=Limits(depth=6))
    assert not report.exhausted
    return folder


@pytest.mark.parametrize("name", [COMMIT, "broken.py:Migration"])
def test_a_search_goes_on_where_it_was_stopped(name: str, tmp_path: Path) -> None:
    definition, scope = model(name)
    searched: list[int] = []
    reports = [
        over_shards(
            definition,
            scope,
            tmp_path,
            3,
            limits=Limits(depth=depth),
            lasting=True,
            on_level=lambda level, _: searched.append(level),
        )
        for depth in (2, 5, None)
    ]
    assert timeless(reports[-1]) == timeless(on_one_machine(definition, scope))
    assert [level for level in range(6) if searched.count(level) > 1] == [2, 5]  # were looked at


def test_a_finished_search_is_only_reported_again(tmp_path: Path) -> None:
    definition, scope = model("broken.py:Workers")
    first = over_shards(definition, scope, tmp_path, 2)
    levels: list[int] = []
    second = over_shards(
        definition, scope, tmp_path, 2, on_level=lambda level, _: levels.append(level)
    )
    assert timeless(second) == timeless(first)
    assert levels == []


def test_a_level_that_was_broken_off_is_searched_again(begun: Path) -> None:
    definition, scope = model(COMMIT, manager=4)
    (begun / "level-0006" / "new-1").unlink()
    (begun / "level-0006" / ".new-1-torn").write_bytes(b"torn")
    report = over_shards(definition, scope, begun, 3)
    assert timeless(report) == timeless(on_one_machine(definition, scope))
    assert not list(begun.rglob(".*"))
    assert {path.name for path in begun.rglob("sent-*")} == {"sent-0", "sent-1", "sent-2"}
    assert len(list(begun.rglob("sent-*"))) == 3  # of the last level only


@pytest.mark.parametrize(
    ("sizes", "shards", "properties", "expected"),
    [
        ({"manager": 3}, 3, None, "another scope: Manager=4, not Manager=3"),
        ({"manager": 4}, 2, None, "another shards: 3, not 2"),
        ({"manager": 4}, 3, ["consistent"], "another list of properties: consistent, no deadlock"),
    ],
)
def test_other_settings_are_refused(
    begun: Path, sizes: dict[str, int], shards: int, properties: list[str] | None, expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as raised:
        over_shards(*model(COMMIT, **sizes), begun, shards, properties=properties)
    assert "name another work directory" in str(raised.value)


def test_a_search_of_orbits_does_not_go_on_with_states(begun: Path) -> None:
    with pytest.raises(InputError, match="another search: of all states, not of orbits"):
        over_shards(*model(COMMIT, manager=4), begun, 3, symmetry=True)


def test_another_machine_and_another_profile_are_refused(begun: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another machine: TwoPhaseCommit, not Migration"):
        over_shards(*model("broken.py:Migration"), begun, 3)
    name = str(Path(__file__).resolve().parents[2] / "models" / "ewd840.py")
    three, six = (load(name, profile) for profile in ("three", "six"))
    over_shards(three, scope_of(three), tmp_path / "ring", 2)
    with pytest.raises(InputError, match="another profile: three, not six"):
        over_shards(six, scope_of(six), tmp_path / "ring", 2)


def test_a_definition_that_has_changed_is_refused(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[2] / "models" / COMMIT
    machine = tmp_path / "mine.py"
    shutil.copy(source, machine)
    before = load(str(machine))
    over_shards(before, scope_of(before), tmp_path / "work", 2)
    machine.write_text(
        machine.read_text().replace("require(self.commit_sent", "require(self.deciding")
    )
    after = load(str(machine))
    with pytest.raises(InputError, match="another version of TwoPhaseCommit"):
        over_shards(after, scope_of(after), tmp_path / "work", 2)


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="holds something else than a search"):
        over_shards(*model(COMMIT), tmp_path, 2)
    with pytest.raises(InputError, match="cannot be the work directory"):
        over_shards(*model(COMMIT), tmp_path / "thesis.tex", 2)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("name", ["search.json", "level-0003/done.json", "level-0003/new-0"])
@pytest.mark.parametrize("content", [b"", b"{]", b"[1]"])
def test_a_damaged_file_is_named(begun: Path, name: str, content: bytes) -> None:
    assert (begun / name).stat().st_size > len(content)
    (begun / name).write_bytes(content)
    with pytest.raises(DamagedError, match=name):
        over_shards(*model(COMMIT, manager=4), begun, 3)


@pytest.mark.parametrize("cut", [1, 8, 16, 10_000])
def test_sent_states_that_are_cut_off_are_named(begun: Path, cut: int) -> None:
    sent = begun / "level-0005" / "sent-1"
    for part in range(3):
        (begun / "level-0006" / f"new-{part}").unlink()
    sent.write_bytes(sent.read_bytes()[: max(0, sent.stat().st_size - cut)])
    with pytest.raises(DamagedError, match="sent-1"):
        over_shards(*model(COMMIT, manager=4), begun, 3)


def test_settings_that_lack_something_are_damaged(begun: Path) -> None:
    document = json.loads((begun / "search.json").read_text())
    (begun / "search.json").write_text(json.dumps({**document, "settings": None}))
    with pytest.raises(DamagedError):
        over_shards(*model(COMMIT, manager=4), begun, 3)
