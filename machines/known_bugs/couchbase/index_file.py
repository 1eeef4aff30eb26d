"""Bugs of an append-only file: what is on disk before what, and what is taken for a header."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_file import IndexFile, Kind, Leaf, Writer
from stagewright.spec import Bool, Number, Term, choose
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

DETAILS = "design document 004, details on index structures"


@known_bug("K2-nodes", DETAILS, breaks=IndexFile.a_valid_header_has_all_that_it_reaches)
class HeaderIsWrittenWithItsNodes(IndexFile):
    """Nodes and header were synced at once: the header came to the disk, a node did not."""

    def _may_append_header(self) -> Bool:
        return self.writer.any_of(Writer.root_appended, Writer.nodes_synced)


@known_bug("K2-header", DETAILS, breaks=IndexFile.what_is_acknowledged_is_found)
class HeaderIsNotSynced(IndexFile):
    """An insert was acknowledged when its header was written, not when it was on disk."""

    def _sync_header(self) -> None:
        pass


@known_bug("K2-in-place", DETAILS, breaks=IndexFile.a_snapshot_stays_as_it_is)
class NodesAreChangedInPlace(IndexFile):
    """A changed node was written where it was: who reads an older snapshot finds rows of a newer one."""

    def _place_of_new_node(self, leaf: Term[Leaf]) -> Number:
        root = self.block[self.header].root
        old = choose(leaf == Leaf.left, self.block[root].left, self.block[root].right)
        return choose(old == 0, super()._place_of_new_node(leaf), old)


@known_bug("K2-torn", DETAILS, breaks=IndexFile.what_is_acknowledged_is_found)
class TornHeaderIsValid(IndexFile):
    """A header was known by its first byte alone: half a header hid the whole one before it."""

    def _is_header(self, at: Number) -> Bool:
        return self.block[at].kind.column(lambda kind: kind.first_byte)


@known_bug("K2-backwards", DETAILS, breaks=IndexFile.what_is_acknowledged_is_found)
class OnlyTheLastBlockIsTried(IndexFile):
    """The file was taken for empty where its last block was no header: nobody read on backwards."""

    def _gives_up(self) -> Bool:
        return ~self._is_header(self.header)


@known_bug("K2-first-byte", DETAILS, breaks=IndexFile.what_is_acknowledged_is_found)
class NodesLookLikeHeaders(IndexFile):
    """The first byte of a node's block could be anything, and so the one of a header."""

    def _is_header(self, at: Number) -> Bool:
        return self.block[at].kind.any_of(Kind.header, Kind.kv_node) & ~self.block[at].torn


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
