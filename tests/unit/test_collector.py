"""Runs ``collector_alone.py`` in a process of its own: it searches all objects of its process again and again, and here
there are those of all tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ALONE = Path(__file__).with_name("collector_alone.py")


def test_it_alone(request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("seed")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--seed", str(seed), str(ALONE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
