"""A real Apache Artemis, when its distribution is at hand: one small JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.ports import free_port
from tests.oracle.brokers import ARTEMIS, BrokerUnderTest, listening, under_test
from tests.oracle.configuration import ACCEPTORS, Profile, broker_xml

CACHE = Path(__file__).resolve().parents[2] / ".cache"
LOG = Path("log", "artemis.log")
"""What it prints, in its folder."""

_BOOTSTRAP = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="oracle"/>
  <server configuration="file:{folder}/broker.xml"/>
</broker>
"""
_MANAGEMENT = '<management-context xmlns="http://activemq.apache.org/schema"/>\n'


def artemis_home() -> Path:
    """``ARTEMIS_HOME``, or the newest ``apache-artemis-*`` in a folder of the cache; skips without it, or Java."""
    named = os.environ.get("ARTEMIS_HOME")
    found = [Path(named)] if named else sorted(CACHE.glob("*/apache-artemis-*"))
    usable = [path for path in found if (path / "lib" / "artemis-boot.jar").exists()]
    if not usable or shutil.which("java") is None:
        pytest.skip("no Artemis: neither ARTEMIS_HOME nor apache-artemis-* in a folder of .cache, or no Java")
    return usable[-1]


@contextmanager
def artemis_broker(profile: Profile, folder: Path, home: Path) -> Iterator[BrokerUnderTest]:
    """A real Artemis with the configuration of a profile, from its first open port to its end."""
    ports = {name: free_port() for name in ACCEPTORS}
    command = artemis_command(broker_xml(profile, ports), folder, home)
    with listening(command, ports.values(), folder / LOG, folder):
        yield under_test(ARTEMIS, ports)


def artemis_command(
    text: str, folder: Path, home: Path, bootstrap: str = _BOOTSTRAP, options: Sequence[str] = ()
) -> list[str]:
    """Runs, in this folder, a real Artemis with this configuration, which is there then beside files that are there
    already; ``options`` are those of Java.
    """
    etc = folder / "etc"
    for path in (etc, folder / "data", folder / "tmp", folder / "log"):
        path.mkdir(exist_ok=True, parents=True)
    (etc / "broker.xml").write_text(text)
    (etc / "bootstrap.xml").write_text(bootstrap.format(folder=etc))
    (etc / "management.xml").write_text(_MANAGEMENT)
    return [
        "java", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Dartemis.home={home}", f"-Dartemis.instance={folder}", f"-Dartemis.instance.etc={etc}",
        f"-Djava.io.tmpdir={folder / 'tmp'}", f"-Ddata.dir={folder / 'data'}", *options,
        "-cp", str(home / "lib" / "artemis-boot.jar"), "org.apache.activemq.artemis.boot.Artemis", "run",
    ]  # fmt: skip


def run_command(*command: str) -> None:
    """One of Artemis' commands."""
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
