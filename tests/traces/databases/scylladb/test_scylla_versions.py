"""The version that a ScyllaDB log names chooses the profile of each machine."""

from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import NAMES, interpret, line, violations
from tests.traces.databases.scylladb.test_scylla_end_to_end import evaluated

from stagewright.machines import SHIPPED
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names
from stagewright.traces.databases.scylladb.log.line import parse_log_line
from stagewright.traces.databases.scylladb.versions import (
    ANY,
    OF_SEED,
    PROFILES,
    RELEASES,
    profile_for,
)


@pytest.mark.parametrize("machine", PROFILES)
def test_the_profiles_are_those_of_the_definitions(machine: str) -> None:
    names = profile_names(find(NAMES[machine], SHIPPED))
    releases = [name for name in names if name not in ("seed", ANY.get(machine))]
    assert list(PROFILES[machine]) == releases
    assert ("seed" in names) == (machine in OF_SEED)


@pytest.mark.parametrize(
    ("machine", "wanted", "profile"),
    [
        ("TabletMigration", "2025.1.2-0.20250401.abc", "scylla-6.0"),
        ("TabletMigration", "2025.4.0", "scylla-2025.4"),
        ("TabletMigration", "2026.1.0~rc1", "scylla-2025.4"),
        ("TabletMigration", "scylla-2026.2", "scylla-2026.2"),
        ("TabletMigration", "2099.1.0", PROFILES["TabletMigration"][-1]),
        ("TabletMigration", "", ""),
        ("TopologyTransition", "6.2.1-0.x", "scylla-6.0"),
        ("TopologyTransition", "5.4.0", "scylla-6.0"),
        ("TopologyTransition", "2026.1.3", "scylla-2026.1"),
        ("TopologyTransition", "2026.3.0-dev-0.2026", "scylla-master"),
        ("TopologyTransition", "", "scylla-any"),
        ("TopologyTransition", "seed", "seed"),
        ("TabletMigration", "scylla-master", "scylla-2026.2"),
        ("ViewTask", "seed", ""),
        ("ViewTask", "scylla-2025.4", ""),
    ],
)
def test_a_version_has_the_newest_profile_that_is_not_newer(
    machine: str, wanted: str, profile: str
) -> None:
    assert profile_for(machine, wanted) == profile


def starts(version: str, host: str, second: float = 0) -> str:
    logged = f"Scylla version {version} with build-id 5a5f starting ..."
    return line(logged, second, host, "init")


DRAINS = [
    line("start topology coordinator fiber", 1),
    line("entered `tablet draining` transition state", 2),
]


def test_a_log_without_a_version_may_be_of_any_release() -> None:
    found = interpret(DRAINS)
    assert {e.profile for _, e in found.events} == {"scylla-any"}
    assert violations(found) == []
    assert any("no line says which version" in note for note in found.of_version)


def test_the_version_in_the_log_evaluates_unless_another_is_asked_for() -> None:
    lines = [starts("2025.4.0-0.2025", "h"), *DRAINS, line("entered `lock` transition state", 3)]
    assert {e.profile for _, e in interpret(lines).events} == {"scylla-2025.4"}
    assert {e.profile for _, e in interpret(lines, profile="scylla-2026.2").events} == {
        "scylla-2026.2"
    }


def test_a_cluster_of_two_versions_does_what_the_older_one_does() -> None:
    found = interpret([starts("2026.2.0", "h"), *DRAINS], [starts("2025.4.1", "other", 0.5)])
    assert {e.profile for _, e in found.events} == {"scylla-2025.4"}
    (note,) = found.of_version
    assert "the logs are of versions 2025.4.1, 2026.2.0: checked as the oldest of them" in note


@pytest.mark.parametrize(
    "prefix",
    ["", "2025-11-02T10:00:00.5Z ", "Nov 02 10:00:00 h scylla[7]: ", "scylla-node1-1  | "],
)
def test_the_banner_that_a_server_prints_before_it_logs_gives_the_version(prefix: str) -> None:
    banner = f"{prefix}Scylla version 2025.4.0-0.2025.abc with build-id 5a5f starting ..."
    found = interpret([banner, *DRAINS])
    assert {e.profile for _, e in found.events} == {"scylla-2025.4"}


def test_a_sentence_about_versions_is_no_banner() -> None:
    sentence = "my Scylla version 2025.4 with build-id is starting"
    assert isinstance(parse_log_line(sentence, 1, "f"), str)


def test_a_log_without_a_version_may_be_of_each_release_that_its_times_allow() -> None:
    def of(month: str) -> tuple[str, ...]:
        return interpret([text.replace("2025-03", month, 1) for text in DRAINS]).releases

    assert of("2024-10") == ("scylla-6.0",)
    assert of("2027-01") == RELEASES
    assert of("2025-11")[-1] == "scylla-2026.2", "as builds are in use half a year before it is out"
    assert interpret([starts("2025.4.0", "h"), *DRAINS]).releases == ()


def test_a_rollback_of_an_old_release_is_no_violation_where_no_line_says_the_release(
    tmp_path: Path,
) -> None:
    def log(year: int) -> Path:
        table = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90:0"
        text = "DEBUG {}-05-01 10:00:0{},000 [shard 0: gms] raft_topology - {}"
        stages = ("allow_write_both_read_old", "revert_migration")
        logged = [f"Will set tablet {table} stage to {stage}" for stage in stages]
        path = tmp_path / f"{year}.log"
        path.write_text("".join(text.format(year, n, line) + "\n" for n, line in enumerate(logged)))
        return path

    report = evaluated(log(2024))
    assert report.entities == ()
    assert [c.candidate for c in report.candidates] == ["scylla-6.0"]
    newest = evaluated(log(2026), profile="scylla-2026.2")
    assert [e.verdict.value for e in newest.entities] == ["violation"]
