"""The coordinator clears CDC generations: the end of a generation is a step of its definition, `cdc-generation`.

It does so where tables keep logs: without any, no node looks generations up.
"""

from __future__ import annotations

from functools import lru_cache

from stagewright.impl.catalog.columns import ALL, TOPOLOGY, microseconds_in
from stagewright.impl.cdc.clearing import Obsolete, obsolete
from stagewright.impl.group0 import Command
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.port import Effect, Wake
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.tablets.track import Driver
from stagewright.impl.topology.planning import Board, step_of
from stagewright.machines.scylladb.cdc.cdc_generation import CdcGeneration, Life
from stagewright.spec import define

_MILLISECOND = 1_000  # microseconds


@lru_cache(maxsize=1)
def rules() -> Program:
    """The life of a generation."""
    return Program(define(CdcGeneration, ""))


class Clearing:
    """What one coordinator does about generations that are over."""

    def __init__(self, driver: Driver) -> None:
        self._driver, self._node = driver, driver.node
        self._asleep = False

    def woken(self) -> None:
        """Time has passed."""
        self._asleep = False

    def go_on(self) -> list[Effect]:
        """Clear what can be cleared now; else look again when time has passed, if something is to be cleared one day."""
        if self._driver.is_busy or not self._node.view.logs:
            return []
        if self._found():
            return self._driver.commit(self._clear)
        if self._asleep or not self._waits():
            return []
        self._asleep = True
        wait = self._node.timing.leeway + self._node.timing.ring_delay
        return [Wake(wait, ("coordinator", "clear", self._driver.leadership.term))]

    def _waits(self) -> bool:
        """Whether there is more than what operates."""
        tables = self._node.catalog.tables
        many = len(tables[TOPOLOGY][ALL]["committed_cdc_generations"]) > 1
        return many or bool(self._node.view.kept)

    def _found(self) -> Obsolete:
        timing, now = self._node.timing, self._node.around.now()
        late = _MILLISECOND * (timing.leeway + timing.ring_delay)
        if self._node.has(Defect.generations_are_cleared_early):
            late = -2 * _MILLISECOND * timing.ring_delay  # the next one does not operate yet
        return obsolete(self._node.catalog, now, late, _MILLISECOND * timing.ring_delay)

    def _clear(self, board: Board) -> Command:
        found, catalog = self._found(), self._node.catalog
        for generation in found.generations:
            board.take_on(self._instance(generation), step_of("clear"))
        text = "deleted data of CDC generations and streams that are over"
        return board.command(text, catalog, self._node.details(), found.mutations(catalog))

    def _instance(self, generation: str) -> Instance:
        """The machine of a committed generation, as the tables have it."""
        static = self._node.catalog.tables[TOPOLOGY][ALL]
        committed = [g for _, g in sorted(static["committed_cdc_generations"], key=_start)]
        waiting = [g for _, g in static["unpublished_cdc_generations"]]
        later = committed[committed.index(generation) + 1 :]
        state = {
            "life": Life.committed if generation in waiting else Life.published,
            "superseded": bool(later),
            "overtaken": any(g not in waiting for g in later),
            "used": True,
        }
        return Instance(rules(), state, name=generation)


def _start(one: list[str]) -> int:
    return microseconds_in(one[0])
