"""All processes of a test run draw from one seed: each would otherwise collect other tests, and nothing would run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFTEST = """
def pytest_collection_finish(session):
    worker = getattr(session.config, "workerinput", {"workerid": "first"})["workerid"]
    with open(worker, "w") as note:
        note.write(str(session.config.option.seed))
"""


def test_the_processes_of_a_run_share_one_seed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    two = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "2"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *two],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    seeds = {(tmp_path / worker).read_text() for worker in ("gw0", "gw1")}
    assert len(seeds) == 1
    assert f"seed: {seeds.pop()} " in run.stdout
