"""The file of an index: nodes and headers are appended, and after a crash the last valid header is looked for backwards.

A changed node is appended with all its parents up to the root, and then a header with the root's
offset. So the file contains many instances of the tree, one for each header. Each block that was
not synced when the process died may be on disk, missing, or torn.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Annotated, Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    Record,
    States,
    Term,
    accepts,
    action,
    between,
    bounded,
    budget,
    choose,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    fault_budget,
    final,
    flag,
    greatest,
    invariant,
    leads_to,
    least,
    liveness,
    number,
    one_of,
    per,
    record,
    require,
    scopes,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
DISK = Actor("disk")
WRITER = Actor("writer")
BLOCKS = 8
LAST_ROWS = 2
FOR_THE_PROMISE = "what clients know is recorded only for the promise"

Offset = Annotated[Number, between(1, BLOCKS)]


class Leaf(Enum):
    """The KV-nodes of the tree."""

    left = auto()
    right = auto()


class Kind(States):
    """What a block of the file contains, and whether its first byte is non-zero."""

    nothing = False
    kv_node = False
    root = False  # a KP-node
    header = True

    def __init__(self, first_byte: bool) -> None:
        self.first_byte = first_byte


class Block(Record):
    """A block, at the offset where it was appended. No block is at offset 0: it stands for no node, or an empty tree."""

    kind = one_of(Kind, init=Kind.nothing)
    torn = flag()  # only part of it is on disk: the checksum is wrong
    rows = number(0, LAST_ROWS)  # of a KV-node: how many rows it has
    left = number(0, BLOCKS)  # of a root
    right = number(0, BLOCKS)
    root = number(0, BLOCKS)  # of a header


class Writer(Enum):
    """How far a bulk insert has got, or the recovery after a crash."""

    idle = auto()
    node_appended = auto()
    root_appended = auto()
    nodes_synced = auto()
    header_appended = auto()
    down = auto()
    looking = auto()  # for a header, from the end of the file backwards


class IndexFile(Machine):
    """One tree in one file, through bulk inserts, crashes and recoveries.

    There is no profile. The document does not say when the file is synced: here all blocks that a
    header reaches are synced before it is appended, and the header before the insert is
    acknowledged.
    """

    inserts = budget(2, doc="bulk inserts, each into one node")
    crashes = fault_budget(2, doc="crashes of the process, or of the machine")

    exercised_at = scopes({}, {inserts: 3, crashes: 1})

    block = per(number(0, BLOCKS), record(Block))
    end: NumberVar = number(0, BLOCKS)  # the last block of the file
    synced: NumberVar = number(0, BLOCKS)  # up to here a crash loses nothing
    writer: OneVar[Writer] = one_of(Writer, init=Writer.idle)
    header: NumberVar = number(0, BLOCKS)  # the offset of the one in use; 0: none yet
    changing: OneVar[Leaf] = one_of(Leaf, init=Leaf.left)
    node: NumberVar = number(0, BLOCKS)  # the new node, and the new root
    root: NumberVar = number(0, BLOCKS)
    # to clients: rows that were acknowledged, or returned to a query
    known = per(Leaf, number(0, LAST_ROWS))

    # -- a bulk insert -----------------------------------------------------------------------------------

    @action(by=WRITER, spends=inserts)
    def append_node(self, leaf: Term[Leaf]) -> None:
        """A node changes: its new version is appended, and the old one stays where it is."""
        require(self.writer == Writer.idle, "the file is open, no insert runs")
        bounded(self.end + 4 <= BLOCKS, "there is room for three blocks")
        rows = self._rows(self.header, leaf)
        bounded(rows < LAST_ROWS, "there is room for a row")
        at = self._place_of_new_node(leaf)
        self.writer = Writer.node_appended
        self.changing = leaf
        self.node = at
        self.end = self._next()
        self.block[at] = Block(kind=Kind.kv_node, rows=least(rows + 1, LAST_ROWS))

    @action(by=WRITER, fair=WEAK)
    def append_root(self) -> None:
        """004: "we need to append that node in the file as well as all its parent nodes up to the root node"."""
        require(self.writer == Writer.node_appended, "the node is appended")
        at, old = self._next(), self.block[self.header].root
        left = choose(self.changing == Leaf.left, self.node, self.block[old].left)
        right = choose(self.changing == Leaf.right, self.node, self.block[old].right)
        self.writer = Writer.root_appended
        self.root = at
        self.end = at
        self.block[at] = Block(kind=Kind.root, left=left, right=right)

    @action(by=WRITER, fair=WEAK)
    def sync_nodes(self) -> None:
        """The nodes are synced to disk."""
        require(self.writer == Writer.root_appended, "the root is appended")
        self.writer = Writer.nodes_synced
        self.synced = self.end

    @action(by=WRITER, fair=WEAK)
    def append_header(self) -> None:
        """The header has the offset of the new root; no other kind of block has a non-zero first byte."""
        require(self._may_append_header(), "the nodes are on disk")
        at = self._next()
        self.writer = Writer.header_appended
        self.end = at
        self.block[at] = Block(kind=Kind.header, root=self.root)

    @action(by=WRITER, fair=WEAK)
    def acknowledge(self) -> None:
        """The header is synced, too: the group process has the new snapshot, and the insert is done."""
        require(self.writer == Writer.header_appended, "the header is appended")
        self._sync_header()
        self.writer = Writer.idle
        self.header = self.end
        self.known[self.changing] = self.block[self.node].rows
        self._forget_insert()

    @action(by=CLIENT)
    def query(self, leaf: Term[Leaf]) -> None:
        """A query walks down the tree from the header in use, whatever is being appended."""
        require(~self._is_starting(), "the file is open")
        self.known[leaf] = self._rows(self.header, leaf)

    # -- crash and recovery ------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self) -> None:
        """The process dies and loses what it had in memory."""
        require(self.writer != Writer.down, "process is up")
        self.writer = Writer.down
        self._forget_insert()

    @action(by=DISK)
    def lose(self, at: Offset) -> None:
        """A block that was not synced never reached the disk, although later ones may have."""
        self._is_unsynced(at)
        self.block[at] = Block(kind=Kind.nothing)

    @action(by=DISK)
    def tear(self, at: Offset) -> None:
        """Only part of a block that was not synced reached the disk."""
        self._is_unsynced(at)
        self.block[at] = Block(kind=self.block[at].kind, torn=True)

    @action(fair=WEAK)
    def open(self) -> None:
        """The process restarts, syncs the file as it is, and starts to read it from the end."""
        require(self.writer == Writer.down, "process is down")
        self.writer = Writer.looking
        self.header = self.end
        self.synced = self.end

    @action(fair=WEAK)
    def look_further(self) -> None:
        """The block is not a valid header: the one before it is tried."""
        require(self.writer == Writer.looking, "a header is looked for")
        require(~self._is_header(self.header), "it is no valid header")
        self.header = greatest(self.header - 1, 0)

    @action(fair=WEAK)
    def recover(self) -> None:
        """The last valid header is the index; if there is none, the index is empty."""
        require(self.writer == Writer.looking, "a header is looked for")
        require(
            self._is_header(self.header) | self._gives_up(), "header is found, or there is none"
        )
        self.writer = Writer.idle

    # -- helpers -----------------------------------------------------------------------------------------

    def _next(self) -> Number:
        return least(self.end + 1, BLOCKS)

    def _place_of_new_node(self, _leaf: Term[Leaf]) -> Number:
        """The file is append only."""
        return self._next()

    def _may_append_header(self) -> Bool:
        return self.writer == Writer.nodes_synced

    def _sync_header(self) -> None:
        self.synced = self.end

    def _forget_insert(self) -> None:
        self.node = 0
        self.root = 0
        self.changing = Leaf.left

    def _is_starting(self) -> Bool:
        return self.writer.any_of(Writer.down, Writer.looking)

    def _is_unsynced(self, at: Number) -> None:
        require(self.writer == Writer.down, "process is down")
        require((self.synced < at) & (at <= self.end), "the block is not synced")

    def _is_header(self, at: Number) -> Bool:
        """004: "block aligned and it has its first byte non-zero", and its checksum is right."""
        first_byte = self.block[at].kind.column(lambda kind: kind.first_byte)
        return first_byte & ~self.block[at].torn

    def _gives_up(self) -> Bool:
        return self.header == 0

    def _rows(self, header: Number, leaf: Term[Leaf]) -> Number:
        """The rows of a node that a walk down from a header finds."""
        root = self.block[header].root
        child = choose(leaf == Leaf.left, self.block[root].left, self.block[root].right)
        return self.block[child].rows

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def a_valid_header_has_all_that_it_reaches(self, at: Offset) -> Bool:
        """004: "From the header, we can locate the the file offset position from which we can read
        the root node", and from that "its child nodes". The header of an empty tree reaches none.
        """
        root = self.block[at].root
        left, right = self.block[root].left, self.block[root].right
        nodes = self._is_node(left) & self._is_node(right)
        complete = (self.block[root].kind == Kind.root) & ~self.block[root].torn & nodes
        valid = (self.block[at].kind == Kind.header) & ~self.block[at].torn
        return valid.implies(complete | (root == 0))

    @invariant
    def what_is_acknowledged_is_found(self, leaf: Term[Leaf]) -> Bool:
        """An insert that was acknowledged, or seen by a query, is in the index, also after a crash."""
        return self._is_starting() | (self._rows(self.header, leaf) >= self.known[leaf])

    @step_property
    def a_snapshot_has_no_more_than_was_inserted(self, after: Self, leaf: Term[Leaf]) -> Bool:
        """004: the tree "creates a snapshot on each btree insert operation": it has the rows of the
        previous snapshot and those that are inserted, and no others.
        """
        acknowledged = (self.writer == Writer.header_appended) & (after.writer == Writer.idle)
        most = self._rows(self.header, leaf) + choose(self.changing == leaf, 1, 0)
        return acknowledged.implies(after._rows(after.header, leaf) <= most)

    @step_property
    def no_query_finds_less_in_between(self, after: Self, leaf: Term[Leaf]) -> Bool:
        """004: "Latest snapshot information can be obtained [...] by locating a valid header": a
        query that comes before one is located is not answered from whatever else is at the end of
        the file.
        """
        opens = self.writer.any_of(Writer.down, Writer.looking)
        return opens.implies(after.known[leaf] >= self.known[leaf])

    @accepts(query)
    def queries_come_while_the_file_is_written(self, leaf: Term[Leaf]) -> Bool:
        """004: the view engine "always server requests and updates can happen to the index file anytime"."""
        return ~self.writer.any_of(Writer.down, Writer.looking)

    @accepts(append_node)
    def inserts_go_on_after_a_recovery(self, leaf: Term[Leaf]) -> Bool:
        """004: "updates can happen to the index file anytime": also after a header that had to be
        looked for, or after none was found.
        """
        return self.writer == Writer.idle

    @sometimes
    def inserts_are_acknowledged(self, after: Self, leaf: Term[Leaf]) -> Bool:
        """004: an insert "creates a snapshot": the next one adds to it, without a restart in between."""
        ends = (self.writer != Writer.idle) & (after.writer == Writer.idle)
        return ends & (self.known[leaf] < LAST_ROWS) & (after.known[leaf] == LAST_ROWS)

    @step_property
    def a_snapshot_stays_as_it_is(self, after: Self, at: Offset, leaf: Term[Leaf]) -> Bool:
        """004: "By obtaining different versions of root offset position, you can read all the
        snapshots of the index point in time": whoever holds a header keeps reading what was there,
        until the process dies.
        """
        held = (self.block[at].kind == Kind.header) & ~self.block[at].torn
        held = held & (self.writer != Writer.down)
        stays = (after.block[at].kind == Kind.header) & ~after.block[at].torn
        return (held & stays).implies(after._rows(at, leaf) == self._rows(at, leaf))

    @invariant
    def the_latest_snapshot_is_in_use(self, at: Offset) -> Bool:
        """004: "Latest snapshot information can be obtained by reading from the end of the index
        file backwards by locating a valid header".
        """
        valid = (self.block[at].kind == Kind.header) & ~self.block[at].torn
        return (valid & (self.writer == Writer.idle)).implies(at <= self.header)

    @step_property
    def what_is_written_stays(self, after: Self, at: Offset) -> Bool:
        """004: the tree is "an append only btree": what is on disk is never changed."""
        on_disk = at <= self.synced
        same = (after.block[at].kind == self.block[at].kind) & (
            after.block[at].rows == self.block[at].rows
        )
        return on_disk.implies(same & (after.block[at].torn == self.block[at].torn))

    def _is_node(self, at: Number) -> Bool:
        there = (self.block[at].kind == Kind.kv_node) & ~self.block[at].torn
        return (at == 0) | there

    @final
    def nothing_runs(self) -> Bool:
        """A file may stay as it is when it is open and no insert runs."""
        return self.writer == Writer.idle

    @liveness
    def inserts_and_recoveries_end(self) -> LeadsTo:
        """Every insert ends, and a process that was restarted finds its index."""
        return leads_to(self.writer != Writer.idle, self.writer == Writer.idle)

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(query, known, because=FOR_THE_PROMISE),
        equivalent_drop(
            crash, "process is up", because="a process that is down may well crash once more"
        ),
        equivalent_weakening(
            _is_unsynced,
            "the block is not synced",
            because="there is nothing to lose beyond the end",
        ),
        equivalent_disabled(lose, tear, because="every block may reach the disk after all"),
        equivalent_loss(lose, block, because="a block may reach the disk after all"),
        equivalent_loss(tear, block, because="a block may reach the disk after all"),
        *(
            equivalent_replacement(
                append, "end becomes: 2 for 1", because="nobody reads a gap between two blocks"
            )
            for append in (append_node, append_root)
        ),
        *(
            equivalent_replacement(
                append,
                "becomes: 1 for 0",
                because="nobody reads a field that this kind of block does not use",
            )
            for append in (append_node, append_root, append_header)
        ),
        *(
            equivalent_replacement(
                spoil, "becomes", because="a lost or torn block may contain anything"
            )
            for spoil in (lose, tear)
        ),
        equivalent_drop(
            look_further, "a header is looked for", because="the header in use is always valid"
        ),
        equivalent_loss(
            _forget_insert, node, root, changing, because="the next insert has nodes of its own"
        ),
        equivalent_replacement(_forget_insert, because="the next insert has nodes of its own"),
    )
