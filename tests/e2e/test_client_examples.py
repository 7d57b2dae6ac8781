"""Each example of docs/clients.md, run as it stands (but for the port) against a broker on the shipped broker.xml."""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.example_clients import PREPARE, SLOW
from tests.e2e.foreign_clients import CLIENTS, RUN_S_MAX, ForeignClient
from tests.kit.packages import Absent
from tests.kit.process import BrokerProcess, for_the_module, running

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = dict(
    re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", (ROOT / "docs" / "clients.md").read_text(), re.DOTALL)
)
SHIPPED = (ROOT / "broker.xml").read_text("utf-8")
PORTS = {**os.environ, "STOMP_PORT": "0", "HTTP_PORT": "0"}
USERS = {"artemis-users.properties": b"user=password\n", "artemis-roles.properties": b"amq=user\n"}

pytestmark = pytest.mark.e2e


broker = for_the_module(partial(running, SHIPPED, environment=PORTS, beside=USERS))


def test_each_example_is_run() -> None:
    assert set(EXAMPLES) == set(PREPARE)


PROGRAMS_OF_OTHERS = ("apt-get", "cargo", "dpkg", "go", "java", "mvn", "node", "npm", "perl", "php", "ruby")
INSTALLS = {
    "nothing is to be had": "exit 1",
    "what was to be had is of no use": """case "${0##*/} $*" in
        *" mod "* | *" fetch "* | *" pip "*) exit 0 ;; # what fetches says that all went well
        apt-get* | dpkg* | mvn* | npm*) exit 0 ;;
    esac
    exit 1""",
}


@pytest.fixture(params=list(INSTALLS.values()), ids=list(INSTALLS))
def bare_machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program is there, and not one has its library."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (*PROGRAMS_OF_OTHERS, "python"):
        (programs / name).write_text(f"#!/bin/sh\n{request.param}\n", "utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("sys.executable", str(programs / "python"))
    for module in ("kit.packages", "e2e.example_clients"):
        monkeypatch.setattr(f"tests.{module}.CACHE", tmp_path / "cache")


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("name", PREPARE)
def test_an_example_without_its_library_is_absent(tmp_path: Path, name: str) -> None:
    """The program alone is not enough."""
    file = tmp_path / name
    file.write_text(EXAMPLES[name], "utf-8")
    with pytest.raises(Absent):
        PREPARE[name](file)


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_without_its_library_is_absent(client: ForeignClient) -> None:
    with pytest.raises(Absent):
        client.prepare()


LONG = pytest.mark.skipif("'slow' not in config.option.markexpr", reason="compiles for minutes: make soak")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=(pytest.mark.slow, LONG) if name in SLOW else ()) for name in PREPARE]
)
@pytest.mark.timeout(900)
def test_example(broker: BrokerProcess, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(EXAMPLES[name].replace("61613", str(broker.port)))
    try:
        command = PREPARE[name](file)
    except Absent as absent:
        pytest.skip(f"no client for {name}: {absent}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    assert (done.stdout.split(), done.returncode) == (["received", "hello"], 0), done.stderr
    broker.await_metric(0, "artemis_message_count", address="greetings")
