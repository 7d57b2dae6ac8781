"""Which Python ``tools/venv.sh`` makes the environment with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.sources import ROOT

STAND_IN = """#!/bin/sh
case "$1 $2" in
"-c "*) echo {took_us} ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"--version ") echo "Python of {name}" ;;
esac
"""
BROKEN = "#!/bin/sh\nexit 127\n"


def made_with(folder: Path, interpreters: Mapping[str, int | None], **environment: str) -> str:
    """What the script prints where these are on the path: how many microseconds each takes, or None where it does not
    run, as a shim of a version manager.
    """
    for path, took_us in interpreters.items():
        program = folder / path
        program.parent.mkdir(exist_ok=True)
        program.write_text(BROKEN if took_us is None else STAND_IN.format(took_us=took_us, name=path))
        program.chmod(0o755)
    folders = [str(folder / name) for name in ("first", "second")]
    path = os.pathsep.join([*folders, "/usr/bin", "/bin"])
    script = ["sh", str(ROOT / "tools" / "venv.sh"), str(folder / "new")]
    done = subprocess.run(
        script, env={"PATH": path} | environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("interpreters", "taken"),
    [
        ({"first/python3.11": 30, "second/python3.11": 20}, "second/python3.11"),
        ({"first/python3.13": 20, "second/python3.12": 19}, "first/python3.13"),
        ({"first/python3.13": 20, "second/python3.12": 17}, "second/python3.12"),
        ({"first/python3.13": None, "second/python3.11": 20}, "second/python3.11"),
    ],
    ids=["the faster of one version", "the newer of two alike", "the older, if it is faster", "one that runs"],
)
def test_the_fastest_on_the_path(tmp_path: Path, interpreters: Mapping[str, int | None], taken: str) -> None:
    assert f"with Python of {taken}." in made_with(tmp_path, interpreters)


def test_the_one_that_is_named(tmp_path: Path) -> None:
    named = str(tmp_path / "first" / "python3.11")
    said = made_with(tmp_path, {"first/python3.11": 30, "second/python3.11": 20}, PYTHON=named)
    assert "with Python of first/python3.11." in said


def test_one_that_is_named_and_does_not_run(tmp_path: Path) -> None:
    said = made_with(tmp_path, {"second/python3.11": 20}, PYTHON="python3.99")
    assert "No Python 3.11 or later found as 'python3.99'." in said
    assert not (tmp_path / "new").exists()
