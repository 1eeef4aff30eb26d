"""The canonical form as LLVM code: the function of `canonical.py`, bit by bit, for the native search.

A state is taken apart into the codes of its cells; members are put in the order of their signatures;
ties are tried from a table of all permutations. Where components are only to be sorted, the state stays
in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from stagewright.checker.explicit.native.code.expressions import Tables
from stagewright.checker.explicit.native.code.llvm_text import I64, POINTER, Function, Value
from stagewright.checker.explicit.packing import Layout
from stagewright.checker.symmetry.compiled_sorting import (
    ALL_BITS,
    exchange,
    greater,
    sorted_components,
)
from stagewright.checker.symmetry.groups import CellAction, Permutation, Symmetry
from stagewright.checker.symmetry.signatures import FIRST, RelationTerm, terms_of
from stagewright.checker.symmetry.sorting import comparators


def canonical_source(layout: Layout, symmetry: Symmetry) -> str:
    """LLVM text of `canonical(states, count)`, which replaces states by their canonical forms."""
    if not symmetry.tried:
        return _sorting_only(layout, symmetry)
    return _Trying(layout, symmetry).source()


def _sorting_only(layout: Layout, symmetry: Symmetry) -> str:
    f = Function("canonical", [("states", POINTER), ("count", I64)], local=False)
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
        base = f.mul(f.get(index), layout.words)
        words = [f.load(f["states"], f.add(base, w)) for w in range(layout.words)]
        for w, word in enumerate(sorted_components(f, layout, symmetry, words)):
            f.store(f["states"], f.add(base, w), word)
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return f.source()


@dataclass(frozen=True)
class _Trying:
    """The code for symmetries of which permutations must be tried.

    Orders (by place the member that comes there) and images (by member its place) of all groups that
    are tried lie one after the other.
    """

    layout: Layout
    symmetry: Symmetry

    def source(self) -> str:
        """All functions."""
        tables = Tables()
        text = self._permute(tables) + self._pack() + self._try(tables) + self._canonical()
        return tables.source() + text

    @cached_property
    def _offsets(self) -> dict[int, int]:
        """By group that is tried: where its orders begin."""
        offsets: dict[int, int] = {}
        for group in self.symmetry.tried:
            offsets[group] = sum(self.symmetry.groups[g].size for g in offsets)
        return offsets

    @property
    def _members(self) -> int:
        return sum(self.symmetry.groups[g].size for g in self.symmetry.tried)

    @cached_property
    def _moving(self) -> list[int]:
        """The cells that permutations of these groups move or rename."""
        return [
            cell
            for cell, action in enumerate(self.symmetry.actions)
            if action.value in self._offsets or any(g in self._offsets for g, _ in action.keys)
        ]

    @cached_property
    def _permutations(self) -> list[Permutation]:
        """All but the identity."""
        identity = self.symmetry.identity
        return [p for p in self.symmetry.permutations() if p != identity]

    def _permute(self, tables: Tables) -> str:
        """`permute(codes, orders, images, to)`: what the moving cells hold afterwards."""
        names = ("codes", "orders", "images", "to")
        f = Function("permute", [(name, POINTER) for name in names], result="void")
        orders = [f.load(f["orders"], i) for i in range(self._members)]
        for cell in self._moving:
            action = self.symmetry.actions[cell]
            code = f.load(f["codes"], self._source(f, tables, cell, orders))
            if action.value in self._offsets:
                code = self._renamed(f, action, code)
            f.store(f["to"], cell, code)
        f.return_()
        return f.source()

    def _source(
        self, f: Function, tables: Tables, cell: int, orders: Sequence[Value]
    ) -> Value | int:
        """The cell whose content comes to this one."""
        action = self.symmetry.actions[cell]
        if not any(g in self._offsets for g, _ in action.keys):
            return cell
        sizes = [self.symmetry.groups[g].size for g, _ in action.keys]
        cells = {
            tuple(e for _, e in other.keys): index
            for index, other in enumerate(self.symmetry.actions)
            if other.pattern == action.pattern
        }
        table: list[int] = [0]
        for size in sizes:
            table *= size
        for keys, index in cells.items():
            table[_position(keys, sizes)] = index
        at = Value("0", I64)
        for (group, member), size in zip(action.keys, sizes, strict=True):
            known = self._offsets.get(group)
            key = member if known is None else orders[known + member]
            at = f.add(f.mul(at, size), key)
        return f.load(Value(tables.name(tuple(table)), POINTER), at)

    def _renamed(self, f: Function, action: CellAction, code: Value) -> Value:
        assert action.value is not None
        member = f.sub(code, action.first)
        holds = f.compare("sge", member, 0)
        safe = f.select(holds, member, 0)
        image = f.load(f["images"], f.add(safe, self._offsets[action.value]))
        return f.select(holds, f.add(image, action.first), code)

    def _pack(self) -> str:
        """`pack(state, codes, to)`: the words, components sorted; what does not move is `state`'s."""
        names = ("state", "codes", "to")
        f = Function("pack", [(name, POINTER) for name in names], result="void")
        words = [f.load(f["state"], w) for w in range(self.layout.words)]
        kept = [ALL_BITS] * len(words)
        for cell in self._moving:
            place = self.layout.places[cell]
            kept[place.word] &= ~(place.mask << place.shift)
        words = [
            f.and_(word, keep) if keep != ALL_BITS else word
            for word, keep in zip(words, kept, strict=True)
        ]
        for cell in self._moving:
            place = self.layout.places[cell]
            if place.bits:
                code = f.shl(f.load(f["codes"], cell), place.shift)
                words[place.word] = f.or_(words[place.word], code)
        for w, word in enumerate(sorted_components(f, self.layout, self.symmetry, words)):
            f.store(f["to"], w, word)
        f.return_()
        return f.source()

    def _try(self, tables: Tables) -> str:
        """`try_ties(state, codes, least, ties)`: the least image among members with equal signatures.

        Each permutation stands in a table with the ties that it needs: its neighbours' bits.
        """
        names = ("state", "codes", "least")
        parameters = [*((name, POINTER) for name in names), ("ties", I64)]
        f = Function("try_ties", parameters, result="void")
        to = self._room(f, len(self.layout.cells))
        image = self._room(f, self.layout.words)
        needs = [self._needed(p) for p in self._permutations]
        need = Value(tables.name(tuple(needs)), POINTER)
        flat = [_flat(self.symmetry, p) for p in self._permutations]
        orders = Value(tables.name(tuple(n for order, _ in flat for n in order)), POINTER)
        images = Value(tables.name(tuple(n for _, moved in flat for n in moved)), POINTER)

        def make_image(number: Value | int) -> None:
            at = (
                f.mul(number, self._members)
                if isinstance(number, Value)
                else Value(str(number * self._members), I64)
            )
            f.call("@permute", [f["codes"], f.at(orders, at), f.at(images, at), to], "void")
            f.call("@pack", [f["state"], to, image], "void")

        different = f.variable(0)
        for number, swapped in enumerate(needs):
            if swapped.bit_count() == 1:  # it exchanges two neighbours
                with f.when(f.compare("ne", f.and_(f["ties"], swapped), 0)):
                    make_image(number)
                    same = self._same(f, image, f["least"])
                    f.set(different, f.or_(f.get(different), f.zext(f.not_(same))))
        with f.when(f.compare("eq", f.get(different), 0)):
            f.return_()
        index = f.variable(0)
        with f.loop(lambda: f.compare("ult", f.get(index), len(needs))):
            missing = f.and_(f.load(need, f.get(index)), f.xor(f["ties"], -1))
            with f.when(f.compare("eq", missing, 0)):
                make_image(f.get(index))
                words = range(self.layout.words)
                one = [f.load(f["least"], w) for w in words]
                other = [f.load(image, w) for w in words]
                with f.when(greater(f, one, other)):
                    for w in words:
                        f.store(f["least"], w, other[w])
            f.set(index, f.add(f.get(index), 1))
        f.return_()
        return f.source("noinline")

    def _same(self, f: Function, one: Value, other: Value) -> Value:
        same = f.compare("eq", f.load(one, 0), f.load(other, 0))
        for w in range(1, self.layout.words):
            same = f.and_(same, f.compare("eq", f.load(one, w), f.load(other, w)))
        return same

    def _needed(self, permutation: Permutation) -> int:
        """Which neighbours must be tied so that this permutation is among equals."""
        needed, bit = 0, 0
        for group in self.symmetry.tried:
            for member, image in enumerate(permutation[group]):
                for between in range(min(member, image), max(member, image)):
                    needed |= 1 << bit + between
            bit += self.symmetry.groups[group].size - 1
        return needed

    def _canonical(self) -> str:
        f = Function("canonical", [("states", POINTER), ("count", I64)], local=False)
        codes, ordered = (self._room(f, len(self.layout.cells)) for _ in range(2))
        orders, images = (self._room(f, self._members) for _ in range(2))
        least = self._room(f, self.layout.words)
        index = f.variable(0)
        with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
            state = f.at(f["states"], f.mul(f.get(index), self.layout.words))
            held = self._codes(f, state)
            for cell, code in enumerate(held):
                f.store(codes, cell, code)
            ties = self._order(f, held, orders, images)
            f.call("@permute", [codes, orders, images, ordered], "void")
            f.call("@pack", [state, ordered, least], "void")
            with f.when(f.compare("ne", ties, 0), likely=False):
                f.call("@try_ties", [state, ordered, least, ties], "void")
            for w in range(self.layout.words):
                f.store(state, w, f.load(least, w))
            f.set(index, f.add(f.get(index), 1))
        f.return_(0)
        return f.source()

    def _codes(self, f: Function, state: Value) -> list[Value]:
        words = [f.load(state, w) for w in range(self.layout.words)]
        held: list[Value] = []
        for place in self.layout.places:
            raw = f.lshr(words[place.word], place.shift) if place.shift else words[place.word]
            held.append(f.and_(raw, place.mask))
        return held

    def _order(self, f: Function, codes: Sequence[Value], orders: Value, images: Value) -> Value:
        """Store the order of the members by signature; returns which neighbours are equal."""
        ties, bit = Value("0", I64), 0
        for group, signatures in self._signatures(f, codes).items():
            first = self._offsets[group]
            pairs = [[s, Value(str(member), I64)] for member, s in enumerate(signatures)]
            for low, high in comparators(len(pairs)):
                exchange(f, pairs, low, high)
            for place, (_, member) in enumerate(pairs):
                f.store(orders, first + place, member)
                f.store(images, f.add(member, first), place)
            for (one, _), (other, _) in pairwise(pairs):
                tied = f.zext(f.compare("eq", one, other))
                ties = f.or_(ties, f.shl(tied, bit))
                bit += 1
        return ties

    def _signatures(self, f: Function, codes: Sequence[Value]) -> dict[int, list[Value]]:
        terms = terms_of(self.symmetry)
        zero = Value("0", I64)
        own = [[zero] * group.size for group in self.symmetry.groups]
        for term in terms.own:
            summand = _mix(f, f.add(codes[term.cell], term.salt))
            own[term.group][term.member] = f.add(own[term.group][term.member], summand)
        found = {group: list(own[group]) for group in self.symmetry.tried}
        for relation in terms.relations:
            self._add(f, relation, codes[relation.cell], own, found)
        return found

    def _add(
        self,
        f: Function,
        relation: RelationTerm,
        code: Value,
        own: Sequence[Sequence[Value]],
        found: dict[int, list[Value]],
    ) -> None:
        """Add what a cell says of the members that it relates."""
        total = f.add(Value("0", I64), relation.base)
        for key in relation.keys:
            total = f.add(total, _mix(f, f.add(own[key.group][key.member], key.party)))
        holds: list[Value] = []
        if relation.value is None:
            total = f.add(total, _mix(f, f.add(code, relation.held)))
        else:
            for member, equal in enumerate(relation.equal):
                here = f.compare("eq", code, relation.first + member)
                said = f.add(_mix(f, f.add(own[relation.value][member], relation.held)), equal)
                total = f.add(total, f.select(here, said, 0))
                holds.append(here)
        for key in relation.keys:
            if key.group in found:
                summand = _mix(f, f.add(total, key.role))
                found[key.group][key.member] = f.add(found[key.group][key.member], summand)
        if relation.value is not None and relation.value in found:
            summand = _mix(f, f.add(total, relation.value_role))
            members = found[relation.value]
            for member, here in enumerate(holds):
                members[member] = f.add(members[member], f.select(here, summand, 0))

    def _room(self, f: Function, size: int) -> Value:
        return f.op(f"alloca i64, i64 {size}", POINTER)


def _position(keys: Sequence[int], sizes: Sequence[int]) -> int:
    at = 0
    for key, size in zip(keys, sizes, strict=True):
        at = at * size + key
    return at


def _flat(symmetry: Symmetry, permutation: Permutation) -> tuple[list[int], list[int]]:
    """The orders and images of the groups that are tried."""
    orders: list[int] = []
    images: list[int] = []
    for group in symmetry.tried:
        images += permutation[group]
        orders += sorted(range(len(permutation[group])), key=permutation[group].__getitem__)
    return orders, images


def _mix(f: Function, number: Value) -> Value:
    mixed = f.mul(f.xor(number, f.lshr(number, 32)), FIRST)
    return f.xor(mixed, f.lshr(mixed, 29))
