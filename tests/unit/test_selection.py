"""What a run of tests leaves out: two thirds of a part that did not change, such as Spark's, and with ``--fast`` what
takes long or needs Spark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit import selection

ROOT = Path(__file__).parents[2]
UNCHANGED = "from tests.kit import selection\nselection.has_changed = lambda root, paths: False\n"
TEN = "import pytest\n@pytest.mark.slow\n@pytest.mark.parametrize('number', range(10))\ndef test_it(number): pass\n"
LESS_INSTALLED = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(name)

MISSING = "grpc jsonschema jwt ldap3 numpy opentelemetry pandas pyarrow pyspark stomp stompman uvloop".split()
sys.meta_path.insert(0, Finder())
"""
"""A machine that has only what ``make test-fast`` installs."""


def pytest_in(folder: Path, *options: str, **environment: str) -> str:
    """What pytest prints there, with the options of this suite."""
    given = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=given | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    ).stdout


def test_a_third_of_spark_runs_and_the_rest_is_named(tmp_path: Path) -> None:
    """Continuous integration runs all."""
    (tmp_path / "tests" / "spark").mkdir(parents=True)
    files = [f"tests/spark/test_{letter}.py" for letter in "abcdef"]
    for file in files:
        (tmp_path / file).write_text(TEN)
    (tmp_path / "conftest.py").write_text(UNCHANGED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    options = ["-ra", "-p", "tests.conftest"]
    said = pytest_in(tmp_path, *options, "--seed", "256")
    assert "20 passed, 40 skipped" in said
    told = ": a third in each run where nothing of this changed (all: make test ARGS='tests/spark')\n"
    assert {file for file in files if f"SKIPPED [10] {file}{told}" not in said} == {files[1], files[4]}
    assert "60 passed" in pytest_in(tmp_path, *options, CI="true")


def test_compiled_modules_prove_a_third_of_the_files_end_to_end(tmp_path: Path) -> None:
    """Also in continuous integration, which has all on the sources. Of a few files that somebody names all run."""
    (tmp_path / "tests" / "e2e").mkdir(parents=True)
    files = [f"tests/e2e/test_{letter}.py" for letter in "abcdef"]
    for file in files:
        (tmp_path / file).write_text(TEN)
    (tmp_path / "conftest.py").write_text("import tests.conftest\ntests.conftest.IS_COMPILED = True\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    options = ["-ra", "-p", "tests.conftest", "--seed", "256"]
    said = pytest_in(tmp_path, *options, CI="true")
    assert "20 passed, 40 skipped" in said
    told = ": a third of the files in each run on compiled modules (all: on the sources)\n"
    assert {file for file in files if f"SKIPPED [10] {file}{told}" not in said} == {files[1], files[4]}
    assert "50 passed" in pytest_in(tmp_path, *options, *files[:5], CI="true")
    assert all((ROOT / file).exists() for file in selection.ALONE)
    (tmp_path / "conftest.py").unlink()
    assert "60 passed" in pytest_in(tmp_path, *options, CI="true")


def test_three_thirds_are_all_of_it() -> None:
    """Whatever the digits are by which tests take turns."""
    files = [f"tests/spark/test_{number}.py" for number in range(20)]
    for turn in range(5):
        thirds = [selection.third_of([*files, *files], 256 * third + turn) for third in range(3)]
        assert sorted(file for third in thirds for file in third) == sorted(files)
        assert {len(third) for third in thirds} == {6, 7}


def test_a_part_is_whole_where_somebody_names_or_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(ROOT)
    changed: list[str] = []
    monkeypatch.setattr(selection, "has_changed", lambda root, paths: not {*changed}.isdisjoint(paths))
    config: Any = SimpleNamespace()
    for config.args, parts in (
        (["tests/spark"], ["Spark"]),
        (["tests/queues", "tests/spark/test_batch.py::test_it[a::b]"], ["Spark"]),
        (["tests/unit/test_compile.py", "tests/e2e/console"], ["console", "compiling"]),
        (["tests/wire"], ["worlds and transcripts"]),
        (["tests"], []),
    ):
        assert selection.whole_parts(config) == parts, config.args
    changed = ["artemis_py/console", "tests/spark/"]
    assert selection.whole_parts(config) == ["Spark", "console"]
    monkeypatch.setenv("CI", "true")
    assert selection.whole_parts(config) == [part.name for part in selection.PARTS]


def test_of_a_part_that_is_not_by_file_single_tests_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "tests" / "e2e" / "console").mkdir(parents=True)
    file = "tests/e2e/console/test_pages.py"
    (tmp_path / file).write_text(TEN)
    (tmp_path / "conftest.py").write_text(UNCHANGED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    ids = [f"{file}::test_it[{number}]" for number in range(10)]
    expected = sum(selection.is_in_the_third(one, 256) for one in ids)
    assert 0 < expected < 10
    assert f"{expected} passed, {10 - expected} skipped" in pytest_in(tmp_path, "-p", "tests.conftest", "--seed", "256")


def test_what_a_part_is_made_of_is_there() -> None:
    for part in selection.PARTS:
        for path in (*part.tests, *part.proves):
            assert (ROOT / path).exists(), path


def test_a_change_is_found_in_the_branch_in_the_last_commit_and_in_files(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)

    def commit(name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("new")
        run([*git, "add", name])
        run([*git, "commit", "--quiet", "--no-verify", "--message", name])

    has_changed = partial(selection.has_changed, tmp_path, ["spark"])
    assert has_changed()  # no repository: nobody knows
    run([*git, "init", "--quiet", "--initial-branch", "main"])
    commit("other/first")
    assert has_changed()  # nothing before it
    commit("spark/one")
    assert has_changed()
    commit("other/second")
    assert not has_changed()
    (tmp_path / "spark" / "two").write_text("untracked")
    assert has_changed()
    (tmp_path / "spark" / "two").unlink()
    (tmp_path / "spark" / "one").write_text("edited")
    assert has_changed()
    run([*git, "checkout", "--quiet", "spark"])
    run([*git, "checkout", "--quiet", "-b", "branch"])
    commit("spark/two")
    commit("other/third")
    assert has_changed()
    run([*git, "checkout", "--quiet", "main"])
    assert not has_changed()


def test_fast_tests_import_nothing_that_is_not_installed_for_them(tmp_path: Path) -> None:
    (tmp_path / "nothing_more_installed.py").write_text(LESS_INSTALLED)
    options = ["-q", "--fast", "--collect-only", "-p", "nothing_more_installed"]
    said = pytest_in(ROOT, *options, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert "error" not in said.rpartition("seed:")[2]
    assert "tests/wire/test_transcripts.py::test_whole[" in said
    assert "tests/wire/test_transcripts.py::test_divided_in_two[" not in said
    assert "tests/e2e/test_process.py::" not in said
    left_out = next(line for line in said.splitlines() if line.startswith("left out: "))
    assert "tests/e2e, " in left_out
    assert "tests/spark, " in left_out
    assert left_out.endswith("(all: make test)")
