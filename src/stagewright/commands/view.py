"""`stagewright view`: incremental map/reduce indexes over documents in a folder."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from stagewright.commands.console.action_parser import ActionParser
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.serving import until_interrupted
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.view_engine import Query, ViewEngine
    from stagewright.impl.view_engine.watching import IndexState

_BATCH = 10_000  # documents a transaction
_EXAMPLES = """examples:
  stagewright view load shop orders.jsonl --id order_no
  stagewright view define shop sales total "emit([doc.country, doc.city], doc.price)" --reduce _sum
  stagewright view query shop sales total --group-level 1
  stagewright view query shop sales total --no-reduce --startkey '["NO"]' --endkey '["NO", {}]' --limit 5
  stagewright view list shop
  stagewright view serve shop --port 5984
  tail -f orders.jsonl | stagewright view serve shop --load - --id order_no
  stagewright view watch shop
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `view`: one action, each with its own."""
    parser.description = "Keep documents in a folder, define views over them, and query the views."
    parser.epilog = f"{_EXAMPLES}\n{parser.epilog or ''}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=ActionParser
    )

    load = actions.add_parser("load", help="write documents from JSON lines")
    load.add_argument("folder", type=Path, help="created if it does not exist")
    load.add_argument("file", type=Path, help="one JSON object per line; - is standard input")
    load.add_argument(
        "--id", default="id", help="the member that is the document's id (default: id)"
    )
    load.add_argument(
        "--partitions", type=int, default=64, help="for a new folder: 1 to 1024 (default: 64)"
    )

    define = actions.add_parser("define", help="add a view to a design document, or change it")
    define.add_argument("folder", type=Path)
    define.add_argument("design", help="the design document")
    define.add_argument("view", help="the view")
    define.add_argument("map", help="emit(…), a JavaScript function, or @FILE with either")
    define.add_argument("--reduce", help="_count, _sum, _stats, a JavaScript function, or @FILE")

    query = actions.add_parser("query", help="print rows of a view, or reductions, as JSON lines")
    query.add_argument("folder", type=Path)
    query.add_argument("design")
    query.add_argument("view")
    for name in ("key", "startkey", "endkey", "keys"):
        query.add_argument(f"--{name}", metavar="JSON", type=_json)
    query.add_argument("--exclusive-end", action="store_true", help="leave the endkey out")
    query.add_argument("--descending", action="store_true")
    query.add_argument("--skip", type=int, default=0, metavar="N")
    query.add_argument("--limit", type=int, metavar="N")
    query.add_argument(
        "--no-reduce", action="store_true", help="print rows even if the view has a reduce"
    )
    query.add_argument("--group", action="store_true", help="one row for each key")
    query.add_argument(
        "--group-level",
        type=int,
        default=0,
        metavar="N",
        help="group by the first N elements of keys",
    )
    query.add_argument("--stale", choices=["ok", "update_after", "false"], default="false")

    _configure_upkeep(actions)


def _configure_upkeep(actions: Any) -> None:
    """What serves, watches, and removes."""
    serve = actions.add_parser("serve", help="answer HTTP requests as CouchDB's _view does")
    serve.add_argument("folder", type=Path)
    serve.add_argument("--port", type=int, default=5984, help="0 takes a free one (default: 5984)")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, this machine only)",
    )
    serve.add_argument("--database", help="its name in URLs (default: the folder's name)")

    serve.add_argument(
        "--load",
        type=Path,
        metavar="FILE",
        help="also write documents while serving, as `load` does",
    )
    serve.add_argument(
        "--id", default="id", help="the member that is the document's id (default: id)"
    )

    watch = actions.add_parser("watch", help="print the state of each index whenever it changes")
    watch.add_argument("folder", type=Path, help="another process may have it open")
    watch.add_argument(
        "--every", type=float, default=1.0, metavar="SECONDS", help="how often to look (default: 1)"
    )
    watch.add_argument("--once", action="store_true", help="print the present state, and exit")
    watch.add_argument("--json", action="store_true", help="print JSON lines")

    delete = actions.add_parser("delete", help="delete documents")
    delete.add_argument("folder", type=Path)
    delete.add_argument("ids", nargs="+", metavar="ID")

    listed = actions.add_parser("list", help="print the design documents and how current they are")
    listed.add_argument("folder", type=Path)
    compact = actions.add_parser("compact", help="rewrite an index without what is no longer used")
    compact.add_argument("folder", type=Path)
    compact.add_argument("design")
    drop = actions.add_parser("drop", help="delete a design document and its index")
    drop.add_argument("folder", type=Path)
    drop.add_argument("design")


def execute(args: argparse.Namespace) -> int:
    """Do one action."""
    from stagewright.impl.view_engine import ViewEngine, ViewEngineError
    from stagewright.impl.view_engine.design.javascript import JavaScriptMissingError
    from stagewright.impl.view_engine.group.current import IndexNotReadyError
    from stagewright.impl.view_engine.group.triggers import Triggers
    from stagewright.spec.errors import InputError

    actions = {
        "load": _load,
        "define": _define,
        "query": _query,
        "list": _list,
        "compact": _compact,
        "drop": _drop,
        "serve": _serve,
        "delete": _delete,
    }
    try:
        if args.action == "watch":
            _watch(args)
            return ExitCode.HOLDS
        if args.action != "load" and not (args.folder / "documents.sqlite").exists():
            raise ViewEngineError(
                f"{args.folder} holds no documents: `stagewright view load` some first"
            )
        triggers = Triggers() if args.action == "serve" else None
        with ViewEngine(args.folder, partitions=_partitions(args), triggers=triggers) as engine:
            actions[args.action](engine, args)
    except OSError as error:
        raise InputError(f"{error.filename or args.folder}: {error.strerror}") from error
    except (ValueError, JavaScriptMissingError, IndexNotReadyError) as error:
        raise InputError(str(error)) from error
    return ExitCode.HOLDS


def _partitions(args: argparse.Namespace) -> int | None:
    """Only a new folder asks how many; an existing one knows."""
    new = args.action == "load" and not (args.folder / "documents.sqlite").exists()
    return args.partitions if new else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON (strings have quotes)") from None


def _load(engine: ViewEngine, args: argparse.Namespace) -> None:
    loaded = 0
    batch: list[tuple[str, object]] = []
    with sys.stdin if str(args.file) == "-" else args.file.open(encoding="utf-8") as lines:
        try:
            for document in _documents(lines, args.id, args.file):
                batch.append(document)
                if len(batch) == _BATCH:
                    loaded += engine.put_many(batch)
                    batch = []
        except UnicodeDecodeError:
            raise ValueError(f"{args.file} is not UTF-8 text with a JSON object a line") from None
    loaded += engine.put_many(batch)
    print(counted(loaded, "document"))


def _documents(lines: Iterator[str], member: str, name: Path) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        yield _document(line, number, member, name)


def _document(line: str, number: int, member: str, name: Path) -> tuple[str, object]:
    try:
        document = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{name}, line {number}: {error}") from None
    if not isinstance(document, dict) or member not in document:
        raise ValueError(f"{name}, line {number}: no object with a member {member!r} (see --id)")
    return str(document[member]), document


def _define(engine: ViewEngine, args: argparse.Namespace) -> None:
    from stagewright.impl.view_engine import View

    views = engine.views_of(args.design)
    reduce = None if args.reduce is None else _text(args.reduce)
    views[args.view] = View.of_text(_text(args.map), reduce)
    engine.define(args.design, views)
    print(f"{args.design}: {', '.join(sorted(views))}")


def _text(given: str) -> str:
    return Path(given[1:]).read_text("utf-8") if given.startswith("@") else given


def _query(engine: ViewEngine, args: argparse.Namespace) -> None:
    for row in engine.stream(args.design, args.view, _asked(args)):
        shown: dict[str, object] = {} if row.id is None else {"id": row.id}
        print(json.dumps({**shown, "key": row.key, "value": row.value}, ensure_ascii=False))
    for error in engine.map_errors(args.design):
        print(f"stagewright view: no rows of {error.doc_id}: {error.message}", file=sys.stderr)


def _asked(args: argparse.Namespace) -> Query:
    from stagewright.impl.view_engine import Query

    keys = {name: getattr(args, name) for name in ("key", "startkey", "endkey")}
    return Query(
        stale=args.stale,
        **{name: key for name, key in keys.items() if key is not None},
        keys=args.keys,
        inclusive_end=not args.exclusive_end,
        descending=args.descending,
        skip=args.skip,
        limit=args.limit,
        reduce=False if args.no_reduce else None,
        group=args.group,
        group_level=args.group_level,
    )


def _serve(engine: ViewEngine, args: argparse.Namespace) -> None:
    from stagewright.impl.view_engine.http.server import ViewServer

    name = args.database or args.folder.resolve().name
    server = ViewServer(engine, database=name, host=args.host, port=args.port)
    print(f"{server.url}/_design/…/_view/… (interrupt to end)", flush=True)
    with server, until_interrupted():
        if args.load is not None:
            loading = partial(_keep_loading, engine, args.load, args.id)
            threading.Thread(target=loading, daemon=True).start()
        threading.Event().wait()


def _keep_loading(engine: ViewEngine, path: Path, member: str) -> None:
    """Write documents as their lines come, until the end of the file."""
    waiting: Queue[str | None] = Queue(_BATCH)

    def read() -> None:
        with sys.stdin if str(path) == "-" else path.open(encoding="utf-8") as lines:
            for line in lines:
                waiting.put(line)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    numbers, loaded = count(1), 0
    for lines in _as_they_come(waiting):
        documents: list[tuple[str, object]] = []
        for line, number in zip(lines, numbers, strict=False):
            try:
                documents += [_document(line, number, member, path)] if line.strip() else []
            except ValueError as error:  # it is said and left out: others wait for nothing
                print(f"stagewright view: {error}", file=sys.stderr, flush=True)
        loaded += engine.put_many(documents)
    print(counted(loaded, "document"), flush=True)


def _as_they_come(waiting: Queue[str | None]) -> Iterator[list[str]]:
    """The lines that are there, whenever there are some."""
    ended = False
    while not ended:
        lines: list[str] = []
        while not ended and len(lines) < _BATCH and (not lines or not waiting.empty()):
            line = waiting.get()
            ended = line is None
            lines += [] if line is None else [line]
        yield lines


def _delete(engine: ViewEngine, args: argparse.Namespace) -> None:
    there = [doc_id for doc_id in dict.fromkeys(args.ids) if engine.get(doc_id) is not None]
    engine.delete(*there)
    print(f"{counted(len(there), 'document')} deleted")


def _watch(args: argparse.Namespace) -> None:
    from stagewright.impl.view_engine.watching import index_states

    shown: dict[tuple[str, ...], IndexState] = {}
    with until_interrupted():
        while True:
            for state in index_states(args.folder):
                if shown.get(state.designs) != state:
                    _print_state(state, as_json=args.json)
                shown[state.designs] = state
            if args.once:
                return
            time.sleep(args.every)


def _print_state(state: IndexState, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"time": time.time(), **asdict(state)}), flush=True)
    else:
        print(f"{time.strftime('%H:%M:%S')}  {state.text}", flush=True)


def _list(engine: ViewEngine, _args: argparse.Namespace) -> None:
    for name, views in engine.designs().items():
        pending = engine.group(name).pending_changes()
        state = f"{counted(pending, 'change')} not indexed yet" if pending else "current"
        print(f"{name}: {', '.join(views)} ({state})")


def _compact(engine: ViewEngine, args: argparse.Namespace) -> None:
    done = engine.compact(args.design)
    print(f"{args.design}: {done.before:,} bytes, now {done.after:,}")


def _drop(engine: ViewEngine, args: argparse.Namespace) -> None:
    engine.drop(args.design)
    print(f"{args.design} is deleted")
