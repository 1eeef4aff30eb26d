"""CDC generations in the order in which they are committed: each is an entity, and the next one concerns it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration, Life
from stagewright.traces.databases.scylladb.event_book import Book, Effect, Source
from stagewright.traces.databases.scylladb.lines import generation_order
from stagewright.traces.databases.scylladb.lines.cdc import LIFE, MACHINE, STARTS, time_order
from stagewright.traces.databases.scylladb.lines.generation_order import Found, GenerationOrder


class Generations:
    """What commits and publications say of each generation, and of the one before it."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._committed: list[str] = []
        self._life: dict[str, object] = {}  # as it was logged last
        self._cleared: set[str] = set()
        self._orders: dict[str, GenerationOrder] = {}  # by the node that logs it
        self.suffix = ""  # names the node whose coordinators are followed apart

    def begin_anew(self) -> None:
        """Another coordinator: it may have missed generations of a third."""
        self._committed = []
        self._life = {}

    def happen(self, effect: Effect) -> None:
        """A commit that names a generation, or clears those before one, has happened."""
        if "cleared before" in effect.observed:
            self._clear(str(effect.observed["cleared before"]), effect.source)
            return
        effect = self._in_order(effect)
        self._book.add(effect)
        self._life[effect.key] = effect.observed[LIFE]
        life, source = effect.observed[LIFE], effect.source
        if life == Life.committed.name:
            if self._committed:
                self._add(self._committed[-1], {CdcGeneration.superseded.name: True}, source)
            self._committed.append(effect.key)
        elif life == Life.published.name and effect.key in self._committed:
            place = self._committed.index(effect.key)
            if place:
                self._add(self._committed[place - 1], {CdcGeneration.overtaken.name: True}, source)

    def _in_order(self, effect: Effect) -> Effect:
        """Whether it is to operate after those that were committed before; the effect without its timestamp."""
        observed = dict(effect.observed)
        time = observed.pop(STARTS, None)
        order = self._orders.setdefault(self.suffix, GenerationOrder())
        found = order.commit(effect.key, str(time)) if time is not None else Found()
        for action in found.actions:
            of = generation_order
            entity = of.ENTITY + self.suffix
            self._book.add(Effect(of.MACHINE, entity, {}, effect.source, action))
        self._book.counts[generation_order.UNREAD] += found.unread
        return replace(effect, observed=observed)

    def use(self, key: str, source: Source) -> None:
        """A node has begun to use a generation."""
        self._add(key, {CdcGeneration.used.name: True}, source)

    def _clear(self, bound: str, source: Source) -> None:
        for generation in self._committed:
            if generation not in self._cleared and time_order(generation) < time_order(bound):
                self._cleared.add(generation)
                self._life[generation] = Life.cleared.name
                self._add(generation, {}, source)

    def _add(self, key: str, observed: Mapping[str, object], source: Source) -> None:
        life = {LIFE: self._life[key]} if key in self._life else {}
        self._book.add(Effect(MACHINE, key, {**life, **observed}, source))
