"""Headless Chromium, for tests that look at a page as a person would."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.patience import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def browse(page: Path, *flags: str, fragment: str = "") -> str:
    """What the browser makes of a page in a file: its elements after the script ran."""
    address = page.as_uri() + (f"#{fragment}" if fragment else "")
    return visit(address, page.parent / "profile", *flags)


def visit(address: str, profile: Path, *flags: str) -> str:
    """What the browser makes of what is served at an address; `profile` is a folder for itself."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here (Debian: apt-get install chromium)")
    process = subprocess.Popen(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            "--dump-dom",
            *flags,
            address,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its children hold the pipes, too
        process.communicate()
        raise
    assert process.returncode == 0, err
    return out
