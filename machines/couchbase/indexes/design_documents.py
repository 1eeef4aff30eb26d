"""Design documents and their groups: which index file a definition has, and which one a query reads.

The set view server of a bucket has a group server for each definition that is in use. The file of a group is
named by its signature, a digest of the definition: design documents with the same definition share it, and a
definition that is changed gets a file of its own, while queries go on with the one that they began with.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    each,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENTS = "what a client does not define is not there"
CLIENT = Actor("client")
SERVER = Actor("set view server")


class DesignDocument(Entity, scope=2, ordered=True):
    """A design document, by its name."""


class Definition(Enum):
    """What a design document says: the map and reduce functions of its views."""

    by_city = auto()
    by_date = auto()


class File(Enum):
    """An index file, by the signature in its name: `main_da1eaf….view.1`, `main_0c52f1….view.1`."""

    main_da1eaf = auto()
    main_0c52f1 = auto()


class DesignDocuments(Machine):
    """The design documents of a bucket, one type of index, and a query.

    There is no profile. Replica indexes have files and groups of their own, to the same rules.
    """

    changes = budget(3, doc="design documents that are written or deleted")
    queries = budget(2, doc="queries")
    crashes = fault_budget(1, doc="crashes of the node")

    exercised_at = scopes({}, {crashes: 2})

    definition = per(DesignDocument, optional(Definition))  # in the metadata file `master.couch.1`
    files: SetVar[File] = set_of(File)
    rows = per(File, optional(Definition))  # the definition whose rows the file has
    groups: SetVar[File] = set_of(File)  # whose group server runs
    asked: OptionalVar[Definition] = optional(Definition)  # the definition when the query came
    reading: OptionalVar[File] = optional(File)  # the file that the query has open
    ended: FlagVar = history(flag())  # the last query has read to the end, or died with the node

    # -- the document ------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A client writes a design document, new or changed; its metadata is in the master file."""
        self.definition[d] = definition

    @action(by=CLIENT, spends=changes)
    def delete(self, d: Term[DesignDocument]) -> None:
        """A client deletes a design document."""
        self.definition[d] = None

    # -- groups ------------------------------------------------------------------------------------------

    @action(by=SERVER, fair=WEAK)
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        """A request comes for a definition: its group server opens the file, or creates one."""
        require(self.definition[d] == definition, "the design document says so")
        for file in each(File):
            named = self._names(file, d, definition)
            self.files.put(file, self.files.has(file) | named)
            self.groups.put(file, self.groups.has(file) | named)

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        """The group server indexes the documents by its definition."""
        require(self.definition[d] == definition, "the design document says so")
        require(self.groups.has(file), "its group server runs")
        require(self._names(file, d, definition), "the file is named by its signature")
        self.rows[file] = definition

    @action(by=SERVER, fair=WEAK)
    def remove_file(self, file: Term[File]) -> None:
        """No design document has the definition, and no query reads its file: the group ends, the file goes."""
        require(self.files.has(file), "there is the file")
        require(~self._is_used(file), "no design document has its definition")
        require(~self._is_read(file), "no query reads it")
        self.files.discard(file)
        self.groups.discard(file)
        self.rows[file] = None

    @action(spends=crashes)
    def crash(self) -> None:
        """The node dies with its group servers and queries; files and metadata stay."""
        self.groups = frozenset()
        self._end_query()

    # -- a query -----------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=queries)
    def ask(self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]) -> None:
        """A query is delegated to the right group server, and reads its file, once that has an index."""
        require(self.reading.is_none(), "the last query is answered")
        require(self.definition[d] == definition, "the design document says so")
        require(self._names(file, d, definition), "the file is named by its signature")
        require(self.rows[file].is_some(), "the group server has an index")
        self.asked = definition
        self.reading = file
        self.ended = False

    @action(fair=WEAK)
    def answer(self) -> None:
        """The query has read its file to the end."""
        require(self.reading.is_some(), "a query reads a file")
        self._end_query()

    # -- helpers -----------------------------------------------------------------------------------------

    def _names(
        self, file: Term[File], _d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        """004: the signature "is calculated by applying md5sum on design document definition"."""
        return (file == File.main_da1eaf) == (definition == Definition.by_city)

    def _is_used(self, file: Term[File]) -> Bool:
        return some(
            self._names(file, d, definition)
            for d in DesignDocument
            for definition in self.definition[d]
        )

    def _is_read(self, file: Term[File]) -> Bool:
        return self.reading == file

    def _end_query(self) -> None:
        self.ended = True
        self._forget_query()

    def _forget_query(self) -> None:
        self.asked = None
        self.reading = None

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def equal_definitions_share_a_file(self, one: Term[File], other: Term[File]) -> Bool:
        """004: "If multiple design documents are defined with same definition, it will create only one index
        file".
        """
        same = self.rows[one].is_some() & (self.rows[one] == self.rows[other])
        return same.implies(one == other)

    @invariant
    def a_query_reads_what_it_asked_for(self, file: Term[File]) -> Bool:
        """004: "if a ddoc definition is changed while a query is under processing, the query can operate on
        older file (different signature)".
        """
        return (self.reading == file).implies(
            self.files.has(file) & (self.rows[file] == self.asked)
        )

    @lemma
    @sometimes
    def a_query_goes_on_with_the_older_file(self, after: Self) -> Bool:
        """004: a "new index file can be created independently without affecting the running query request": the definition is
        changed, a new index is built, and the query still reads. A lemma: indexes are built independently of it, and it outlasts
        its definition.
        """
        changed = ~some(self.definition[d] == self.asked for d in DesignDocument)
        built = some(self.rows[f].is_none() & after.rows[f].is_some() for f in each(File))
        return changed & built & self.reading.is_some() & (after.reading == self.reading)

    @step_property
    def queries_outlast_their_definitions(self, after: Self) -> Bool:
        """004: "if a ddoc definition is changed while a query is under processing, the query can operate on older file": what
        is written of design documents, or deleted, does not affect "the running query request": not then, nor when the
        server finds its group unused. It reads to the end, unless the node dies.
        """
        goes_on = self.reading.is_some() & ~after.ended
        return goes_on.implies(after.reading == self.reading)

    @step_property
    def groups_outlast_other_definitions(self, after: Self, file: Term[File]) -> Bool:
        """004: several definitions are "present at a time for query request handling": who writes a design document, or deletes
        it, ends no group server whose file a running query reads, or another design document has. Nor does one end when it
        has built its index: it "owns all the operations".
        """
        written = some(self.definition[d] != after.definition[d] for d in DesignDocument)
        changed = written | some(
            after.rows[f].is_some() & (self.rows[f] != after.rows[f]) for f in each(File)
        )
        needed = (self.reading == file) | after._is_used(file)
        return (changed & self.groups.has(file) & needed).implies(after.groups.has(file))

    @step_property
    def a_file_stays_while_it_is_needed(self, after: Self, file: Term[File]) -> Bool:
        """A design document that is changed or deleted takes no index away from another one with its definition."""
        needed = some(
            self.definition[d].is_some()
            & (self.definition[d] == self.rows[file])
            & (after.definition[d] == self.rows[file])
            for d in DesignDocument
        )
        stays = after.files.has(file) & after.rows[file].is_some()
        return (self.files.has(file) & needed).implies(stays)

    @step_property
    def only_what_is_defined_is_indexed(self, after: Self, file: Term[File]) -> Bool:
        """004: "One file per design document and index type": no other file is created, no other index built."""
        created = after.files.has(file) & ~self.files.has(file)
        built = after.rows[file].is_some() & (after.rows[file] != self.rows[file])
        wanted = some(
            self.definition[d].is_some() & (self.definition[d] == after.rows[file])
            for d in DesignDocument
        )
        return created.implies(after._is_used(file)) & built.implies(wanted)

    @invariant
    def an_index_is_in_a_file(self, file: Term[File]) -> Bool:
        """004: "All the views related to a single design document is stored in a single index file"."""
        return self.rows[file].is_some().implies(self.files.has(file))

    @accepts(ask)
    def what_is_built_can_be_queried(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> Bool:
        """004: a server "can hold many design documents": each is queried, whatever happens to the others."""
        built = (self.definition[d] == definition) & (self.rows[file] == definition)
        return built & self.reading.is_none()

    @accepts(define)
    def definitions_are_changed_to_any_other(
        self, d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        """004: "if a ddoc definition is changed", or "multiple design documents are defined with same definition": a client may
        write any, whatever this design document has said, and others say.
        """
        return self.definition[d] != definition

    @accepts(delete)
    def definitions_are_deleted_under_queries(self, d: Term[DesignDocument]) -> Bool:
        """004: "if a ddoc definition is changed while a query is under processing": or deleted, which can be done then."""
        return self.reading.is_some() & self.definition[d].is_some()

    @accepts(remove_file)
    def files_are_removed_while_others_are_read(self, file: Term[File]) -> Bool:
        """004: a changed definition has a "new index file": the older one is removed when no query reads just that, for there
        may always be one of another.
        """
        there = self.files.has(file) & (self.rows[file].is_some())
        used = some(
            self.definition[d].is_some() & (self.definition[d] == self.rows[file])
            for d in DesignDocument
        )
        return there & ~used & self.reading.is_some() & (self.reading != file)

    @accepts(build)
    def indexes_are_built_independently(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> Bool:
        """004: a "new index file can be created independently": of queries, of the indexes of other definitions that are still to
        be built, and of the files that are still to be removed.
        """
        named = self._names(file, d, definition) & self.groups.has(file)
        return (self.definition[d] == definition) & named

    @independent(define, delete, start_group, build, of=(reading, asked, ended))
    def nobody_waits_for_a_query(self) -> None:
        """004: a "new index file can be created independently without affecting the running query request": nor does the query
        put off that, or what is written of design documents.
        """

    @independent(define, delete, start_group, answer, of=(files, rows, groups))
    def queries_and_definitions_wait_for_no_index(self) -> None:
        """004, of a definition that is changed: "the query can operate on older file (different signature) and new index file can
        be created independently": neither of the two waits until that is built, nor does the new one until the older is gone.
        """

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """A server may stay as it is when no query is going on."""
        return self.reading.is_none()

    @liveness
    def definitions_are_indexed(
        self, d: Term[DesignDocument], definition: Term[Definition]
    ) -> LeadsTo:
        """004: a group server "owns all the operations of indexes belonging to a design document": it has rows, and runs, also
        after a restart, so that somebody goes on with them.
        """
        wanted = self.definition[d] == definition
        there = some(self.groups.has(file) & (self.rows[file] == definition) for file in each(File))
        return leads_to(wanted, there | (self.definition[d] != definition))

    @liveness
    def unused_files_are_removed(self, file: Term[File]) -> LeadsTo:
        """A file that no definition names goes, also if the node has crashed since it was used."""
        unused = self.files.has(file) & ~some(
            self.definition[d].is_some() & (self.definition[d] == self.rows[file])
            for d in DesignDocument
        )
        used = some(
            self.definition[d].is_some() & (self.definition[d] == self.rows[file])
            for d in DesignDocument
        )
        return leads_to(unused, used | ~self.files.has(file))

    @liveness
    def queries_end(self) -> LeadsTo:
        """Every query ends, also on the file of a definition that was changed."""
        return leads_to(self.reading.is_some(), self.reading.is_none())

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(delete, definition, because=CLIENTS),
        equivalent_drop(remove_file, "there is the file", because="what is gone stays gone"),
        equivalent_loss(crash, groups, asked, because="a crash that loses less"),
        equivalent_drop(
            ask,
            "the design document says so",
            because="it may have said so when the query was sent",
        ),
        equivalent_loss(ask, ended, because="how queries end is noted for the promise alone"),
        equivalent_replacement(
            ask, "ended becomes", because="how queries end is noted for the promise alone"
        ),
        equivalent_loss(answer, asked, because="the next query asks again"),
        equivalent_drop(answer, "a query reads a file", because="without one nothing ends"),
    )
