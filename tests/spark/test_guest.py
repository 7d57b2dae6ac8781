"""A Spark that somebody else started: the format is found without ``register``, also with Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ROOT
from tests.spark.made_log import START_MS, MadeLog

PROGRAM = ROOT / "tests" / "spark" / "guest_program.py"


@pytest.mark.takes_turns("the sessions of others")
@pytest.mark.timeout(420)
@pytest.mark.parametrize("kind", [pytest.param("classic", marks=pytest.mark.slow), "connect"])
def test_a_session_of_somebody_else(tmp_path: Path, kind: str) -> None:
    """No variable tells it a Python for the workers."""
    log = MadeLog(tmp_path / "log")
    log.segment(START_MS)
    log.publish(START_MS + 1, 10)
    log.publish(START_MS + 2, 5, address="bills.eu")
    log.publish(START_MS + 3, 5000, address="many", body=b"0" * 1000)
    log.close()
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    venv = str(Path(sys.executable).parent)
    environment |= {"PYTHONPATH": str(ROOT), "PATH": os.pathsep.join([venv, environment["PATH"]])}
    command = [sys.executable, str(PROGRAM), kind, str(tmp_path)]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads((tmp_path / "said").read_text("utf-8"))
    said["broken pipes"] = done.stderr.count("BrokenPipe")
    assert ("connect" in said.pop("remote")) is (kind == "connect")
    assert said == {
        "found": 5012, "session": True, "registered": None, "pushes": "false", "counted": 5012,
        "views": {"orders": "artemis.orders", "many": "artemis.many", "bills.eu": "artemis.bills_eu"}, "selected": 10,
        "broken pipes": 0,
    }  # fmt: skip


def test_a_wheel_has_the_module_by_which_spark_finds_the_format(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    environment = {**os.environ, "ARTEMIS_PY_MYPYC": "0"}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=110, check=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    asked = "import sys, pkgutil; print([one.name for one in pkgutil.iter_modules(sys.argv[1:])])"
    answer = subprocess.run(
        [sys.executable, "-c", asked, str(tmp_path / "installed")], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "['artemis_py', 'pyspark_artemis']"
