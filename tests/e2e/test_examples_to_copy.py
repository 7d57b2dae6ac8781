"""The projects of ``integrations/examples``, as who copies them runs them: tests of programs in Java and Go, with a
broker of ``artemis-py test-broker`` or in a container.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.foreign_clients import GO_ENVIRONMENT
from tests.kit.forks import said_by
from tests.kit.packages import Absent, attempt, tool
from tests.kit.sources import ROOT

EXAMPLES = ROOT / "integrations" / "examples"
TESTING = (ROOT / "docs" / "testing.md").read_text("utf-8")
FETCH_S = 600
RUN_S = 600
IMAGE = "artemis-py"

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


ENVIRONMENT = {**os.environ, "ARTEMIS_PY": f"{sys.executable} -m artemis_py", "PYTHONPATH": str(ROOT)}
played = partial(said_by, env=ENVIRONMENT, timeout=RUN_S)
"""What the tests of a project say, all of which must pass."""


def with_maven(home: Path, name: str) -> str:
    """Maven, which has fetched what a project needs. Skips without."""
    try:
        tool("java")
        maven = tool("mvn")
        attempt([maven, "-q", "-B", "dependency:go-offline"], home, timeout_s=FETCH_S)
    except Absent as absent:
        pytest.skip(f"integrations/examples/{name}: {absent}")
    return maven


LONG = pytest.mark.skipif(
    "'slow' not in config.option.markexpr", reason="integrations/examples/spring takes a minute: make soak"
)


@pytest.mark.parametrize(
    ("name", "tests", "count"),
    [("junit", "OrdersTest", 1), pytest.param("spring", "KitchenTest", 4, marks=(pytest.mark.slow, LONG))],
)
def test_a_project_of_maven(tmp_path: Path, name: str, tests: str, count: int) -> None:
    home = Path(shutil.copytree(EXAMPLES / name, tmp_path / name))
    played(with_maven(home, name), "-q", "-B", "test", cwd=home)
    report = (home / "target" / "surefire-reports" / f"example.{tests}.txt").read_text("utf-8")
    assert f"Tests run: {count}, Failures: 0, Errors: 0, Skipped: 0" in report


def test_go(tmp_path: Path) -> None:
    home = Path(shutil.copytree(EXAMPLES / "go", tmp_path / "go"))
    try:
        go = tool("go")
        attempt([go, "mod", "download"], home, GO_ENVIRONMENT, FETCH_S)
    except Absent as absent:
        pytest.skip(f"integrations/examples/go: {absent}")
    environment = {**ENVIRONMENT, **GO_ENVIRONMENT}
    said = played(go, "test", "-count=1", "-v", "./...", cwd=home, env=environment)
    assert "--- PASS: TestAnOrderIsTakenAndAcknowledged" in said


def test_both_projects_of_java_have_the_same_broker() -> None:
    place = "src/test/java/example/TestBroker.java"
    assert (EXAMPLES / "junit" / place).read_text() == (EXAMPLES / "spring" / place).read_text()


# ---- containers ------------------------------------------------------------------------------------------------------

CONTAINERS = EXAMPLES / "testcontainers"

STAND_IN = '''
"""Runs packaging/container/broker.xml as the image does, with what the container would get, but without an engine."""

import os
import re
import subprocess
import sys
import tempfile
import urllib.request


class DockerContainer:
    def __init__(self, image):
        assert image == "artemis-py"
        self.environment, self.ports, self.strategy = {}, (), None

    def with_exposed_ports(self, *ports):
        self.ports = ports
        return self

    def with_env(self, name, value):
        assert f"${{{name}:" in open(os.environ["CONTAINER_XML"]).read(), f"the image knows no {name}"
        self.environment[name] = value
        return self

    def waiting_for(self, strategy):
        self.strategy = strategy
        return self

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        given = {"BROKER_DATA": self.folder.name, "STOMP_PORT": "0", "HTTP_PORT": "0", **self.environment}
        command = [sys.executable, "-m", "artemis_py", "run", os.environ["CONTAINER_XML"]]
        self.process = subprocess.Popen(
            command, env={**os.environ, **given}, stderr=subprocess.PIPE, text=True, cwd=self.folder.name
        )
        self.places = {}
        for line in self.process.stderr:
            if found := re.search(r"acceptor=(\\w+) listening on \\S+:(\\d+)", line):
                self.places[{"stomp": 61613, "http": 8161}[found[1]]] = int(found[2])
            if "is ready" in line:
                break
        assert set(self.places) == set(self.ports), "the image opens other ports"
        url = f"http://127.0.0.1:{self.places[self.strategy.port]}{self.strategy.path}"
        assert urllib.request.urlopen(url).status == 200
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()
        self.folder.cleanup()

    def get_container_host_ip(self):
        return "127.0.0.1"

    def get_exposed_port(self, port):
        return self.places[port]
'''
STRATEGY = """
class HttpWaitStrategy:
    def __init__(self, port, path):
        self.port, self.path = port, path
"""


def test_the_python_example_with_a_broker_as_in_the_image(tmp_path: Path) -> None:
    """Where the engine is missing, all but the engine: names of variables, ports, health, and what the test does."""
    core = tmp_path / "stand_in" / "testcontainers" / "core"
    core.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    (core / "__init__.py").touch()
    (core / "container.py").write_text(STAND_IN)
    (core / "wait_strategies.py").write_text(STRATEGY)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path / 'stand_in'}{os.pathsep}{ROOT}",
        "CONTAINER_XML": str(ROOT / "packaging" / "container" / "broker.xml"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", str(CONTAINERS / "test_orders.py")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def with_image(name: str) -> None:
    """Skips without an engine or the image."""
    try:
        attempt([tool("docker"), "image", "inspect", IMAGE], ROOT)
    except Absent as absent:
        pytest.skip(f"{name} needs Docker and the image {IMAGE}: {absent}")


def test_the_python_example_in_a_container(tmp_path: Path) -> None:
    with_image("integrations/examples/testcontainers/test_orders.py")
    pytest.importorskip("testcontainers", reason="testcontainers of Python is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", str(CONTAINERS / "test_orders.py")]
    assert "1 passed" in played(*command, cwd=tmp_path)


def test_the_java_example_compiles(tmp_path: Path) -> None:
    home = Path(shutil.copytree(EXAMPLES / "testcontainers", tmp_path / "testcontainers"))
    played(with_maven(home, "testcontainers"), "-q", "-B", "test-compile", cwd=home)
    assert (home / "target" / "test-classes" / "example" / "ContainerTest.class").exists()


def test_the_java_example_in_a_container(tmp_path: Path) -> None:
    with_image("integrations/examples/testcontainers/ContainerTest.java")
    home = Path(shutil.copytree(EXAMPLES / "testcontainers", tmp_path / "testcontainers"))
    played(with_maven(home, "testcontainers"), "-q", "-B", "test", cwd=home)


def test_what_docs_testing_shows_is_in_the_projects() -> None:
    """Each block ``copied: FILE`` stands in that file as it is."""
    blocks = TESTING.split("<!-- copied: ")[1:]
    assert len(blocks) >= 3
    for block in blocks:
        name, _, rest = block.partition(" -->\n```")
        shown = rest.partition("\n")[2].partition("\n```")[0]
        text = (EXAMPLES / name).read_text("utf-8")
        for line in filter(None, (line.strip() for line in shown.splitlines())):
            assert line in text, f"{name} has no {line!r}"
