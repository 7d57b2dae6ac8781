"""docs/how-do-i.md: each answer is played as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from tests.kit.documents import NO_LOGINS, document
from tests.kit.forks import run_text
from tests.kit.process import LOOPBACK, BrokerProcess, for_the_module, running

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-do-i.md").read_text("utf-8")
ANSWERS = dict(re.findall(r"^### … (.*?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = [question for question, answer in ANSWERS.items() if "```sh" in answer]
CONFIGURATIONS = re.findall(r"^```xml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RETAINED = """<persistence-enabled>true</persistence-enabled>
<journal-retention-directory unit="DAYS" period="7">data/retained</journal-retention-directory>"""
PASSWORD = "chosen for the first user"
ANSWER_LINES_MAX = 20
RUN_S = 120

pytestmark = pytest.mark.e2e


SHIPPED = (ROOT / "broker.xml").read_text("utf-8")
KEEPS = SHIPPED.replace("<persistence-enabled>false</persistence-enabled>", RETAINED)
"""The one that comes with the broker, with persistence and a log."""
assert RETAINED in KEEPS
CHOICES = {"STOMP_PORT": "0", "HTTP_PORT": "0", "ARTEMIS_PY_NEW_PASSWORD": PASSWORD}


broker = for_the_module(partial(running, KEEPS, environment={**os.environ, **CHOICES}))


@pytest.fixture
def place(tmp_path: Path, broker: BrokerProcess) -> Path:
    """A folder with the shipped file, the broker's data, and the command."""
    (tmp_path / "broker.xml").write_text(SHIPPED, "utf-8")
    (tmp_path / "data").symlink_to(broker.log.parent / "data")
    command = tmp_path / "bin" / "artemis-py"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m artemis_py "$@"\n')
    command.chmod(0o755)
    return tmp_path


def play(block: str, place: Path, broker: BrokerProcess) -> str:
    """What the lines print. Plain commands are forked, which is quicker than to start Python for each."""
    environment = {
        **os.environ,
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(place / "config"),
        "ARTEMIS_PY_URL": f"http://{LOOPBACK}:{broker.ports['http']}",
        "ARTEMIS_PY_STOMP_URL": f"stomp://{LOOPBACK}:{broker.port}",
        "ARTEMIS_PY_USER": "admin",
        "ARTEMIS_PY_PASSWORD": PASSWORD,
    }
    said = []
    for line in [block] if re.search(r"\|\||\w+=\$\(", block) else block.splitlines():
        if line.startswith("artemis-py ") and "|" not in line:
            words = shlex.split(line.replace("$ARTEMIS_PY_URL", environment["ARTEMIS_PY_URL"]))[1:]
            done = run_text(words, folder=place, environment=environment, timeout=RUN_S)
        else:
            done = subprocess.run(
                ["bash", "-ec", line],
                cwd=place, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False,
            )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr
        said.append(done.stdout)
    return "".join(said)


@pytest.mark.parametrize("question", COMMANDS)
def test_the_commands_do_it(question: str, place: Path, broker: BrokerProcess) -> None:
    answer = ANSWERS[question]
    for line in re.findall(r"^<!-- before: (.*) -->$", answer, re.MULTILINE):
        play(line, place, broker)
    if "artemis-py init" in answer:
        (place / "broker.xml").unlink()
    for block in re.findall(r"^```sh\n(.*?)^```$", answer, re.MULTILINE | re.DOTALL):
        assert play(block, place, broker).strip()


@pytest.mark.parametrize("core", CONFIGURATIONS)
def test_a_configuration_passes_check(core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(document(NO_LOGINS + core), "utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0
    assert " 0 warnings" in capsys.readouterr().out


def test_answers_are_short() -> None:
    assert len(ANSWERS) >= 40
    lines = {question: len([line for line in answer.splitlines() if line]) for question, answer in ANSWERS.items()}
    assert {question: count for question, count in lines.items() if count > ANSWER_LINES_MAX} == {}
