"""What a replica takes out of views when another one is lost: the rows of versions that it has seen replaced."""

from __future__ import annotations

from stagewright.impl.node.keys import stored_key
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views.maintenance.definition import ViewDefinition, parts_of
from stagewright.impl.views.maintenance.updates import taken_back

ALL = (-(1 << 63), (1 << 63) - 1)
VIEW = ViewDefinition("ks.v", "ks.t", modulus=10)


def taken(*versions: tuple[bytes, int, bytes | None]) -> list[tuple[bytes, int]]:
    """The keys of the rows of a view that are deleted, and when."""
    rows = MemoryRows(ModelledDisk())
    rows.write(Put("ks.t", Version(stored_key(k), t, v)) for k, t, v in versions)
    snapshot = rows.snapshot()
    found = [*taken_back(snapshot, (VIEW,), "ks.t", ALL)]
    snapshot.close()
    assert all(u.value is None and u.view == "ks.v" for u in found)
    return [(parts_of(u.key)[0], u.time) for u in found]


def test_each_version_that_is_replaced_is_taken_back_as_of_the_newest() -> None:
    assert taken((b"a", 1, b"1"), (b"a", 2, b"2"), (b"a", 3, b"3")) == [(b"2", 3), (b"1", 3)]
    assert taken((b"a", 1, b"1"), (b"a", 2, None)) == [(b"1", 2)]


def test_nothing_is_taken_back_of_what_is_not_replaced_or_has_the_same_place() -> None:
    assert taken((b"a", 1, b"1"), (b"b", 2, b"2")) == []
    assert taken((b"a", 1, b"1"), (b"a", 2, b"11")) == []
