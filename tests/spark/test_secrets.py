"""Passwords and tokens of queries are in nothing that Spark shows or keeps."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from artemis_py.spark.runtime.java import ensure_java
from tests.kit.process import BrokerProcess, for_the_module
from tests.spark.brokers import journalled_broker
from tests.spark.conftest import ROOT

PROGRAM = ROOT / "tests" / "spark" / "secret_program.py"
SECRETS = {
    "FROM_OPTION": "pa55-of-option",
    "FROM_FILE": "pa55-of-file",
    "FROM_TOKEN": "pa55.of.token",
    "ARTEMIS_PY_PASSWORD": "pa55-of-environment",
}


broker = for_the_module(journalled_broker)


@pytest.mark.takes_turns("the long jobs")
def test_no_secret_is_in_a_plan_an_event_a_log_or_an_error(tmp_path: Path, broker: BrokerProcess) -> None:
    folder = tmp_path / "spark"
    folder.mkdir()
    environment = {**os.environ, **SECRETS, "PYTHONPATH": str(ROOT), "ARTEMIS_PY_USER": "ann"}
    ensure_java(environment)
    urls = [f"http://127.0.0.1:{broker.ports['http']}", f"tcp://127.0.0.1:{broker.port}"]
    with (folder / "output").open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(folder), *urls], env=environment, cwd=folder, stdout=output,
            stderr=output, timeout=400, check=False,
        )  # fmt: skip
    shown = (folder / "output").read_text("utf-8")
    assert done.returncode == 0, shown[-3000:]
    said = json.loads((folder / "said").read_text("utf-8"))
    errors = said.pop("errors")
    assert said == {"secret0": 20, "view0": 40, "secret1": 20, "view1": 40, "secret2": 20}
    assert len(errors) == 2 * 3
    assert "nobody" in errors[0]
    written = [one for one in folder.rglob("*") if one.is_file() and one.name != "password"]
    everything = {str(one): one.read_bytes() for one in written} | {"broker": broker.said.encode()}
    assert b"SparkListenerSQLExecutionStart" in b"".join(text for name, text in everything.items() if "events" in name)
    assert "user" in shown, "the plans were shown"
    for name, secret in SECRETS.items():
        pair = base64.b64encode(f"ann:{secret}".encode()).rstrip(b"=")  # as HTTP sends it
        for text in (secret.encode(), pair[: len(pair) // 4 * 4]):
            for file, content in everything.items():
                at = content.find(text)
                assert at < 0, (name, file, content[max(0, at - 300) : at + 100])
