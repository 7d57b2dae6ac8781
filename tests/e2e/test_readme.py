"""The README's five minutes, run as written: its blocks, its client, its commands, on other ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.broker_process import running

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()

pytestmark = pytest.mark.e2e


def _block(mark: str) -> str:
    """The Python that stands behind this mark."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def _shell_lines() -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line]


def test_the_tour(tmp_path: Path) -> None:
    shipped = (ROOT / "broker.xml").read_text().replace("${STOMP_PORT:61613}", "0").replace("${HTTP_PORT:8161}", "0")
    with running(shipped, tmp_path) as broker:
        (tmp_path / "hello.py").write_text(_block("tour: hello.py").replace("61613", str(broker.port)))
        [password] = re.findall(r"first user: admin    password: (\S+)", broker.said)
        said = _run([sys.executable, "hello.py"], tmp_path, ARTEMIS_PY_PASSWORD=password)
        promised = re.search(r"It prints `([^`]*)`", README)
        assert promised is not None
        assert said.strip() == promised.group(1)
        [curl] = [line for line in _shell_lines() if line.startswith("curl")]
        shown = _run(["bash", "-c", curl.replace("8161", str(broker.ports["http"]))], tmp_path)
    assert 'artemis_messages_acknowledged{address="orders",broker="artemis_py",queue="orders"} 1.0' in shown


def _run(command: list[str], folder: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_the_commands_about_the_configuration(tmp_path: Path) -> None:
    changed = (
        (ROOT / "broker.xml").read_text().replace('<queue name="orders"/>', '<queue name="orders" ring-size="3"/>')
    )
    assert 'ring-size="3"' in changed
    (tmp_path / "broker.xml").write_text(changed)
    commands = [line for line in _shell_lines() if line.startswith(".venv/bin/artemis-py")]
    assert [command.split()[1] for command in commands] == ["check", "explain"]
    for command in commands:
        arguments = command.split()[1:]
        done = subprocess.run(
            [sys.executable, "-m", "artemis_py", *arguments],
            cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert "ring of 3" in done.stdout
