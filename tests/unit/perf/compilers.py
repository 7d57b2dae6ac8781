"""Tests that compile the relay."""

from __future__ import annotations

import shutil

import pytest

needs_a_compiler = pytest.mark.skipif(
    shutil.which("cc") is None and shutil.which("gcc") is None, reason="there is no C compiler"
)
