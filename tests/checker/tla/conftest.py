"""TLC, in a directory of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checker.tla.tlc import Tlc, tlc_in


@pytest.fixture
def tlc(tmp_path: Path) -> Tlc:
    return tlc_in(tmp_path)
