"""The broker as packaging/ starts it. No container engine is needed: its file is run on a root file system that is
read-only, and its build is compared with the project.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from artemis_py.security.users.accounts import NEW_PASSWORD
from tests.kit.client import connected
from tests.kit.forks import run_text
from tests.kit.process import started
from tests.kit.sources import ROOT

pytestmark = pytest.mark.e2e

PACKAGING = ROOT / "packaging"
CONTAINERFILE = PACKAGING / "Containerfile"
CONFIGURATION = PACKAGING / "container" / "broker.xml"
PASSWORD = "chosen for the container"
READ_ONLY = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"'


def test_its_configuration_on_a_read_only_root(tmp_path: Path) -> None:
    """A durable message outlives the container; the password is the one chosen; health needs no login, metrics do."""
    data = tmp_path / "data"
    data.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine: a read-only root file system needs it")
    within = ["unshare", "--mount", "sh", "-c", READ_ONLY, str(data)]
    try_it = ["sh", "-c", f"! touch {tmp_path}/x && touch {data}/x"]
    tried = subprocess.run([*within, *try_it], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"unshare may not make the root file system read-only: {tried.stderr.decode().strip()}")
    choices = {"BROKER_DATA": str(data), "STOMP_PORT": "0", "HTTP_PORT": "0", NEW_PASSWORD: PASSWORD}
    environment = {**os.environ, **choices, "PYTHONDONTWRITEBYTECODE": "1"}
    run = partial(
        started, CONFIGURATION, log=tmp_path / "broker.log", environment=environment, folder=ROOT, within=within
    )
    with run() as broker:
        assert "warning" not in broker.said
        with connected(broker.port, login="admin", passcode=PASSWORD) as client:
            client.ask("SEND", {"destination": "/queue/kept", "persistent": "true"}, b"hello")
        asked = run_text(["health", broker.url])
        assert (asked.returncode, asked.stdout) == (0, "UP\n"), asked.stderr
        assert broker.ask("GET", "/metrics").status == 401
        assert broker.stop() == 0, broker.said
        assert run_text(["health", broker.url]).returncode == 1
    with run() as broker:
        with connected(broker.port, login="admin", passcode=PASSWORD) as client:
            client.subscribe("/queue/kept", ack="auto")
            assert client.message().body == b"hello"
        assert broker.stop() == 0, broker.said


# ---- its build ------------------------------------------------------------------------------------


CODE = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
INSTRUCTIONS = re.findall(r"^(\w+)\s+(.*?)\s*$", CODE, re.MULTILINE)


def test_what_is_copied_is_here_and_not_ignored() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [rest.split()[:-1] for name, rest in INSTRUCTIONS if name == "COPY" and not rest.startswith("--from")]
    sources = [source for sources in copied for source in sources]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(source == entry or source.startswith(f"{entry}/") for entry in allowed), f"{source} is ignored"


def test_the_build_has_all_that_the_wheel_is_made_of() -> None:
    """pip in the container sees only what is copied."""
    copied = {source for name, rest in INSTRUCTIONS if name == "COPY" for source in rest.split()[:-1]}
    build = (ROOT / "pyproject.toml").read_text()
    only = re.search(r"^only-include = \[(.*)\]$", build, re.MULTILINE)
    assert only is not None
    wanted = {"pyproject.toml", "README.md", "LICENSE", "tools", *re.findall(r'"([^"]+)"', only[1])}
    assert wanted <= copied


def test_it_runs_without_root_and_answers_health() -> None:
    last = dict(INSTRUCTIONS)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"])
    assert last["HEALTHCHECK"].endswith('CMD ["artemis-py", "health"]')
    assert last["CMD"] == '["run", "/etc/artemis-py/broker.xml"]'
    copies = [rest for name, rest in INSTRUCTIONS if name == "COPY"]
    assert "packaging/container/broker.xml /etc/artemis-py/broker.xml" in copies
    assert f"--owner={last['USER'].partition(':')[0]}" in CONTAINERFILE.read_text()
    assert f"{{BROKER_DATA:{last['VOLUME']}}}" in CONFIGURATION.read_text()
    for port in last["EXPOSE"].split():
        assert f":{port}}}" in CONFIGURATION.read_text()


def test_every_variable_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text()
    rows = re.findall(
        r"^\| (`.*?`) \| ([^|]+) \|", text[text.index("| variable |") : text.index("On Kubernetes")], re.M
    )
    documented = {
        name: default.strip("` ")
        for names, defaults in rows
        for name, default in zip(re.findall(r"`(\w+)`", names), defaults.split(", "), strict=True)
    }
    assert documented == dict(re.findall(r"\$\{(\w+):([^}]*)\}", CONFIGURATION.read_text()))
