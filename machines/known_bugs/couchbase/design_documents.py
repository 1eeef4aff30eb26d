"""Bugs of design documents: whose file is whose, and when one is removed."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import (
    Definition,
    DesignDocument,
    DesignDocuments,
    File,
)
from stagewright.spec import Bool, Term, every, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

DETAILS = "design document 004, details on index structures"


@known_bug("K1-name", DETAILS, breaks=DesignDocuments.equal_definitions_share_a_file)
class FilesAreNamedByDocument(DesignDocuments):
    """The signature was of the name of a design document, too: each had a file of its own."""

    def _names(
        self, file: Term[File], d: Term[DesignDocument], definition: Term[Definition]
    ) -> Bool:
        del definition
        return (file == File.main_da1eaf) == d.is_first


@known_bug("K1-query", DETAILS, breaks=DesignDocuments.a_query_reads_what_it_asked_for)
class FilesAreRemovedUnderQueries(DesignDocuments):
    """The file of a changed definition was removed at once, with a query that read it."""

    def _is_read(self, file: Term[File]) -> Bool:
        return super()._is_read(file) & self._is_used(file)


@known_bug("K1-shared", DETAILS, breaks=DesignDocuments.a_file_stays_while_it_is_needed)
class SharedFilesAreRemoved(DesignDocuments):
    """A design document was deleted with its file, although another one had the same definition."""

    def _is_used(self, file: Term[File]) -> Bool:
        return every(
            some(self._names(file, d, definition) for definition in self.definition[d])
            for d in DesignDocument
        )


@known_bug("K1-left", DETAILS, breaks=DesignDocuments.unused_files_are_removed)
class FilesAreLeftByACrash(DesignDocuments):
    """Files were removed with their group: after a crash nobody knew those that no definition names."""

    def _is_used(self, file: Term[File]) -> Bool:
        return super()._is_used(file) | ~self.groups.has(file)


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
