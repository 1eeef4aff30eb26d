"""What a file of `stagewright test --export` runs: walks as text, the machine and the adapter by name."""

from __future__ import annotations

from stagewright.checker.conformance.script import Script
from stagewright.commands.conformance.adapter_loading import adapter_factory, relative_to
from stagewright.commands.console.machine_flags import machine_from

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here


class ExportedTests:
    """The walks of a definition, against an implementation.

    Args:
        file: the test file itself, where paths in `machine` and `adapter` start.
        machine: `lease.py`, `lease.py:Lease`, `package.module:Lease` or a shipped name.
        adapter: `adapter.py:Adapter` or `package.module:Adapter`.
        fingerprint: that of the definition by which the walks were made.
        profile: of the definition; empty: the newest.
        sizes: how many members each entity has.
        budgets: how often each budget may be spent; None: without bound.

    Raises:
        StagewrightError: a name leads nowhere, or the definition has changed since.
    """

    def __init__(
        self,
        file: str,
        *,
        machine: str,
        adapter: str,
        fingerprint: str,
        profile: str = "",
        sizes: dict[str, int],
        budgets: dict[str, int | None],
    ) -> None:
        definition = machine_from(relative_to(file, machine), profile)
        self._script = Script(definition, fingerprint=fingerprint, sizes=sizes, budgets=budgets)
        self._factory = adapter_factory(relative_to(file, adapter), definition, self._script.scope)

    def run(self, start: int, moves: str) -> None:
        """Drive the implementation along a walk, from the initial state of that number.

        Raises:
            ConformanceError: it differs from its definition.
        """
        self._script.run(self._factory, start, moves)
