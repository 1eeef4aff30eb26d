"""Design documents: related views, which share one index file; equal definitions share one signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagewright.impl.view_engine.design.declaration import Declared
from stagewright.impl.view_engine.design.declared import DeclaredMapper
from stagewright.impl.view_engine.design.declared_text import declared_text, parse_declared
from stagewright.impl.view_engine.design.emitted import EmittedRows
from stagewright.impl.view_engine.design.javascript import JavaScriptFunctions
from stagewright.impl.view_engine.design.mapping import (
    MapError,
    MapFunction,
    MappedBatch,
    Mapper,
    PythonMapper,
    function_identity,
    never_stopped,
)
from stagewright.impl.view_engine.design.reducing import (
    JavaScriptReducer,
    PythonReducer,
    ReduceFunction,
)
from stagewright.impl.view_engine.documents.changes import Change, Changes
from stagewright.impl.view_engine.tree.nodes import Shape
from stagewright.impl.view_engine.tree.reducers import BUILTIN, Reducer

MOST_TREES = 255  # numbers of views have 8 bits in the file


@dataclass(frozen=True)
class View:
    """A map function and, if it has one, a reduce function.

    `map`: what `emit(…)` declares, a Python function `(doc, meta) → (key, value) pairs`, or the text of a
    JavaScript function `function (doc, meta) { emit(key, value); }`. `reduce`: "_count", "_sum", "_stats",
    a Python function `(keys, values, rereduce)`, or the text of a JavaScript function. All must be pure.
    """

    map: Declared | MapFunction | str
    reduce: ReduceFunction | str | None = None

    def definition(self) -> dict[str, object]:
        """What makes this view the one it is, as JSON."""
        return {"map": _map_definition(self.map), "reduce": _reduce_definition(self.reduce)}

    @classmethod
    def of_text(cls, map_: str, reduce: str | None = None) -> View:
        """From what a file says: a JavaScript function or `emit(…)`, and the name or text of a reduce."""
        return cls(parse_declared(map_) if map_.strip().startswith("emit(") else map_, reduce)

    def texts(self) -> dict[str, str]:
        """As a file says it: `of_text` reads it again, unless a function is Python."""
        shown = {"map": self.map, "reduce": self.reduce}
        return {
            name: part if isinstance(part, str) else _text(part)
            for name, part in shown.items()
            if part is not None
        }

    @property
    def storable(self) -> bool:
        """Whether the definition says all, so that it can be read from a file: not so for Python functions."""
        return not (_is_function(self.map) or _is_function(self.reduce))

    @classmethod
    def of_definition(cls, definition: Mapping[str, Any]) -> View:
        """The inverse of `definition`, for storable views."""
        map_, reduce = definition["map"], definition["reduce"]
        function = (
            map_["javascript"] if "javascript" in map_ else Declared.of_definition(map_["declared"])
        )
        return cls(
            function, reduce if reduce is None else reduce.get("builtin") or reduce["javascript"]
        )


def _text(part: Declared | MapFunction | ReduceFunction) -> str:
    if isinstance(part, Declared):
        return declared_text(part)
    return f"(a Python function) {getattr(part, '__name__', '')}".strip()


def _is_function(part: object) -> bool:
    return callable(part) and not isinstance(part, Declared)


def _map_definition(map_: Declared | MapFunction | str) -> dict[str, object]:
    if isinstance(map_, Declared):
        return {"declared": map_.definition()}
    if isinstance(map_, str):
        return {"javascript": map_.strip()}
    return {"python": function_identity(map_)}


def _reduce_definition(reduce: ReduceFunction | str | None) -> dict[str, object] | None:
    if reduce is None:
        return None
    if isinstance(reduce, str):
        kind = "builtin" if reduce in BUILTIN else "javascript"
        if kind == "javascript" and reduce.startswith("_"):
            raise ValueError(f"{reduce} is no builtin reduce; there are {', '.join(BUILTIN)}")
        return {kind: reduce.strip()}
    return {"python": function_identity(reduce)}


@dataclass(frozen=True)
class ViewPlace:
    """Where a view is in the index: the number of its tree, and of its value among the reductions."""

    tree: int
    reducer: int | None


class DesignDocument:
    """A name and its views. Views with equal map functions share a tree."""

    def __init__(self, name: str, views: Mapping[str, View]) -> None:
        if not views:
            raise ValueError(f"the design document {name!r} has no views")
        self.name = name
        self.views = dict(sorted(views.items()))
        self.definition = {view_name: view.definition() for view_name, view in self.views.items()}
        text = json.dumps(self.definition, sort_keys=True)
        self.signature = hashlib.md5(text.encode(), usedforsecurity=False).digest()
        self.storable = all(view.storable for view in self.views.values())
        self.places: dict[str, ViewPlace] = {}
        self._maps: list[Declared | MapFunction | str] = []
        self._reduces: list[list[ReduceFunction | str]] = []
        self._place_views()
        if len(self._maps) > MOST_TREES:
            raise ValueError(f"{len(self._maps)} map functions: a design document has at most 255")
        sources = [map_ for map_ in self._maps if isinstance(map_, str)]
        reduces = [
            reduce
            for of_tree in self._reduces
            for reduce in of_tree
            if isinstance(reduce, str) and reduce not in BUILTIN
        ]
        self._javascript = JavaScriptFunctions(sources, reduces) if sources or reduces else None
        self._reduce_numbers = {source: number for number, source in enumerate(reduces)}
        self.shapes = [
            Shape(True, tuple(self._reducer(reduce) for reduce in of_tree))
            for of_tree in self._reduces
        ]
        self._mappers = [self._mapper(map_) for map_ in self._maps]

    def _place_views(self) -> None:
        trees: dict[str, int] = {}
        for name, view in self.views.items():
            identity = json.dumps(self.definition[name]["map"], sort_keys=True)
            tree = trees.setdefault(identity, len(trees))
            if tree == len(self._maps):
                self._maps.append(view.map)
                self._reduces.append([])
            number = None
            if view.reduce is not None:
                if view.reduce not in self._reduces[tree]:
                    self._reduces[tree].append(view.reduce)
                number = self._reduces[tree].index(view.reduce)
            self.places[name] = ViewPlace(tree, number)

    def _reducer(self, reduce: ReduceFunction | str) -> Reducer:
        if not isinstance(reduce, str):
            return PythonReducer(reduce)
        if reduce in BUILTIN:
            return BUILTIN[reduce]
        assert self._javascript is not None
        return JavaScriptReducer(self._javascript, self._reduce_numbers[reduce])

    def _mapper(self, map_: Declared | MapFunction | str) -> Mapper | None:
        if isinstance(map_, str):
            return None  # all of them run together
        return DeclaredMapper(map_) if isinstance(map_, Declared) else PythonMapper(map_)

    def close(self) -> None:
        """End what runs JavaScript."""
        if self._javascript is not None:
            self._javascript.close()

    def map(
        self, changes: Sequence[Change], stopped: Callable[[], bool] = never_stopped
    ) -> tuple[MappedBatch, list[MapError]]:
        """Run all map functions over a batch; what failed has no rows and is named.

        Raises MappingStoppedError, once the JavaScript that runs ends or reaches its limit, where `stopped` says so.
        """
        changes = Changes.of(changes)
        errors: list[MapError] = []
        columns: list[EmittedRows] = []
        of_javascript = iter(
            () if self._javascript is None else self._javascript.map(changes, stopped)
        )
        for number, mapper in enumerate(self._mappers):
            rows, failed = next(of_javascript) if mapper is None else mapper.run(changes)
            errors += (_error(changes[at], number, why) for at, why in failed)
            columns.append(rows)
        return MappedBatch(changes, columns), errors


def _error(change: Change, number: int, why: str) -> MapError:
    return MapError(change.doc_id.decode("utf-8", "replace"), number, why)
