"""The README's five minutes, run as written: its commands, its client, its edit, on other ports."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.kit.forks import run_text
from tests.kit.process import running

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
TOUR = README.partition("\n## Five minutes\n")[2].partition("\n## ")[0]
SHIPPED = (ROOT / "broker.xml").read_text("utf-8")

pytestmark = pytest.mark.e2e


def test_the_tour(tmp_path: Path) -> None:
    lines = [line for block in re.findall(r"```sh\n(.*?)```", TOUR, re.DOTALL) for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith(".venv/bin/artemis-py ")]
    assert [words[0] for words in commands] == ["send", "receive", "check", "explain"]
    shipped = SHIPPED.replace("${STOMP_PORT:61613}", "0").replace("${HTTP_PORT:8161}", "0")
    with running(shipped, tmp_path) as broker:
        [password] = re.findall(r"first user: admin    password: (\S+)", broker.said)
        assert "export ARTEMIS_PY_USER=admin\n" in TOUR
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ARTEMIS_PY_USER": "admin",
            "ARTEMIS_PY_PASSWORD": password,
            "ARTEMIS_PY_STOMP_URL": f"stomp://127.0.0.1:{broker.port}",
        }
        command = partial(run_text, folder=tmp_path, environment=environment, timeout=120, check=True)
        send, receive, *about_the_file = commands
        command(send)
        assert send[-1] in command(receive).stdout

        [hello] = re.findall(r"<!-- tour: hello\.py -->\n```python\n(.*?)```", TOUR, re.DOTALL)
        (tmp_path / "hello.py").write_text(hello.replace("61613", str(broker.port)))
        promised = re.search(r"It prints `([^`]*)`", TOUR)
        assert promised is not None
        said = subprocess.check_output([sys.executable, "hello.py"], cwd=tmp_path, env=environment, timeout=120)
        assert said.decode().strip() == promised.group(1)

        [queue] = re.findall(r"```xml\n(.*?)\n```", TOUR)
        file = tmp_path / "broker.xml"
        edited = file.read_text("utf-8").replace('<queue name="orders"/>', queue)
        assert queue in edited
        [promise] = re.findall(r"its log says `([^`]*)`", TOUR)
        file.write_text(edited, "utf-8")
        broker.await_said(promise)
        _, explained = (command(words).stdout for words in about_the_file)
        assert "ring of 3" in explained
