"""The seed of a test run: that of the commit, or a new one, and the same in all processes. Each of them would otherwise
collect other tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path

import pytest

from artemis_py.version import VERSION
from tests.conftest import seed_of_commit
from tools import explore

ROOT = Path(__file__).parents[2]
CONFTEST = """
def pytest_collection_finish(session):
    worker = getattr(session.config, "workerinput", {"workerid": "first"})["workerid"]
    with open(worker, "w") as note:
        note.write(str(session.config.option.seed))
"""


OF_VERSION = zlib.crc32(VERSION.encode())


def test_a_commit_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """A folder of another project's checkout has not."""
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    (tmp_path / "inside").mkdir()

    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run([*git, "init", "--quiet"])
    assert seed_of_commit(tmp_path) == OF_VERSION
    run([*git, "commit", "--quiet", "--allow-empty", "--no-verify", "--message", "one"])
    assert seed_of_commit(tmp_path) == int(run([*git, "rev-parse", "HEAD"]).stdout[:8], 16)
    assert seed_of_commit(tmp_path / "inside") == OF_VERSION


def test_without_git_a_version_has_a_seed_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert seed_of_commit(ROOT) == OF_VERSION


def test_exploring_takes_new_seeds_and_tells_how_to_repeat_each_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    tests = "def test_wrong(seed): assert seed < 0\ndef test_right(): pass"
    (tmp_path / "test_wrong.py").write_text(tests)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    options = ["-n0", "-p", "tests.conftest", str(tmp_path)]
    assert explore.main(["--rounds", "2", *options]) == 1
    said = capfd.readouterr().out
    seeds = [line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("round ")]
    assert len(set(seeds)) == 2
    again = f"make test ARGS='test_wrong.py::test_wrong --seed {seeds[0]}'"
    failed = f"test_wrong.py::test_wrong failed with seed {seeds[0]}, {seeds[1]}; repeat it with: {again}"
    assert said.endswith(f"0 of 2 rounds passed\n{failed}\n")


def test_a_round_that_no_test_fails_is_repeated_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    assert explore.main(["-n0", "-p", "tests.conftest", str(tmp_path)]) == 5
    said = capfd.readouterr().out
    assert f"0 of 1 rounds passed\n-n0 -p tests.conftest {tmp_path} failed with seed " in said


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
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    seeds = {(tmp_path / worker).read_text() for worker in ("gw0", "gw1")}
    assert len(seeds) == 1
    assert f"seed: {seeds.pop()} " in run.stdout
