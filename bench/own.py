"""artemis_py itself: from this checkout, in several builds, and from an older one; and how one is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from artemis_py.perf.link import Link, Target
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.startup import running
from artemis_py.stomp.client import frame
from artemis_py.version import IS_COMPILED, VERSION
from bench.broker import CACHE, LOOPBACK, Broker
from bench.certificate import write_certificate, write_pem
from bench.driver import START_LIMIT_S
from tests.kit.ports import free_port

ROOT: Final = Path(__file__).resolve().parent.parent
# What a user would write, with limits on memory out of the way: a queue is filled on purpose.
CONFIGURATION: Final = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>bench</name>
    <persistence-enabled>{persistent}</persistence-enabled>
    <max-disk-usage>-1</max-disk-usage>
{more}    <journal-directory>{home}/journal</journal-directory>
    <bindings-directory>{home}/bindings</bindings-directory>
    <paging-directory>{home}/paging</paging-directory>
    <large-messages-directory>{home}/large-messages</large-messages-directory>
    <security-enabled>false</security-enabled>
    <global-max-size>10GiB</global-max-size>
    <acceptors>
      <acceptor name="stomp">tcp://{host}:{port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/{parameters}\
</acceptor>
{encrypted}      <acceptor name="http">tcp://{host}:{http_port}?protocols=HTTP</acceptor>
    </acceptors>
    <address-settings>
      <address-setting match="#">
        <max-size-bytes>-1</max-size-bytes>
      </address-setting>
{settings}    </address-settings>
  </core>
</configuration>
"""
ENCRYPTED: Final = """\
      <acceptor name="tls">tcp://{host}:{port}?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/;\
sslEnabled=true;keyStorePath={key}</acceptor>
"""


class ArtemisPy(Broker):
    """The broker of this project. ``more`` are further elements of the configuration's core, ``settings`` further
    address-settings, ``parameters`` those of the acceptor for STOMP.
    """

    name = "artemis_py"
    title = "artemis_py"

    def __init__(self, more: str = "", settings: str = "", parameters: str = "", *, persistent: bool = True) -> None:
        self._more = more
        self._settings = settings
        self._parameters = parameters
        self._persistent = persistent
        self._http_port: int | None = None

    def absent(self) -> str | None:
        """Never."""
        return None

    def version(self) -> str:
        """The version of this checkout."""
        return f"{VERSION} ({'compiled' if IS_COMPILED else 'interpreted'})"

    def command(self, home: Path, port: int, *, tls: bool = False) -> list[str]:
        """A configuration of its own, run by this interpreter."""
        file = home / "broker.xml"
        self._http_port = free_port()
        encrypted = ""
        if tls:
            tls_port = free_port()
            self.tls = Target(LOOPBACK, tls_port, trust=str(write_certificate(home)))
            encrypted = ENCRYPTED.format(host=LOOPBACK, port=tls_port, key=write_pem(home))
        text = CONFIGURATION.format(
            home=home,
            host=LOOPBACK,
            port=port,
            http_port=self._http_port,
            more=self._more.replace("{home}", str(home)),
            encrypted=encrypted,
            settings=self._settings,
            parameters=self._parameters,
            persistent=str(self._persistent).lower(),
        )
        file.write_text(text, encoding="utf-8")
        return [*self.python(), "-m", "artemis_py", "run", str(file)]

    def python(self) -> list[str]:
        """The command before ``-m``."""
        return [sys.executable]

    def url(self) -> str:
        """The acceptor for HTTP of the configuration written last."""
        return f"http://{LOOPBACK}:{self._http_port}"

    def metrics_url(self) -> str | None:
        """Below that."""
        return None if self._http_port is None else f"{self.url()}/metrics"


QUEUE: Final = "bench.jobs"
"""A queue for those that consume it from Spark."""


class Retaining(ArtemisPy):
    """The same, which keeps its log for the pipeline and for replays."""

    title = "artemis_py with retention"

    def __init__(self) -> None:
        super().__init__(f"""\
    <journal-retention-directory unit="DAYS" period="1">{{home}}/retained</journal-retention-directory>
    <addresses>
      <address name="{QUEUE}"><anycast><queue name="{QUEUE}" max-per-subscription-backlog="-1"/></anycast></address>
    </addresses>
""")


class Own:
    """A broker of this checkout that runs: where it listens, and what its process costs."""

    def __init__(self, run: Run, url: str) -> None:
        self.run = run
        self.target = run.target
        self.home = Path(run.options.directory)
        self.url = url

    @property
    def cpu_s(self) -> float:
        """CPU time that it has used."""
        assert self.run.process is not None
        return self.run.process.usage().cpu_s

    @property
    def memory_bytes(self) -> int:
        """Resident memory."""
        assert self.run.process is not None
        return self.run.process.usage().resident_bytes


