"""The parameters of CouchDB's and Couchbase's `_view` requests, as a query.

Source: CouchDB's and Couchbase's public REST documentation of `/{db}/_design/{ddoc}/_view/{view}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stagewright.impl.view_engine.cluster.coordinator import OnError
from stagewright.impl.view_engine.query.params import Query

_JSON = {
    "key": "key",
    "keys": "keys",
    "startkey": "startkey",
    "start_key": "startkey",
    "endkey": "endkey",
    "end_key": "endkey",
}
_TEXTS = {
    "startkey_docid": "startkey_docid",
    "startkey_doc_id": "startkey_docid",
    "start_key_doc_id": "startkey_docid",
    "endkey_docid": "endkey_docid",
    "endkey_doc_id": "endkey_docid",
    "end_key_doc_id": "endkey_docid",
}
_FLAGS = ("descending", "group", "inclusive_end", "reduce")
_NUMBERS = ("skip", "limit", "group_level")
_UPDATE = {"true": "false", "false": "ok", "lazy": "update_after"}  # CouchDB 2's, as `stale`
_WITHOUT_EFFECT = {"connection_timeout", "full_set", "stable", "sorted", "conflicts"}


class ParameterError(ValueError):
    """A parameter that is not known or cannot be read; the text says which, and what it may be."""


@dataclass(frozen=True)
class ViewRequest:
    """The query, whether each row comes with its document, and what a node that fails means."""

    query: Query
    include_docs: bool = False
    on_error: OnError = "continue"


def read_request(
    pairs: Iterable[tuple[str, str]], body: Mapping[str, Any] | None = None
) -> ViewRequest:
    """From the query string, and the JSON object of a POST, whose members win.

    Raises ParameterError. Parameters that are known and have no effect are left out.
    """
    given: dict[str, Any] = {}
    for name, text in pairs:
        found = _read(name, text)
        if found is not None:
            given[found[0]] = found[1]
    for name, value in (body or {}).items():
        found = _read(
            name, value if isinstance(value, str) and name in _TEXTS else json.dumps(value)
        )
        if found is not None:
            given[found[0]] = found[1]
    include_docs = bool(given.pop("include_docs", False))
    on_error: OnError = given.pop("on_error", "continue")
    if given.get("keys") is not None and not isinstance(given["keys"], list):
        raise ParameterError("`keys` is a JSON array")
    if include_docs and given.get("reduce"):
        raise ParameterError("`include_docs` is invalid for reduce")
    try:
        return ViewRequest(Query(**given), include_docs, on_error)
    except ValueError as error:
        raise ParameterError(str(error)) from None


def _read(name: str, text: str) -> tuple[str, Any] | None:
    """The name and value of one of the query's parameters; None for one without effect."""
    if name in _JSON:
        return _JSON[name], _json(name, text)
    if name in _TEXTS:
        return _TEXTS[name], text
    if name in _FLAGS or name == "include_docs":
        if text not in ("true", "false"):
            raise ParameterError(f"`{name}` is true or false, not {text}")
        return name, text == "true"
    if name in _NUMBERS:
        if not text.isascii() or not text.isdigit():
            raise ParameterError(f"`{name}` is a number from 0, not {text}")
        return name, int(text)
    if name in ("stale", "update"):
        value = text.strip('"') if name == "stale" else _UPDATE.get(text.strip('"'), "")
        if value not in ("ok", "update_after", "false"):
            known = "ok, update_after or false" if name == "stale" else "true, false or lazy"
            raise ParameterError(f"`{name}` is {known}, not {text}")
        return "stale", value
    if name == "on_error":
        if text.strip('"') not in ("continue", "stop"):
            raise ParameterError(f"`on_error` is continue or stop, not {text}")
        return name, text.strip('"')
    if name in _WITHOUT_EFFECT:
        return None
    raise ParameterError(f"`{name}` is not known")


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ParameterError(f"`{name}` is JSON (strings have quotes), not {text}") from None
