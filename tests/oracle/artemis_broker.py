"""A real Apache Artemis, when its distribution is at hand: one small JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kit.ports import free_ports
from tests.oracle.brokers import ARTEMIS, BrokerUnderTest, stop, under_test, wait_until_listening
from tests.oracle.configuration import ACCEPTORS, Profile, broker_xml

START_S = 120.0
CACHE = Path(__file__).resolve().parents[2] / ".cache"
LOG = Path("log", "artemis.log")
"""What it prints, in its folder."""
ABSENT = "no Artemis: neither ARTEMIS_HOME nor apache-artemis-* in a folder of .cache, or no Java"

_BOOTSTRAP = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="oracle"/>
  <server configuration="file:{folder}/broker.xml"/>
</broker>
"""
_MANAGEMENT = '<management-context xmlns="http://activemq.apache.org/schema"/>\n'


def artemis_home() -> Path | None:
    """``ARTEMIS_HOME``, or the newest ``apache-artemis-*`` in a folder of the cache; None without it, or Java."""
    if shutil.which("java") is None:
        return None
    named = os.environ.get("ARTEMIS_HOME")
    found = [Path(named)] if named else sorted(CACHE.glob("*/apache-artemis-*"))
    usable = [path for path in found if (path / "lib" / "artemis-boot.jar").exists()]
    return usable[-1] if usable else None


@contextmanager
def artemis_broker(profile: Profile, folder: Path, home: Path) -> Iterator[BrokerUnderTest]:
    """A real Artemis with the configuration of a profile, from its first open port to its end."""
    ports = dict(zip(ACCEPTORS, free_ports(len(ACCEPTORS)), strict=True))
    with artemis_running(broker_xml(profile, ports), folder, home, ports.values()):
        yield under_test(ARTEMIS, ports)


@contextmanager
def artemis_running(
    text: str, folder: Path, home: Path, ports: Iterable[int], bootstrap: str = _BOOTSTRAP, options: Sequence[str] = ()
) -> Iterator[None]:
    """A real Artemis as ``start_artemis`` makes it, from its first open port to its end."""
    process = start_artemis(text, folder, home, bootstrap, options)
    try:
        wait_until_listening(process, ports, START_S, folder / LOG)
        yield
    finally:
        stop(process)


def start_artemis(
    text: str, folder: Path, home: Path, bootstrap: str = _BOOTSTRAP, options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """A real Artemis with this configuration, in this folder, which may have its files already; ``options`` are those
    of Java.
    """
    etc = folder / "etc"
    for path in (etc, folder / "data", folder / "tmp", folder / "log"):
        path.mkdir(exist_ok=True, parents=True)
    (etc / "broker.xml").write_text(text)
    (etc / "bootstrap.xml").write_text(bootstrap.format(folder=etc))
    (etc / "management.xml").write_text(_MANAGEMENT)
    with (folder / LOG).open("ab") as output:
        return subprocess.Popen(
            java_command(folder, home, *options),
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


def run_command(*command: str) -> None:
    """One of Artemis' commands."""
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def java_command(folder: Path, home: Path, *options: str) -> list[str]:
    """Runs the instance in this folder."""
    return [
        "java", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Dartemis.home={home}", f"-Dartemis.instance={folder}", f"-Dartemis.instance.etc={folder / 'etc'}",
        f"-Djava.io.tmpdir={folder / 'tmp'}", f"-Ddata.dir={folder / 'data'}", *options,
        "-cp", str(home / "lib" / "artemis-boot.jar"), "org.apache.activemq.artemis.boot.Artemis", "run",
    ]  # fmt: skip
