"""Group0: the one log of what is committed, kept in a store, that every node learns sooner or later.

It stands for a Raft group: a commit is durable when it returns, and a deposed coordinator cannot commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from stagewright.impl.cluster.messages import Entries, Fetch, Send
from stagewright.impl.cluster.view import TabletView, View
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.store import ControlStore, Entry, durable
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class Group0:
    """The committed log, with what it comes to."""

    def __init__(self, store: ControlStore, program: Program) -> None:
        self.store = store
        self.program = program
        self.view = View().after_all(store.entries())
        self._planned: dict[str, tuple[str, ...]] = {}
        store.listeners.append(self._learn)

    def _learn(self, entry: Entry) -> None:
        self.view = self.view.after(entry)

    def place(self, tablet: str, replicas: tuple[str, ...]) -> None:
        """Create a tablet at rest."""
        self._planned[tablet] = replicas
        self.instance(tablet)

    def instance(self, tablet: str) -> Instance:
        """The transition machine of a tablet, from what is committed; its steps are commits."""
        return durable(
            self.store,
            self.program,
            tablet,
            attach=lambda step, after: self._attached(tablet, step, after),
        )

    def plan(self, tablet: str, replicas: tuple[str, ...]) -> None:
        """The replicas that the tablet's next transition leads to."""
        self._planned[tablet] = replicas

    def advance_fence(self, version: int, term: int) -> None:
        """Refuse, from now on, requests that began under an older version.

        Raises:
            StoreError: (this and `ignore`) the coordinator of that term was deposed.
        """
        self.store.check_term(term)
        if version > self.view.fence:
            self.store.note({"fence": version})

    def ignore(self, node: str, term: int) -> None:
        """Note that a node is down for good."""
        self.store.check_term(term)
        self.store.note({"ignored": [node]})

    def answer(self, fetch: Fetch) -> Send:
        """Everything that was committed after a position."""
        entries = tuple(self.store.entries(after=fetch.after))
        return Send(fetch.sender, Entries(entries, fetch.number))

    def _attached(self, tablet: str, step: Step | None, after: State) -> Mapping[str, object]:
        """Replicas, session and version that are committed with a step."""
        stage, kind = cast("Stage", after["stage"]), cast("Kind | None", after["kind"])
        version = self.view.version + 1
        if step is None:
            replicas = self._planned.pop(tablet)
            return TabletView(
                tablet, stage, kind, replicas, replicas, None, version, version
            ).attached()
        before = self.view.tablets[tablet]
        entered = before.entered if stage is before.stage else version
        now = replace(before, stage=stage, kind=kind, version=version, entered=entered)
        if before.stage is Stage.none and stage is not Stage.none:
            now = replace(now, next=self._planned.pop(tablet, before.replicas))
        if stage is Stage.none and before.stage is not Stage.none:
            # Whom the last stage wrote to is who the replicas are.
            replicas = before.chosen(before.stage.writes)
            now = replace(now, replicas=replicas, next=replicas)
        if not after["session"]:
            now = replace(now, session=None)
        elif before.session is None:
            now = replace(now, session=version)
        return now.attached()
