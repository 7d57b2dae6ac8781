"""Each example of docs/clients.md, run as it stands (but for the port) against a broker on the shipped broker.xml."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.broker_process import BrokerProcess, running
from tests.e2e.example_clients import PREPARE, SLOW
from tests.e2e.foreign_clients import Absent
from tests.e2e.users import give_user

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = dict(
    re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", (ROOT / "docs" / "clients.md").read_text(), re.DOTALL)
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    shipped = (ROOT / "broker.xml").read_text().replace("${STOMP_PORT:61613}", "0").replace("${HTTP_PORT:8161}", "0")
    folder = tmp_path_factory.mktemp("examples")
    give_user(folder, "user", "password")
    with running(shipped, folder) as process:
        yield process


def waiting(broker: BrokerProcess) -> float:
    """How many greetings nobody has acknowledged."""
    metrics = urlopen(f"http://127.0.0.1:{broker.ports['http']}/metrics", timeout=10).read().decode()
    found = re.search(r'^artemis_message_count\{address="greetings".*\} (\S+)$', metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_each_example_is_run() -> None:
    assert set(EXAMPLES) == set(PREPARE)


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
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.returncode) == (["received", "hello"], 0), done.stderr
    broker.eventually("no greeting is left", lambda: waiting(broker), lambda count: count == 0)
