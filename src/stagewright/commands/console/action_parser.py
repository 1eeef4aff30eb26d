"""The parser of one action of a command that has several."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class ActionParser(argparse.ArgumentParser):
    """Refuses by itself what it does not know, so that the usage that is printed is the action's, not the command's."""

    def parse_known_args(  # type: ignore[override]  # its overloads are about namespaces of other kinds
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """What was given; ends the program if there is more than this action has."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown
