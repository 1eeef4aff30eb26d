"""The steps between sets of possible states, in a table that machine code looks up and Python fills.

The sets of all machines have one numbering here. A set and a symbol lead to a set; what the table does not
know yet is asked of the machine's `Determinised`, once, and counted from then on: the counts say what the
traces have exercised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.automaton.automaton_cache import of_this_thread, renewed
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.product_automaton import (
    Candidates,
    Product,
    Running,
    Source,
    Standing,
)
from stagewright.traces.automaton.subset_automaton import (
    ANY,
    DEAD,
    ENDED,
    LIVE,
    START,
    UNDECIDED,
    UNKNOWN,
    Determinised,
)
from stagewright.traces.replay.related.classes import Seen, View

Ints = NDArray[Any]

MachineKey = tuple[str, str, str]

REFUSED = 1 << 30  # added to a set's number where the event is none of the machine's

# What machine code must know of a set.
FREE, SURE, STOPPED, FINISHED = 0, 1, 2, 4

KEPT = -1  # in place of a class: the entity stays in the one that it is in


KEPT_MAX = 1 << 22  # numbers, of some forty bytes each; a table with more is forgotten
_KEPT_A_STATE = 64  # numbers, so that a table has room for what one event may ask
TAKEN_MAX = 1 << 19  # possible states of events that are counted as exercised


class Steps:
    """The table of steps between the sets of some machines."""

    def __init__(
        self,
        automata: Mapping[MachineKey, Source],
        views: Mapping[MachineKey, View] | None = None,
    ) -> None:
        self._automata = automata
        self.views = views or {}
        self.seen: list[Seen] = []  # the classes of entities, by number
        self._seen_numbers: dict[Seen, int] = {}
        self._running: dict[MachineKey, Running] = {}
        self._taken: list[tuple[PossibleStates, str, int]] = []  # before the table was forgotten
        self._taken_states = 0
        self.uncounted = 0  # events that were exercised, but with too many possible states to count
        self._forget()

    def _forget(self) -> None:
        self._sets: list[tuple[MachineKey, int]] = []
        self._numbers: dict[tuple[MachineKey, int], int] = {}
        self.flags = np.zeros(64, np.int8)
        # The class of an entity in each set; empty where nobody asks for classes.
        self.classes = np.full(64 if self.views else 0, KEPT, np.int32)
        self._symbols: dict[str, int] = {}
        self._texts: list[str] = []
        self._bodies: dict[int, tuple[int, int]] = {}  # sets before and after, by symbol
        self.keys = np.zeros(1 << 10, np.int64)  # 0: free; else (set << 31 | symbol) + 1
        self.values = np.zeros(1 << 10, np.int64)
        self.counts = np.zeros(1 << 10, np.int64)
        self._used = 0

    @property
    def full(self) -> bool:
        """Whether the table is so large that it should be forgotten."""
        most = max((a.max_states for a in self._automata.values()), default=0)
        kept = self._used + sum(one.size for one in self._running.values())
        return kept > max(KEPT_MAX, _KEPT_A_STATE * most)

    def forget(self, *, counted: bool = True) -> None:
        """Begin anew: no number of a set or a symbol means anything any more; those of classes stay.

        `counted`: what was counted since it was kept last was right.
        """
        if counted:
            self.keep()
        self._running = {key: renewed(one) for key, one in self._running.items()}
        self._forget()

    @property
    def sets(self) -> int:
        """How many sets are numbered."""
        return len(self._sets)

    @property
    def compares(self) -> bool:
        """Whether several candidates are compared."""
        return any(isinstance(source, Candidates) for source in self._automata.values())

    def machine(self, key: MachineKey) -> Running:
        """The running automaton of a machine."""
        found = self._running.get(key)
        if found is None:
            found = self._running[key] = of_this_thread(self._automata[key])
        return found

    def symbol(self, text: str) -> int:
        """The number of a symbol."""
        number = self._symbols.setdefault(text, len(self._symbols))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, by number."""
        return tuple(self._texts)

    def number(self, key: MachineKey, local: int) -> int:
        """The number of a machine's set, given its number in the machine's `Determinised`."""
        found = self._numbers.get((key, local))
        if found is None:
            found = self._numbers[key, local] = len(self._sets)
            self._sets.append((key, local))
            if found >= len(self.flags):
                self.flags = np.concatenate([self.flags, np.zeros_like(self.flags)])
                self.classes = np.concatenate([self.classes, np.full_like(self.classes, KEPT)])
            self.flags[found] = self._flags(key, local)
            if self.views:
                self.classes[found] = self._class(key, local)
        return found

    def unknown_start(self, key: MachineKey) -> int:
        """The set in which an entity is whose earlier events were read elsewhere."""
        # What properties over several entities know of one must not depend on where a task begins.
        return self.number(key, ANY if self.views else self.machine(key).unknown_start)

    def set_of(self, number: int) -> PossibleStates:
        """A set as any process understands it."""
        key, local = self._sets[number]
        return self.machine(key).possible(key, local)

    def number_of(self, possible: PossibleStates) -> int:
        """The number of a set that another process has sent."""
        machine = self.machine(possible.machine)
        return self.number(possible.machine, machine.number_of_possible(possible))

    def body(self, entry: int, leaves: int) -> int:
        """A symbol for all events of a body that leads from one set to another; -1 if it says nothing more.

        Of candidates some may be dead already where the body begins, of which it was not known.
        """
        if not isinstance(self.machine(self._sets[entry][0]), Product):
            return -1
        symbol = self.symbol(f"from {entry} to {leaves}")  # no event's: those are JSON
        self._bodies[symbol] = self._sets[entry][1], self._sets[leaves][1]
        return symbol

    def standings(self, number: int) -> tuple[Standing, ...]:
        """What each candidate is to an entity in a set; empty where candidates are not compared."""
        key, local = self._sets[number]
        machine = self.machine(key)
        return machine.standings(local) if isinstance(machine, Product) else ()

    def fill(self, number: int, symbol: int) -> None:
        """Find out where a set and a symbol lead, and remember it."""
        key, local = self._sets[number]
        machine, text = self.machine(key), self._texts[symbol]
        if symbol in self._bodies:
            assert isinstance(machine, Product)
            value = self.number(key, machine.after_body(local, *self._bodies[symbol]))
        elif machine.refusal(local, text) is not None:
            stopped = local in (DEAD, UNDECIDED, UNKNOWN)
            value = self.number(key, local if stopped else UNKNOWN) | REFUSED
        else:
            value = self.number(key, machine.advance(local, text))
        if 2 * self._used >= len(self.keys):
            self._grow()
        _store(self.keys, self.values, self.counts, (number << 31 | symbol) + 1, value, 0)
        self._used += 1

    def taken(self) -> Iterator[tuple[PossibleStates, str, int]]:
        """Each set from which a symbol was read, with the symbol and how often."""
        self.keep()
        yield from self._taken

    def keep(self) -> None:
        """Add what was counted until now to what was taken."""
        sets: dict[int, PossibleStates] = {}
        for slot in np.flatnonzero(self.counts).tolist():
            number, symbol = divmod(int(self.keys[slot]) - 1, 1 << 31)
            if number not in sets:
                sets[number] = self.set_of(number)
                self._taken_states += len(sets[number].states)
            if self._taken_states > TAKEN_MAX:
                self.uncounted += int(self.counts[slot])
                continue
            self._taken.append((sets[number], self._texts[symbol], int(self.counts[slot])))
        self.counts[:] = 0

    def _flags(self, key: MachineKey, local: int) -> int:
        if local in (DEAD, UNDECIDED, UNKNOWN):
            return STOPPED
        machine = self.machine(key)
        if machine.ended(local):
            return SURE | FINISHED
        return SURE if machine.is_sure(local) else FREE

    def _class(self, key: MachineKey, local: int) -> int:
        view = self.views.get(key)
        if view is None or local in (START, ENDED):
            return KEPT
        if local < LIVE:
            return self.number_of_class(view.anything)
        machine = self.machine(key)
        assert isinstance(machine, Determinised)  # candidates are not evaluated together
        return self.number_of_class(view.seen(machine.states[s] for s in machine.sets[local]))

    def number_of_class(self, seen: Seen) -> int:
        """The number of a class of entities."""
        found = self._seen_numbers.setdefault(seen, len(self.seen))
        if found == len(self.seen):
            self.seen.append(seen)
        return found

    def _grow(self) -> None:
        keys, values, counts = self.keys, self.values, self.counts
        self.keys = np.zeros(4 * len(keys), np.int64)
        self.values, self.counts = np.zeros_like(self.keys), np.zeros_like(self.keys)
        _store_all(self.keys, self.values, self.counts, keys, values, counts)


@compiled
def slot_of(keys: Ints, number: int, symbol: int) -> int:
    """Where the table has a set and a symbol, or where it has room for them."""
    key = (number << 31 | symbol) + 1
    mask = len(keys) - 1
    slot = ((key * 0x61C8864680B583EB) >> 20) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def _store(keys: Ints, values: Ints, counts: Ints, key: int, value: int, count: int) -> None:
    slot = slot_of(keys, (key - 1) >> 31, (key - 1) & 0x7FFFFFFF)
    keys[slot] = key
    values[slot] = value
    counts[slot] = count


@compiled
def _store_all(
    keys: Ints, values: Ints, counts: Ints, old_keys: Ints, old_values: Ints, old_counts: Ints
) -> None:
    for i in range(len(old_keys)):
        if old_keys[i] != 0:
            _store(keys, values, counts, old_keys[i], old_values[i], old_counts[i])
