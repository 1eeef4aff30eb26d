"""Reduce functions of users: Python callables `(keys, values, rereduce)` and JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stagewright.impl.view_engine.design.javascript import JavaScriptError, JavaScriptFunctions
from stagewright.impl.view_engine.design.json_text import json_text
from stagewright.impl.view_engine.tree.reducers import LeafRows, ReduceError

ReduceFunction = Callable[[Any, Any, bool], object]


@dataclass(frozen=True)
class PythonReducer:
    """Calls `function(keys, values, rereduce)`; keys are (key, document id) pairs, or None in a rereduce."""

    function: ReduceFunction

    @property
    def name(self) -> str:
        return self.function.__name__

    def reduce(self, leaf: LeafRows) -> bytes:
        rows = leaf.rows()
        keys = [(json.loads(row.key), row.doc_id.decode("utf-8", "replace")) for row in rows]
        return self._call(keys, [json.loads(row.value) for row in rows], again=False)

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        return self._call(None, [json.loads(value) for value in values], again=True)

    def _call(self, keys: object, values: list[object], *, again: bool) -> bytes:
        try:
            return json_text(self.function(keys, values, again))
        except Exception as error:
            raise ReduceError(
                self.name, f"{type(error).__name__}: {error}", _first(keys)
            ) from error


@dataclass(frozen=True)
class JavaScriptReducer:
    """Calls function `number` of a context."""

    functions: JavaScriptFunctions
    number: int

    @property
    def name(self) -> str:
        return "JavaScript reduce"

    def reduce(self, leaf: LeafRows) -> bytes:
        rows = leaf.rows()
        keys = [[json.loads(row.key), row.doc_id.decode("utf-8", "replace")] for row in rows]
        return self._call(keys, [row.value for row in rows], again=False)

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        return self._call(None, values, again=True)

    def _call(self, keys: object, values: Sequence[bytes], *, again: bool) -> bytes:
        try:
            text = b"[" + b",".join(values) + b"]"
            return self.functions.reduce(self.number, keys, text, again=again)
        except JavaScriptError as error:
            raise ReduceError(self.name, str(error), _first(keys)) from error


def _first(keys: object) -> str | None:
    """The key of the first row: where in the view the function failed."""
    return json.dumps(keys[0][0]) if isinstance(keys, list) and keys else None
