"""``artemis_py.testing`` as its users meet it: the examples of docs/testing.md, pytest in a process of its own, and
``artemis-py test-broker``.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.e2e.example_clients import node
from tests.kit.client import connected
from tests.kit.forks import program, run_text
from tests.kit.packages import Absent, attempt, tool
from tests.kit.ports import free_port
from tests.kit.users import give_user

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "testing.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", DOCUMENT, re.DOTALL))
PYTHON = [name for name in EXAMPLES if name.endswith(".py")]
RUN_S = 300
NOT_NEEDED = ("-pno:hypothesispytest", "-pno:asyncio", "-pno:timeout")
"""Other plugins that are installed for the tests of this project, and take time."""
_OF_THESE_TESTS = ("PYTEST_", "PYTHONPATH", "COVERAGE")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THESE_TESTS)}
ENVIRONMENT["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
"""That of a user."""

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def plugin() -> None:
    if not any(one.value == "artemis_py.testing.plugin" for one in entry_points(group="pytest11")):
        pytest.fail("the entry point of the plugin is not installed: make install")


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """pytest as a user runs it: it finds the plugin by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-pno:cacheprovider", *NOT_NEEDED, "--rootdir", str(folder), *arguments],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_the_python_examples_of_the_document(tmp_path: Path) -> None:
    """All at once, on two processes side by side."""
    assert len(PYTHON) == 5
    for name in PYTHON:
        (tmp_path / name).write_text(EXAMPLES[name])
    shipped = (ROOT / "broker.xml").read_text().replace("${BROKER_SECURITY:true}", "false")
    (tmp_path / "broker.xml").write_text(shipped)
    arguments = ("-q", "--strict-markers", "-n", "2")
    code, said = run_pytest(tmp_path, *arguments)
    assert code == 0, said
    count = sum(text.count("\ndef test_") + text.startswith("def test_") for text in map(EXAMPLES.get, PYTHON) if text)
    assert f"{count} passed" in said, said
    assert not (tmp_path / "data").exists()


USER_TESTS = """\
import pytest


def test_that_fails(artemis):
    artemis.send("orders", "x")
    artemis.queue("orders").assert_acknowledged(1, timeout=0.01)


def test_that_fails_with_assert(artemis):
    artemis.send("orders", "x")
    artemis._engine.timeout_s = 0.01
    assert artemis.queue("orders").empty


@pytest.mark.artemis(persistent=True)
def test_with_a_wrong_mark(artemis):
    pass


@pytest.mark.artemis(config="gone.xml")
def test_without_its_file(artemis):
    pass


def test_with_the_file_of_the_ini(artemis):
    assert "from-ini" in artemis.queues


@pytest.mark.artemis(persistence=True)
def test_with_a_journal(artemis, tmp_path):
    assert (tmp_path / "artemis" / "journal").is_dir()
    artemis.crash()  # and nobody starts it again


def test_in_memory(artemis, tmp_path):
    assert list(tmp_path.iterdir()) == []
"""
INI_XML = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled>
  <acceptors><acceptor name="a">tcp://0.0.0.0:61613?protocols=STOMP</acceptor></acceptors>
  <addresses><address name="from-ini"><anycast><queue name="from-ini"/></anycast></address></addresses>
  <address-settings><address-setting match="#"><default-address-routing-type>ANYCAST</default-address-routing-type>
  <default-queue-routing-type>ANYCAST</default-queue-routing-type></address-setting></address-settings>
</core></configuration>"""


def test_marks_the_ini_file_and_the_report_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(USER_TESTS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ours.xml").write_text(INI_XML)
    (tmp_path / "pytest.ini").write_text("[pytest]\nartemis_config = other/ours.xml\n")
    code, said = run_pytest(tmp_path, "-rA", "--strict-markers")
    assert code == 1, said
    assert "3 passed" in said
    assert "2 failed" in said
    assert "2 errors" in said
    for test in ("with_the_file_of_the_ini", "with_a_journal", "in_memory"):
        assert f"PASSED test_it.py::test_{test}" in said, said
    assert "acknowledged is 0, not 1 after 0.01 s" in said
    assert "assert <orders is not empty: 1 message (1 ready); no consumer is attached>" in said
    assert "- artemis -" in said
    assert "queue orders: 1 message (1 ready); 0 consumers\n  no consumer is attached" in said
    assert "the mark artemis takes config, http, persistence, port, queues, timeout_s by name, not persistent" in said
    assert re.search(r"the configuration for artemis is not there: \S+gone\.xml", said)
    assert "Traceback" not in said


def test_it_costs_nothing_where_no_test_uses_it(tmp_path: Path) -> None:
    """pytest imports the plugin everywhere: neither the broker nor lxml may come with it."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    assert 'artemis_py.testing.plugin' in sys.modules\n"
        "    assert [name for name in sys.modules if name.startswith(('lxml', 'xmlschema', 'cryptography', 'asyncio',"
        " 'h11', 'websockets', 'prometheus_client'))] == []\n"
        "    ours = {name for name in sys.modules if name.startswith('artemis_py')}\n"
        "    assert ours == {'artemis_py', 'artemis_py.testing', 'artemis_py.testing.plugin'}\n"
    )
    code, said = run_pytest(tmp_path, "-pno:xdist")
    assert code == 0, said


