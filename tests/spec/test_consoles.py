"""A machine that stands in no file: in a console, or in a cell of a notebook."""

import subprocess
import sys

DEFINED = """
import stagewright.spec as sw
from stagewright.checker.check import check
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of

class Tank(sw.Machine):
    level = sw.number(0, 3)

    @sw.action
    def fill(self) -> None:
        sw.require(self.level < 3, "there is room")
        self.level = self.level + 1

    @sw.invariant
    def never_full(self) -> sw.Bool:
        return self.level < 3

tank = define(Tank)
for verdict in check(tank, scope_of(tank), deadlock=False).verdicts:
    print(verdict.name, verdict.outcome.name, len(verdict.run.steps) if verdict.run else 0)
"""


def test_a_machine_that_is_typed_into_python_is_checked() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-"], input=DEFINED, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[0] == "never_full VIOLATED 3", done.stderr
