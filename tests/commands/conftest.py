"""What the tests of the command line share: no CI system around them but the one that a test plays."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_ci_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """On GitHub the commands annotate by themselves; these tests must not depend on where they run."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


HOSTILE = '''\
from stagewright.spec import Actor, Bool, Machine, action, invariant, number, require

ODD = Actor("]]>\\x1b[31m 𐍈 \\ud800")


class Odd(Machine):
    """Counts ]]> & <b>."""

    count = number(0, 3)

    @action(by=ODD)
    def up(self) -> None:
        """One more ]]> \\x0b."""
        require(self.count < 3, "a, b: c%\\r\\n::error::x | `y` \\x00]]>")
        self.count = self.count + 1

    @invariant
    def stays(self) -> Bool:
        """Stays 😀 below | `x` <!-- 100% of: 3, ]]> \\ud800\\x07. More.

        ```
        ::error::forged
        """
        return self.count < 3
'''


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A machine whose texts end comments, sections and commands, in a directory that needs quoting."""
    directory = tmp_path / "od d,%ü"
    directory.mkdir()
    file = directory / "odd.py"
    file.write_text(HOSTILE, encoding="utf-8")
    return file