# ---- any language --------------------------------------------------------------------------------


@contextmanager
def started_broker(*arguments: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command, and what it says when it is ready."""
    with program("test-broker", *arguments, **{"stdin": subprocess.PIPE, **options}) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()
        yield process, json.loads(line)


def test_a_test_broker_ends_with_its_standard_input() -> None:
    with started_broker("--queue", "orders") as (process, places):
        assert places["pid"] == process.pid
        assert places["url"] == f"tcp://127.0.0.1:{places['port']}"
        assert places["ws_url"] == f"ws://127.0.0.1:{places['port']}/"
        with connected(places["port"]) as client:
            client.ask("SEND", {"destination": "orders"})
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(RUN_S) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""


def test_a_test_broker_without_a_lifeline_ends_on_sigterm(tmp_path: Path) -> None:
    port = free_port()
    arguments = ("--journal", str(tmp_path / "data"), "--port", str(port))
    for _ in range(2):  # the second on the same port, with the same journal
        with started_broker(*arguments, stdin=subprocess.DEVNULL) as (process, _):
            with connected(port) as client:
                client.ask("SEND", {"destination": "orders", "persistent": "true"})
            process.send_signal(signal.SIGTERM)
            assert process.wait(RUN_S) == 0
    with started_broker(*arguments) as _, connected(port) as client:
        client.subscribe("orders", ack="auto")
        for _ in range(2):
            client.expect("MESSAGE")


def test_a_test_broker_says_where_everything_is() -> None:
    """In memory, with HTTP; a login is there for clients that insist on one."""
    with started_broker("--json", "--queue", "orders") as (_, told):
        with urlopen(f"{told['http_url']}api/queues?fields=name", timeout=RUN_S) as answer:
            assert "orders" in {row["name"] for row in json.load(answer)["data"]}
        assert (told["user"], told["password"]) == ("admin", "admin")


SECURED = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <users-file>artemis-users.properties</users-file>
</core></configuration>"""


def test_a_test_broker_with_logins_of_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text(SECURED)
    give_user(tmp_path, "ann", "secret")
    with started_broker("--config", str(tmp_path / "broker.xml")) as (_, told):
        assert (told["user"], told["password"]) == (None, None)
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{told['http_url']}api/queues", timeout=RUN_S)
        assert refused.value.code == 401


PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "artemis_py", "test-broker"], stdin=subprocess.DEVNULL)
time.sleep(3600)
"""


def test_a_test_broker_ends_with_its_parent() -> None:
    """Also where its standard input is nothing, and the parent is killed."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        told = json.loads(parent.stdout.readline())
        broker = os.pidfd_open(told["pid"])
        parent.kill()
        parent.wait(RUN_S)
        ended = select.select([broker], [], [], 60)[0]
        if not ended:
            signal.pidfd_send_signal(broker, signal.SIGKILL)
        os.close(broker)
        assert ended
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_a_test_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text(INI_XML.replace("from-ini", "x", 1).replace("queue name", "queue nmae"))
    for arguments, wanted in (
        (("--config", str(tmp_path / "broker.xml")), "nmae"),
        (("--config", str(tmp_path / "gone.xml")), "gone.xml"),
        (("--port", "70000"), "a port is a number from 0 to 65535"),
    ):
        done = run_text(["test-broker", *arguments], timeout=RUN_S)
        assert done.returncode in (1, 2)
        assert wanted in done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["client.mjs", "client.sh"])
def test_an_example_in_another_language(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(EXAMPLES[name])
    try:
        if name == "client.mjs":
            command = node(["@stomp/stompjs", "@stomp/tcp-wrapper"], file)
        else:  # not every bash knows coprocesses and sockets
            command = [tool("bash"), str(file)]
            with socket.create_server(("127.0.0.1", 0)) as server:
                port = server.getsockname()[1]
                attempt([command[0], "-c", f"coproc :; exec 3<>/dev/tcp/127.0.0.1/{port}"], tmp_path)
    except Absent as absent:
        pytest.skip(f"no client for {name}: {absent}")
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert (done.stdout, done.returncode) == ("received two coffees\n", 0), done.stderr
