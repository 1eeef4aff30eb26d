"""Map and reduce functions in JavaScript, in V8, in batches, within limits of time and memory.

Functions must be pure, or the back index would lie: `Date` and `Math.random` are not there, all objects that
outlive a call are frozen, and a function that carries state of its own (a closure) is refused. Needs the
package `mini-racer`, which the extra `js` installs.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from stagewright.impl.view_engine.design.emitted import EmittedRows
from stagewright.impl.view_engine.design.mapping import MappingStoppedError, never_stopped
from stagewright.impl.view_engine.design.split_loop import split_emitted
from stagewright.impl.view_engine.documents.changes import Change, Changes

TIME_LIMIT = 5.0  # seconds for one batch, or one document where a batch takes longer
MEMORY_LIMIT = 256 << 20  # bytes of V8's heap

# What a function finds: no clock, no chance, nothing that lives outside of V8's heap or beyond one call.
_KEPT = (
    "Object Array String Number Boolean Symbol BigInt Math JSON RegExp Map Set WeakMap WeakSet Reflect Proxy Iterator "
    "Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError "
    "NaN Infinity undefined globalThis isNaN isFinite parseInt parseFloat "
    "encodeURI encodeURIComponent decodeURI decodeURIComponent escape unescape emit sum $run $reduce"
)
_SANDBOX = """
(function () {
  'use strict';
  var maps = [], reduces = [], rows = '', global = globalThis, evaluate = eval;
  function text(value) { var t = JSON.stringify(value); return t === undefined ? 'null' : t; }
  global.emit = function (key, value) { rows += text(key) + '\\x1f' + text(value) + '\\x1e'; };
  global.sum = function (values) {
    var s = 0;
    for (var i = 0; i < values.length; i++) s += values[i];
    return s;
  };
  global.$add = function (kind, source) {
    var f = evaluate('"use strict";(' + source + '\\n)');
    if (typeof f !== 'function') throw new Error('it is not a function');
    if (f.toString() !== source) throw new Error('it must be one function, without anything around it');
    (kind === 'map' ? maps : reduces).push(f);
  };
  global.$run = function (texts, ids) {
    return maps.map(function (map) {
      var all = '';
      for (var d = 0; d < texts.length; d++) {
        rows = '';
        try { map(JSON.parse(texts[d]), {id: ids[d]}); }
        catch (e) { rows = '\\x1b' + JSON.stringify(String(e)); }
        all += rows + '\\x1d';
      }
      return all;
    }).join('\\x1c');
  };
  global.$reduce = function (number, keys, values, again) {
    return text(reduces[number](keys, values, again));
  };
  global.$freeze = function () {
    var seen = new Set(), kept = new Set(KEPT.split(' '));
    var kinds = ['function', 'function*', 'async function', 'async function*'].map(function (kind) {
      return evaluate('(' + kind + '(){})');
    });
    var unnamed = kinds.concat([  // objects that no name leads to
      kinds[1](), kinds[2](), kinds[3](), [].values(), [].values().map(sum), ''[Symbol.iterator](),
      ''.matchAll(/a/g), new Map().values(), new Set().values(), Iterator.from({next: sum})
    ]);
    Reflect.ownKeys(global).forEach(function (n) {
      if (!kept.has(n) && !Reflect.deleteProperty(global, n)) global[n] = undefined;
    });
    delete Math.random;
    kinds.forEach(function (f) { delete Object.getPrototypeOf(f).constructor; });
    Object.getOwnPropertyNames(RegExp).forEach(function (n) {  // RegExp.$1 and such: of the last match
      if (Object.getOwnPropertyDescriptor(RegExp, n).get) delete RegExp[n];
    });
    (function freeze(o) {
      if ((typeof o !== 'object' && typeof o !== 'function') || o === null || seen.has(o)) return;
      seen.add(o);
      Reflect.ownKeys(o).forEach(function (name) {
        var p = Object.getOwnPropertyDescriptor(o, name);
        freeze(p.value); freeze(p.get); freeze(p.set);
      });
      freeze(Object.getPrototypeOf(o));
      Object.freeze(o);
    })([global, unnamed, maps, reduces]);
  };
})();
"""


class JavaScriptMissingError(ImportError):
    """The package that runs JavaScript is not installed."""

    def __init__(self) -> None:
        super().__init__("JavaScript views need mini-racer: pip install 'stagewright[js]'")


class JavaScriptError(ValueError):
    """A JavaScript function is none, or failed; the text says why."""


class JavaScriptFunctions:
    """The map and reduce functions of one design document, in one V8 context; one call at a time."""

    def __init__(
        self,
        maps: Sequence[str] = (),
        reduces: Sequence[str] = (),
        *,
        time_limit: float = TIME_LIMIT,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        """Raises JavaScriptError for a text that is not one function."""
        self._maps = [source.strip() for source in maps]
        self._reduces = [source.strip() for source in reduces]
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._context: Any = None
        self._used_up: list[Any] = []
        self._error_type: type[Exception] = Exception
        self._fresh_context()

    def map(
        self, changes: Sequence[Change], stopped: Callable[[], bool] = never_stopped
    ) -> list[tuple[EmittedRows, list[tuple[int, str]]]]:
        """For each map function the rows of all changes, and what failed: which change, and why.

        Raises MappingStoppedError.
        """
        columns = Changes.of(changes)
        present = [number for number, body in enumerate(columns.bodies) if body is not None]
        bodies = [body.decode("utf-8", "replace") for body in columns.bodies if body is not None]
        ids = [columns.ids[number].decode("utf-8", "replace") for number in present]
        with self._lock:
            texts = self._emitted(bodies, ids, stopped)
        return [_split(text, present, len(changes)) for text in texts]

    def reduce(self, number: int, keys: object, values: bytes, *, again: bool) -> bytes:
        """One reduction as JSON. Raises JavaScriptError."""
        call = f"$reduce({number}, {json.dumps(keys)}, {values.decode()}, {str(again).lower()})"
        with self._lock:
            try:
                return self._eval(call).encode()
            except self._error_type as error:
                raise JavaScriptError(self._reason(error)) from None

    def _emitted(
        self, texts: Sequence[str], ids: Sequence[str], stopped: Callable[[], bool]
    ) -> list[str]:
        """For each map function what it emitted of documents, as `split_emitted` reads it."""
        if not texts or not self._maps:
            return ["" for _ in self._maps]
        if stopped():  # each of many documents may take as long as the limit allows
            raise MappingStoppedError
        try:
            answer = self._eval(f"$run({json.dumps(texts)}, {json.dumps(ids)})")
        except (self._error_type, ValueError) as error:  # a limit was reached
            reason = self._reason(error)
            if len(texts) == 1:
                return [f"\x1b{json.dumps(reason)}\x1d" for _ in self._maps]
            half = len(texts) // 2
            halves = (
                self._emitted(texts[:half], ids[:half], stopped),
                self._emitted(texts[half:], ids[half:], stopped),
            )
            return [first + second for first, second in zip(*halves, strict=True)]
        return answer.split("\x1c")

    def _eval(self, code: str) -> str:
        limits = {"timeout_sec": self._time_limit, "max_memory": self._memory_limit}
        return str(self._context.eval(code, **limits))

    def _reason(self, error: Exception) -> str:
        """What happened; after memory ran out there is a new context."""
        name = type(error).__name__
        if "Timeout" in name:
            return f"the function ran longer than {self._time_limit:g} seconds"
        if "OOM" in name or "Memory" in name:
            self._fresh_context()
            return f"the function used more than {self._memory_limit >> 20} MB"
        lines = str(error).splitlines()
        return next((line for line in lines if "Error" in line), lines[0] if lines else name)

    def _fresh_context(self) -> None:
        try:
            racer: Any = importlib.import_module("py_mini_racer")
        except ImportError:
            raise JavaScriptMissingError from None
        if self._context is not None:
            self._used_up.append(self._context)  # V8 may still report to it: closed in the end
        self._error_type = racer.JSEvalException
        self._context = racer.MiniRacer()
        self._context.eval(_SANDBOX.replace("KEPT", json.dumps(_KEPT)))
        for kind, sources in (("map", self._maps), ("reduce", self._reduces)):
            for source in sources:
                try:
                    self._eval(f"$add({json.dumps(kind)}, {json.dumps(source)})")
                except self._error_type as error:
                    why = str(error).split("Error: ")[-1].splitlines()[0]
                    raise JavaScriptError(f"{source[:60]!r}: {why}") from None
        self._context.eval("$freeze()")

    def close(self) -> None:
        """End the context; the functions can't be called any more."""
        for context in (self._context, *self._used_up):
            if context is not None:
                with suppress(Exception):
                    context.eval("0")  # after it, nothing of an interrupted call is under way
                context.close()
        self._context = None
        self._used_up = []


def _split(
    text: str, present: Sequence[int], changes: int
) -> tuple[EmittedRows, list[tuple[int, str]]]:
    """The rows of all changes, of which only those present were mapped; and what failed."""
    data = text.encode("utf-8", "surrogatepass")
    keys, key_ends, values, value_ends, ends, failed = split_emitted(np.frombuffer(data, np.uint8))
    rows = np.zeros(changes, np.int64)
    rows[present] = np.diff(ends, prepend=0)
    errors = [(present[d], json.loads(data[start:stop])) for d, start, stop in failed.tolist()]
    return EmittedRows(keys, key_ends, values, value_ends, np.cumsum(rows)), errors
