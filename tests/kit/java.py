"""Programs in Java beside a test: they say what Java makes of texts."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def java_says(program: Path, texts: Sequence[bytes], *arguments: str) -> list[str]:
    """What a program says of each text, on a line; without Java the test is skipped."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java on this machine")
    given = struct.pack(">i", len(texts)) + b"".join(struct.pack(">i", len(text)) + text for text in texts)
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", str(program), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, timeout=120, check=True)
    return done.stdout.decode().splitlines()
