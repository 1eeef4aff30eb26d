"""A builder has all the time there is, but for a share of it while clients are served."""

from __future__ import annotations

from stagewright.impl.indexes.bulk.numbers import Entries
from stagewright.impl.indexes.bulk.share import Share
from stagewright.impl.indexes.messages import (
    AskBuilds,
    BackfillBatch,
    Message,
    Prepare,
    ReadIndex,
    Write,
)
from stagewright.impl.indexes.schema import Schema


def test_the_share_is_that_of_serving_for_a_while_after_a_client_was_served() -> None:
    now = [50.0]
    share = Share(10, lambda: now[0])
    assert share() == 100
    messages: list[Message] = [
        Write("t", 0, 1, {"v": 1}, Schema()),
        Prepare("t", 0, ()),
        ReadIndex("r", 1, 1),
    ]
    for message in messages:
        share.hear(message)
        assert share() == 10
        now[0] += 0.1
        assert share() == 10
        now[0] += 0.5
        assert share() == 100


def test_builds_and_who_asks_about_them_are_no_clients_that_wait() -> None:
    share = Share(10, lambda: 50.0)
    share.hear(AskBuilds())
    share.hear(BackfillBatch(1, 1, 1, 1, Entries(0, False, b"", b"")))
    assert share() == 100
