"""Mistakes put back into `IndexFile`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_file import (
    BLOCKS,
    CLIENT,
    LAST_ROWS,
    WEAK,
    WRITER,
    Block,
    IndexFile,
    Kind,
    Leaf,
    Writer,
)
from stagewright.spec import (
    Bool,
    FlagVar,
    Number,
    Term,
    action,
    bounded,
    choose,
    flag,
    greatest,
    least,
    require,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STRUCTURES = 'design document 004, "Details on index structures"'
DETAILS = "design document 004, details on index structures"


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-1",
    DETAILS,
    breaks=IndexFile.a_valid_header_has_all_that_it_reaches,
    budgets={IndexFile.inserts: 1},
)
class TheFirstHeaderIsWrittenAtOnce(IndexFile):
    """Of an index that was empty nothing can be lost, so its first nodes and their header were synced at once."""

    def _may_append_header(self) -> Bool:
        empty = self.header == 0
        return super()._may_append_header() | (empty & (self.writer == Writer.root_appended))


@known_bug(
    "004-2",
    DETAILS,
    breaks=IndexFile.a_snapshot_stays_as_it_is,
    budgets={IndexFile.crashes: 0},
)
class TheRootStaysWhereItIs(IndexFile):
    """The root was written again where it was: every older header reached the new nodes."""

    @action(by=WRITER, fair=WEAK)
    def append_root(self) -> None:
        """The root gets the new node."""
        require(self.writer == Writer.node_appended, "the node is appended")
        old = self.block[self.header].root
        at = choose(old == 0, self._next(), old)
        left = choose(self.changing == Leaf.left, self.node, self.block[old].left)
        right = choose(self.changing == Leaf.right, self.node, self.block[old].right)
        self.writer = Writer.root_appended
        self.root = at
        self.end = choose(old == 0, self._next(), self.end)
        self.block[at] = Block(kind=Kind.root, left=left, right=right)


@known_bug(
    "004-3",
    'design document 004: "reading from the end of the index file backwards"',
    breaks=IndexFile.the_latest_snapshot_is_in_use,
)
class TheSearchBeginsAtTheLastSync(IndexFile):
    """A header was looked for from the last block that was known to be synced: a whole one behind it was passed over."""

    @action(fair=WEAK)
    def open(self) -> None:
        """The process starts again."""
        require(self.writer == Writer.down, "process is down")
        self.writer = Writer.looking
        self.header = self.synced
        self.synced = self.end


@known_bug(
    "004-4",
    'design document 004: "an append only btree"',
    breaks=IndexFile.what_is_written_stays,
)
class TheFileIsCutBack(IndexFile):
    """What lies behind the header that was found is of no use, and the next nodes were written over it."""

    @action(fair=WEAK)
    def recover(self) -> None:
        """The last valid header is the end of the file."""
        super().recover()
        self.end = self.header


@known_bug(
    "004-58",
    "design document 004: the latest snapshot is the last valid header",
    breaks=IndexFile.what_is_acknowledged_is_found,
)
class HeadersAreReadBeforeTheyAreSynced(IndexFile):
    """Queries get a header as soon as it is appended: after a crash the rows that they have returned are gone."""

    @action(by=WRITER, fair=WEAK)
    def append_header(self) -> None:
        """It is the last one, and so the one that is in use."""
        require(self._may_append_header(), "the nodes are on disk")
        at = self._next()
        self.writer = Writer.header_appended
        self.header = at
        self.end = at
        self.block[at] = Block(kind=Kind.header, root=self.root)

    @action(by=WRITER, fair=WEAK)
    def acknowledge(self) -> None:
        """Now it is on disk, too."""
        require(self.writer == Writer.header_appended, "the header is appended")
        self._sync_header()
        self.writer = Writer.idle
        self.known[self.changing] = self.block[self.node].rows
        self._forget_insert()


@known_bug(
    "004-76",
    "design document 004: the latest snapshot is obtained by locating a valid header",
    breaks=IndexFile.no_query_finds_less_in_between,
)
class QueriesReadTheLastBlock(IndexFile):
    """A query that came while the file was opened took its last block for a header, and found what that says: nothing."""

    @action(by=CLIENT)
    def query(self, leaf: Term[Leaf]) -> None:
        """A query walks down from where the search for a header is."""
        require(self.writer != Writer.down, "process is up")
        self.known[leaf] = self._rows(self.header, leaf)


@known_bug(
    "004-140",
    "design document 004: an insert creates a snapshot",
    breaks=IndexFile.a_snapshot_has_no_more_than_was_inserted,
    budgets={IndexFile.crashes: 0},
)
class TheNodeInMemoryIsTaken(IndexFile):
    """The node that was written last was still in memory: the next insert went into it, whichever node it was for."""

    @action(by=WRITER, spends=IndexFile.inserts)
    def append_node(self, leaf: Term[Leaf]) -> None:
        """A node is changed: the one in memory."""
        require(self.writer == Writer.idle, "the file is open, no insert runs")
        bounded(self.end + 4 <= BLOCKS, "there is room for three blocks")
        bounded(self._rows(self.header, leaf) < LAST_ROWS, "there is room for a row")
        at, last = self._next(), greatest(self.header - 2, 0)
        self.writer = Writer.node_appended
        self.changing = leaf
        self.node = at
        self.end = at
        rows = least(self.block[last].rows + 1, LAST_ROWS)
        self.block[at] = Block(kind=Kind.kv_node, rows=rows)


@known_bug(
    "004-144",
    "design document 004: an insert creates a snapshot",
    breaks=IndexFile.inserts_are_acknowledged,
    budgets={IndexFile.crashes: 0},
)
class SnapshotsAreTakenFromTheFile(IndexFile):
    """After each insert the file was opened again, to find its header there: to the client the insert had failed."""

    @action(by=WRITER, fair=WEAK)
    def acknowledge(self) -> None:
        """The header is on disk, and the file is closed."""
        require(self.writer == Writer.header_appended, "the header is appended")
        self._sync_header()
        self.writer = Writer.down
        self._forget_insert()


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


@known_bug("K2-nodes", DETAILS, breaks=IndexFile.a_valid_header_has_all_that_it_reaches)
class HeaderIsWrittenWithItsNodes(IndexFile):
    """Nodes and header were synced at once: the header came to the disk, a node did not."""

    def _may_append_header(self) -> Bool:
        return self.writer.any_of(Writer.root_appended, Writer.nodes_synced)


@known_bug("K2-torn", DETAILS, breaks=IndexFile.what_is_acknowledged_is_found)
class TornHeaderIsValid(IndexFile):
    """A header was known by its first byte alone: half a header hid the whole one before it."""

    def _is_header(self, at: Number) -> Bool:
        return self.block[at].kind.column(lambda kind: kind.first_byte)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-64",
    'design document 004: "updates can happen to the index file anytime"',
    breaks=IndexFile.queries_come_while_the_file_is_written,
)
class QueriesWaitForTheWriter(IndexFile):
    """The process that reads the file is the one that writes it: a query waits until a bulk insert is on disk."""

    @action(by=CLIENT)
    def query(self, leaf: Term[Leaf]) -> None:
        """One after the other."""
        require(self.writer == Writer.idle, "no insert runs")
        super().query(leaf)


@known_bug("004-209", STRUCTURES, breaks=IndexFile.inserts_go_on_after_a_recovery)
class ReadOnlyAfterATornBlock(IndexFile):
    """A file that does not end with a header is queried, and not written any more."""

    spoilt: FlagVar = flag()

    @action(fair=WEAK)
    def look_further(self) -> None:
        super().look_further()
        self.spoilt = True

    @action(by=WRITER, spends=IndexFile.inserts)
    def append_node(self, leaf: Term[Leaf]) -> None:
        super().append_node(leaf)
        require(~self.spoilt, "the file ended with a header")


BUGS = known_bugs_in(globals())
