"""Whatever is shipped holds at its default scope, and nothing of it is vacuous without a reason."""

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode


@pytest.mark.thorough
def test_every_machine_holds_and_is_exercised() -> None:
    """What one definition promises is a part of the systems that have it: only all of them tell."""
    assert run_command_line(["check", "--all"]) == ExitCode.HOLDS
