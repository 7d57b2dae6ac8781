"""Apache ActiveMQ Artemis, when an unpacked distribution is at hand. It counts in the ratios of durable scenarios; in
the others it is shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Target
from bench.broker import CACHE, LOOPBACK, Broker
from bench.certificate import PASSWORD, write_certificate, write_pkcs12
from tests.kit.ports import free_port

LIMIT_S: Final = 120
CREATE: Final = (
    "--silent",
    "--user=bench",
    "--password=bench",
    "--allow-anonymous",
    "--no-web",
    "--no-autotune",
)
ACCEPTORS: Final = re.compile(r"<acceptors>.*</acceptors>", re.DOTALL)
ACCEPTOR: Final = """<acceptors>
  <acceptor name="stomp">tcp://{host}:{port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/</acceptor>
{encrypted}</acceptors>"""
ENCRYPTED: Final = """\
  <acceptor name="tls">tcp://{host}:{port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/;\
sslEnabled=true;keyStorePath={key};keyStoreType=PKCS12;keyStorePassword={password}</acceptor>
"""


class Artemis(Broker):
    """``ARTEMIS_HOME`` or the newest ``apache-artemis-*`` in the cache; default configuration with one acceptor."""

    name = "artemis"
    title = "Apache Artemis"
    gets_faster = True

    def _home(self) -> Path | None:
        named = os.environ.get("ARTEMIS_HOME")
        if named:
            return Path(named)
        found = sorted(CACHE.glob("apache-artemis-*/bin/artemis"))
        return found[-1].parent.parent if found else None

    def absent(self) -> str | None:
        """Looks for the distribution and for Java."""
        home = self._home()
        if home is None:
            return "no ARTEMIS_HOME, and no apache-artemis-* in .cache/bench"
        if not (home / "bin" / "artemis").exists():
            return "ARTEMIS_HOME has no bin/artemis"
        return "no java" if shutil.which("java") is None else None

    def version(self) -> str:
        """From the name of its server library."""
        home = self._home()
        names = [] if home is None else [path.stem for path in home.glob("lib/artemis-server-[0-9]*.jar")]
        return names[0].removeprefix("artemis-server-") if names else "?"

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """Creates an instance in ``home`` and leaves it one acceptor. Raises PerfError when that fails."""
        tool = (self._home() or Path()) / "bin" / "artemis"
        instance = home / "instance"
        try:
            subprocess.run(["sh", tool, "create", instance, *CREATE], check=True, capture_output=True, timeout=LIMIT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise PerfError(f"artemis create failed: {error}") from error
        file = instance / "etc" / "broker.xml"
        encrypted = ""
        if tls:
            tls_port = free_port()
            self.tls = Target(LOOPBACK, tls_port, trust=str(write_certificate(home)))
            encrypted = ENCRYPTED.format(host=LOOPBACK, port=tls_port, key=write_pkcs12(home), password=PASSWORD)
        acceptors = ACCEPTOR.format(host=LOOPBACK, port=port, encrypted=encrypted)
        text = file.read_text(encoding="utf-8")
        file.write_text(ACCEPTORS.sub(acceptors, text), encoding="utf-8")
        return [str(instance / "bin" / "artemis"), "run"]