@contextmanager
def started(broker: ArtemisPy, seconds: float = 1.0) -> Iterator[Own]:
    """Starts it in a directory that is removed with the block. Raises PerfError if it does not start."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as home:
        command = broker.command(Path(home), port)
        options = Options(seconds=seconds, directory=home, metrics_url=broker.metrics_url())
        run = Run(broker.target(port), options)
        with running(command, run.target, START_LIMIT_S, run.progress.show) as process:
            run.process = ProcessTree(process.pid)
            yield Own(run, broker.url())


_BLOCK: Final = 500


def fill(target: Target, queue: str, count: int, body: bytes = b"x", *, persistent: bool = False) -> None:
    """Sends so many messages to a queue; receipts prove that the broker has all of them."""
    headers = (("destination", f"/queue/{queue}"), *((("persistent", "true"),) if persistent else ()))
    message = frame("SEND", headers, body)
    with Link(target) as link:
        for start in range(0, count, _BLOCK):
            link.send(message * (min(_BLOCK, count - start) - 1))
            link.confirmed("SEND", headers, body)


class OnAsyncio(ArtemisPy):
    """The same on the loop of asyncio."""

    name = "asyncio"
    title = "artemis_py on asyncio"

    def absent(self) -> str | None:
        """It is no other where there is no uvloop."""
        return "uvloop is not installed" if find_spec("uvloop") is None else None

    def python(self) -> list[str]:
        """With the variable that asks for it."""
        return ["env", "ARTEMIS_PY_LOOP=asyncio", sys.executable]


class Interpreted(ArtemisPy):
    """The same sources without what was compiled of them."""

    name = "interpreted"
    title = "artemis_py interpreted"

    def absent(self) -> str | None:
        """It is no other where nothing is compiled."""
        return None if IS_COMPILED else "artemis_py is not compiled here"

    def version(self) -> str:
        """As this checkout."""
        return f"{VERSION} (interpreted)"

    @cached_property
    def _sources(self) -> Path:
        folder = CACHE / "interpreted"
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("artemis_py", "schema"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so"))
        return folder

    def python(self) -> list[str]:
        """This interpreter, which looks for modules in the copy, and not in the current directory (-P)."""
        return ["env", f"PYTHONPATH={self._sources}", sys.executable, "-P"]


class Older(ArtemisPy):
    """The broker at another commit, named by ``OLD``: the commit, or a directory with a checkout of it.

    It runs with this interpreter and these libraries, compiled by its own ``tools/compile.py``, so that nothing but its
    sources differs.
    """

    name = "older"
    title = "artemis_py at OLD"

    @staticmethod
    def is_named() -> bool:
        """Does ``OLD`` name one?"""
        return bool(os.environ.get("OLD"))

    def absent(self) -> str | None:
        """Checks it out and compiles it when that was not done yet."""
        return self._problem

    @property
    def _named(self) -> str:
        return os.environ.get("OLD", "")

    @cached_property
    def _root(self) -> Path:
        return Path(self._named).resolve() if Path(self._named).is_dir() else CACHE / f"artemis_py-{self._named}"

    @cached_property
    def _problem(self) -> str | None:
        if not self._named:
            return "no OLD=commit or OLD=directory"
        if not self._root.is_dir() and not _check_out(self._named, self._root):
            return f"{self._named} is no directory, and no commit of this repository"
        if not any(self._root.glob("*__mypyc.*.so")):
            # It is measured as it is where it cannot be compiled; its version says so.
            with suppress(OSError, subprocess.SubprocessError):
                compiler = [*self.python(), str(self._root / "tools" / "compile.py")]
                subprocess.run(compiler, cwd=self._root, capture_output=True, timeout=COMPILE_LIMIT_S, check=False)
        return None

    def version(self) -> str:
        """As that checkout says, and its commit or directory."""
        code = "from artemis_py.version import *; print(VERSION, 'compiled' if IS_COMPILED else 'interpreted')"
        found = subprocess.run([*self.python(), "-c", code], capture_output=True, text=True, check=False).stdout
        version, _, how = found.strip().partition(" ")
        return f"{version or '?'} of {self._root.name.removeprefix('artemis_py-')} ({how or '?'})"

    def python(self) -> list[str]:
        """This interpreter, which looks for modules in that checkout, and not in the current directory (-P)."""
        return ["env", f"PYTHONPATH={self._root}", sys.executable, "-P"]


COMPILE_LIMIT_S: Final = 1800


def _check_out(commit: str, folder: Path) -> bool:
    """The files of a commit in a new directory; False if there is no such commit."""
    try:
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
        part = folder.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-x", "-C", part], input=archive.stdout, check=True)
        part.rename(folder)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
