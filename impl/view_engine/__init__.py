"""The view engine: incremental map/reduce indexes in append-only files, over partitions that come and go.

    from stagewright.impl.view_engine import View, ViewEngine, doc, emit

See `docs/view-engine.md`.
"""

from stagewright.impl.view_engine.design.declaration import doc, emit, item, meta_id
from stagewright.impl.view_engine.design.design import View
from stagewright.impl.view_engine.engine import ViewEngine, ViewEngineError
from stagewright.impl.view_engine.query.local import Answer, QueryError, Row
from stagewright.impl.view_engine.query.params import Query

__all__ = [
    "Answer",
    "Query",
    "QueryError",
    "Row",
    "View",
    "ViewEngine",
    "ViewEngineError",
    "doc",
    "emit",
    "item",
    "meta_id",
]
