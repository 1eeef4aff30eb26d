"""Code that is compiled quickly first, and well as soon as it has run for so long that this pays.

Good code of a large machine takes LLVM seconds to make, ten times as long as quick code that is half as
fast: most searches are over before. Both compute the same, so nobody sees when one follows the other.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.checker.explicit.native.code.jit import Module, is_kept

_SECONDS_A_LINE = 60e-6  # to make good code
_AT_ONCE = 0.002  # seconds that are not worth a second compilation
_PAYS_AFTER = 3  # times as long as it takes to make, as it saves half of what is left to do


class Tiered:
    """A module's functions; ask for them again once `ran` says that there are better ones."""

    def __init__(self, text: str) -> None:
        self._text = text
        seconds = text.count("\n") * _SECONDS_A_LINE
        good = seconds <= _AT_ONCE or is_kept(text)
        self._module = Module(text, quick=not good)
        self._seconds_left = None if good else _PAYS_AFTER * seconds  # until good code pays

    def ran(self, seconds: float) -> bool:
        """Tell that the code ran for so long; says whether there is better code from now on."""
        if self._seconds_left is None:
            return False
        self._seconds_left -= seconds
        if self._seconds_left > 0:
            return False
        self._seconds_left = None
        self._module = Module(self._text)
        return True

    def address(self, name: str) -> int:
        """Where a function that is not local begins."""
        return self._module.address(name)

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """A function of so many 64-bit numbers or addresses that returns a 64-bit number."""
        return self._module.function(name, arguments)
