"""``session()`` in a Python that ``spark-submit`` started: what was given to that stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from artemis_py.spark.runtime.java import ensure_java
from artemis_py.spark.runtime.sessions import _absent
from tests.spark.conftest import ROOT

PROGRAM = """
import json, os, pathlib
from artemis_py.spark import session
import artemis_py.spark.runtime.sessions
assert callable(artemis_py.spark.session) and artemis_py.spark.runtime.sessions.session is session
spark = session("ours", **json.loads(os.environ["GIVEN"]))
spark.read.format("artemis").load()
pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
names = ("spark.master", "spark.app.name", "spark.sql.shuffle.partitions", "spark.sql.session.timeZone",
         "spark.ui.showConsoleProgress", "spark.sql.python.filterPushdown.enabled")
said = {name: spark.conf.get(name) for name in names}
said["idle"] = any(os.sched_getscheduler(int(one.name)) == os.SCHED_IDLE
                   for one in pathlib.Path(f"/proc/{pid}/task").glob("*"))
pathlib.Path(os.environ["SAID"]).write_text(json.dumps(said))
"""


def said_by(folder: Path, submit: list[str] | None, **given: object) -> dict[str, Any]:
    """What a session has that is started by ``spark-submit`` with these arguments; None: by Python alone."""
    program = folder / "program.py"
    program.write_text(PROGRAM, "utf-8")
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "SAID": str(folder / "said"), "GIVEN": json.dumps(given),
        "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
    }  # fmt: skip
    ensure_java(environment)
    import pyspark

    submitted = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), *(submit or [])]
    command = [*([sys.executable] if submit is None else submitted), str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "statically registered" not in done.stderr
    found: dict[str, Any] = json.loads((folder / "said").read_text("utf-8"))
    return found


@pytest.mark.takes_turns("the sessions of others")
@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed on Linux only")
def test_what_spark_submit_was_given_stays(tmp_path: Path) -> None:
    conf = {"spark.sql.shuffle.partitions": "7", "spark.sql.session.timeZone": "Asia/Tokyo"}
    arguments = ["--master", "local[1]", "--name", "theirs"]
    arguments += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    assert said_by(tmp_path, arguments) == {
        **conf, "spark.master": "local[1]", "spark.app.name": "theirs", "spark.ui.showConsoleProgress": "false",
        "spark.sql.python.filterPushdown.enabled": "false", "idle": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "master", "is_small"),
    [
        ({}, "", True),
        ({}, "local[4]", True),
        ({}, "spark://host:7077", False),
        ({}, "yarn", False),
        ({"spark.master": "local[1]"}, "", False),
        ({"spark.master": "yarn"}, "", False),
    ],
)
def test_what_is_for_two_cores_is_not_for_a_cluster(given: dict[str, str], master: str, is_small: bool) -> None:
    settings = _absent(given, master)
    assert ("spark.ui.enabled" in settings) is ("spark.sql.shuffle.partitions" in settings) is is_small
    assert ("spark.driver.host" in settings) is (master or given.get("spark.master", "local")).startswith("local")


@pytest.mark.takes_turns("the sessions of others")
@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed on Linux only")
@pytest.mark.parametrize("steps_back", [None, pytest.param(False, marks=pytest.mark.slow)])
def test_a_session_of_our_own(tmp_path: Path, steps_back: bool | None) -> None:
    given = {} if steps_back is None else {"steps_back": steps_back}
    said = said_by(tmp_path, None, **{"spark.sql.shuffle.partitions": 5}, **given)
    assert said.pop("idle") is (steps_back is None)
    assert said["spark.master"] == "local[2,3]"
    assert said["spark.app.name"] == "ours"
    assert said["spark.sql.shuffle.partitions"] == "5"
    assert said["spark.sql.session.timeZone"] == "UTC"
