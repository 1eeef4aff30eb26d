"""How Sphinx builds the site: from the repository's root, so that links to examples and sources lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

project = "Stagewright"
author = "the Stagewright contributors"
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/notebook.ipynb",
    "examples/**.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "src", "tests", "build", "reports"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"  # its outputs are those of today
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "literal"  # a docstring's `name` is code
suppress_warnings = ["toc.not_included"]  # machines and examples are linked from their tables

html_theme = "furo"
html_title = "Stagewright"
html_show_copyright = False
html_extra_path = ["site"]  # the root's page, which leads to docs/index
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_search_scorer = str(ROOT / "docs" / "search_order.js")

_MADE_BY_USERS = {"Actor", "Entity", "Profile", "Scope"}
_INDENTED = re.compile(r"^(\S.*)\n\n(?=    \S)", re.MULTILINE)
_CODE = re.compile(r"``?([^`]+)``?(\w?)")


def without_internals(
    _app: Any, _kind: str, name: str, _member: Any, skip: bool, _options: Any
) -> bool:
    """Methods whose names end with an underscore are between the language and its tracing."""
    return skip or (name.endswith("_") and not name.startswith("_"))


def without_constructors(
    _app: Any, kind: str, name: str, _object: Any, _options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """Nobody makes what the language makes of an expression or a declaration: their arguments are left out."""
    word = name.rpartition(".")[2]
    made = kind == "class" and name.startswith("stagewright.spec.") and word not in _MADE_BY_USERS
    return ("" if made else signature), returns


def from_markdown(*event: Any) -> None:
    """Docstrings are Markdown: an indented block is code, and `State`s is code with an ending."""
    lines: list[str] = event[-1]
    text = _INDENTED.sub(r"\1\n\n::\n\n", "\n".join(lines))
    lines[:] = _CODE.sub(_literal, text).split("\n")


def _literal(code: re.Match[str]) -> str:
    return f"``{code[1]}``" + (f"\\ {code[2]}" if code[2] else "")


def setup(app: Sphinx) -> None:
    """Languages of code blocks that Pygments does not know are shown as text; pages have SVG beside Mermaid."""
    app.connect("autodoc-process-docstring", from_markdown, priority=400)
    app.connect("autodoc-process-signature", without_constructors)
    app.connect("autodoc-skip-member", without_internals)
    for name in ("mermaid", "tla"):
        app.add_lexer(name, TextLexer)
