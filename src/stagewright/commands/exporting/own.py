"""The exporters that come with the tool. Each imports what it needs when it writes."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from stagewright.checker.exporter import Exporter, MachineToWrite, RunToWrite


def _diagram(asked: MachineToWrite) -> str:
    from stagewright.commands.pages.reached_diagram import reached_diagram
    from stagewright.commands.pages.state_diagram import render_diagram

    scope = asked.scope if asked.scope_was_given else None
    return render_diagram(
        reached_diagram(asked.definition, asked.variable, scope, progress=sys.stderr)
    )


def _module(asked: MachineToWrite) -> Mapping[str, str]:
    from stagewright.checker.tla import tla_module

    written = tla_module(asked.definition, asked.scope)
    return {f"{written.name}.tla": written.module, f"{written.name}.cfg": written.config}


def _sequence_diagram(run: RunToWrite) -> str:
    from stagewright.checker.counterexample.mermaid import render_mermaid

    return render_mermaid(run.definition, run.verdict, run.scope)


def _itf(run: RunToWrite) -> str:
    from stagewright.checker.counterexample.files import itf_text

    return itf_text(run.definition, run.verdict, run.scope)


def _page(run: RunToWrite) -> str:
    from stagewright.checker.counterexample.page import render_page

    return render_page(run.definition, run.verdict, run.scope)


def _text(run: RunToWrite) -> str:
    from stagewright.checker.counterexample.files import plain_text

    return plain_text(run.definition, run.verdict, run.scope)


EXPORTERS = (
    Exporter(
        "mermaid",
        "a state diagram of one enum variable, or of a run a sequence diagram",
        _diagram,
        _sequence_diagram,
        takes_scope=True,
        takes_variable=True,
    ),
    Exporter("tla", "a module and its configuration for TLC", _module, takes_scope=True),
    Exporter("itf", "a run as Apalache and Quint have it", run=_itf),
    Exporter("html", "a run as a page with a timeline", run=_page),
    Exporter("text", "a run as plain text", run=_text),
)
