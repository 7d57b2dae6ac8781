"""The suites of stompman and faststream-stomp, whole, from a checkout, with the packages as they are installed here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from artemis_py.testing import ArtemisBroker

if "STOMPMAN_SOURCE" not in os.environ:
    pytest.skip(
        "the suites of stompman and faststream-stomp: STOMPMAN_SOURCE names no checkout of stompman",
        allow_module_level=True,
    )

SUITES_S: Final = 600
PORTS: Final = ("port=9000", "port=9001")
"""Where the suites expect Artemis and ActiveMQ Classic, in their own words."""
CONFIG: Final = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <users-file>artemis-users.properties</users-file>
   <security-settings>
      <security-setting match="#">
         <permission type="send" roles="amq"/>
         <permission type="consume" roles="amq"/>
         <permission type="createAddress" roles="amq"/>
         <permission type="createNonDurableQueue" roles="amq"/>
      </security-setting>
   </security-settings>
   <acceptors><acceptor name="stomp">tcp://127.0.0.1:0?protocols=STOMP</acceptor></acceptors>
   <addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>
</core></configuration>
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ArtemisBroker]:
    """As the suites have Artemis: its defaults, so that only the queue ``DLQ`` is none of a topic; and their user."""
    (tmp_path / "broker.xml").write_text(CONFIG)
    (tmp_path / "artemis-users.properties").write_text("admin = :=123\n")
    (tmp_path / "artemis-roles.properties").write_text("amq = admin\n")
    with ArtemisBroker(tmp_path / "broker.xml") as running:
        yield running


@pytest.fixture
def suites(broker: ArtemisBroker, tmp_path: Path) -> Path:
    """A copy of all that is of the tests: beside the checkout's packages Python would not find the installed ones."""
    source, folder = Path(os.environ["STOMPMAN_SOURCE"]), tmp_path / "suites"
    for tests in source.glob("packages/*/test_*/"):
        shutil.copytree(tests, folder / tests.name)
    conftest = (source / "conftest.py").read_text()
    for port in PORTS:
        assert port in conftest
        conftest = conftest.replace(port, f"port={broker.port}")
    (folder / "conftest.py").write_text(conftest)
    return folder


@pytest.mark.timeout(SUITES_S)
def test_the_suites(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--color=no", "-q", "-rs", "--timeout=60", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_stompman", "test_faststream_stomp"],
        cwd=suites, capture_output=True, text=True, timeout=SUITES_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    with capsys.disabled():
        sys.stdout.write(f"\nstompman and faststream-stomp: {done.stdout.splitlines()[-1]}\n")
