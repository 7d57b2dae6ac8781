"""A broker as a user starts it: a file, a process, ports of its own choice, an end by its process id."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from tests.kit import http
from tests.kit.forks import COMMAND, ROOT, Forked, starts_alike

LOOPBACK = http.LOOPBACK
WAIT_S = http.WAIT_S
POLL_S = 0.004
PAUSE_MAX_S = 0.1
STOP_S = 120.0
_LIMITED = ("sh", "-c", 'ulimit -S -n "$1" && ulimit -H -n "$2" && shift 2 && exec "$@"', "sh")

Value = TypeVar("Value")

_LISTENING = re.compile(
    r"^\S+Z BRK-1002 acceptor=(?P<name>\S+) listening on (?P<host>\S+):(?P<port>\d+) for ",
    re.MULTILINE,
)
_STATES = re.compile(
    r"^(?:\S+Z \S+ )?broker \S+ is (?:a stand-by: it waits for (?P<waits_for>.*)|(?P<ready>ready).*)$", re.MULTILINE
)
_SHAPE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]{3}-\d{4} \S.*|\t.*")
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

STOMP = "tcp://127.0.0.1:0?protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/"
HTTP = "tcp://127.0.0.1:0?protocols=HTTP"

BOTH = {"stomp": STOMP, "http": HTTP}
LONG = (
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif("'slow' not in config.option.markexpr", reason="the long run: make soak"),
)
"""Marks of a run that ``make soak`` makes."""
SWEPT = "<address-queue-scan-period>200</address-queue-scan-period>"
"""Unused queues go soon."""
DAYS = 'unit="DAYS" period="1"'
"""How much of a log is kept."""
DIRECTORIES = {"journal": "journal", "bindings": "bindings", "paging": "paging", "large-messages": "large"}
"""Where files are, by the beginning of the element that says so."""
_CONFIGURATION = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <persistence-enabled>{persists}</persistence-enabled>
    <security-enabled>{is_secured}</security-enabled>
    {core}
    <acceptors>
{acceptors}
    </acceptors>
    <addresses>
{addresses}
    </addresses>
    <address-settings>
{settings}
    </address-settings>
  </core>
</configuration>
"""


def configuration(
    acceptors: Mapping[str, str] = BOTH,
    *,
    folder: Path | None = None,
    persists: bool = True,
    name: str = "e2e",
    core: str = SWEPT,
    addresses: str = "",
    settings: str = "",
    kept: str = "",
    security: str = "",
) -> str:
    """A broker.xml with these acceptors (name → URI), and XML for its addresses, its address-settings and ``core``.
    Its files are below ``folder``, in ``DIRECTORIES``; without one it has none. ``kept``: how much of its log is.
    ``security`` is XML that says who may do what; without it everybody may do everything.
    """
    directories = ""
    if folder is not None:
        directories = "".join(f"<{one}-directory>{folder / at}</{one}-directory>" for one, at in DIRECTORIES.items())
        directories += retained(folder, kept) if kept else ""
    return _CONFIGURATION.format(
        name=name,
        persists=str(folder is not None and persists).lower(),
        is_secured=str(security != "").lower(),
        core=directories + security + core,
        acceptors="\n".join(f'      <acceptor name="{one}">{uri}</acceptor>' for one, uri in acceptors.items()),
        addresses=addresses,
        settings=settings,
    )


def anycast(name: str, attributes: str = "") -> str:
    """XML for addresses: a queue on its own address."""
    return f'<address name="{name}"><anycast><queue name="{name}" {attributes}/></anycast></address>'


def retained(folder: Path, limits: str = DAYS) -> str:
    """XML for ``core``: the log is kept, below ``folder``."""
    return f"<journal-retention-directory {limits}>{folder / 'kept'}</journal-retention-directory>"


def eventually(
    what: str,
    probe: Callable[[], Value],
    wanted: Callable[[Value], bool],
    wait_s: float = WAIT_S,
    broker: BrokerProcess | None = None,
) -> Value:
    """Asks until the answer is a wanted one and returns it; fails with the last answer, or when the broker ends. What
    takes long to ask is asked less often: else a wait would cost more than what it waits for.
    """
    until = time.monotonic() + wait_s
    while True:
        asked = time.monotonic()
        seen = probe()
        if wanted(seen):
            return seen
        if broker is not None and (code := broker.process.poll()) is not None:
            raise AssertionError(f"{what}: the broker ended with {code}: {broker.said}")
        answered = time.monotonic()
        assert answered < until, f"{what}: still {seen!r} after {wait_s:g} s"
        time.sleep(min(max(POLL_S, 3 * (answered - asked)), PAUSE_MAX_S))


def start_module(name: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
    """``python -m`` a module of this project; it leads a session. What it prints is added to ``log``."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", name, *arguments],
            cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to a process that leads a session, and to all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def needs_descriptors(count: int) -> None:
    """Skips the test where this process may not have so many."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < count:
        pytest.skip(f"{count:,} open files are needed, {soft:,} are allowed (ulimit -Hn)")


def open_below(folder: Path) -> set[Path]:
    """The files below a folder that this process has open. A count of all descriptors changes when garbage goes."""
    found: set[Path] = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing
            found.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
    return {path for path in found if path.is_relative_to(folder)}


def misshapen(said: str) -> list[str]:
    """The lines of a log that are not as docs/monitoring.md says. A last half one is free, and so is what was said
    before the log began: of a first user, or of a start that is refused.
    """
    lines = said.split("\n")[:-1]
    begun = next((place for place, line in enumerate(lines) if _SHAPE.fullmatch(line)), len(lines))
    return [line for line in lines[begun:] if _SHAPE.fullmatch(line) is None]


def ports_left_out(lines: list[str]) -> list[str]:
    """Lines of the log in which the port of each client, which differs each time, is the word PORT."""
    return [re.sub(r"( from=\S+):\d+(?= |$)", r"\1:PORT", line) for line in lines]


class BrokerProcess:
    """One broker's process, what it said, and the ports on which it said it listens."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        descriptors: tuple[int, int] | None = None,
        within: Sequence[str] = (),
        anew: bool = False,
    ) -> None:
        """``within``: a command that executes the one that follows it, in surroundings of its own. ``anew``: in a new
        Python, for tests of the start itself; others begin as a fork of one that has imported the program. Relative
        paths of its files begin in ``folder``, or beside its ``log``: never in the checkout, which all tests share.
        """
        folder = folder or log.parent
        limited = (*_LIMITED, *map(str, descriptors)) if descriptors is not None else ()
        around = (*within, *limited)
        self.log = log
        self.process: subprocess.Popen[bytes] | Forked
        with log.open("wb") as output, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), output.fileno(), output.fileno())
            if anew or around or not starts_alike(environment):
                stdin, stdout, stderr = streams
                self.process = subprocess.Popen(
                    [*around, *COMMAND, *arguments],
                    stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=folder,
                )  # fmt: skip
            else:
                self.process = Forked(arguments, *streams, environment=environment, folder=folder)
        self.ports: dict[str, int] = {}
        self.port = 0
        """Of the acceptor named stomp."""
        self.url = ""
        """Of the acceptor named http."""
        self.code_expected = 0
        """How it ends, if a test does not kill it."""

    @property
    def said(self) -> str:
        """Everything it has printed."""
        return self.log.read_text("utf-8")

    @property
    def state(self) -> str:
        """What it said last that it is: ``ready``, or that for which it waits; empty while it says neither."""
        states = [match["ready"] or match["waits_for"] for match in _STATES.finditer(self.said)]
        return states[-1] if states else ""

    def await_state(self, state: str, wait_s: float = WAIT_S) -> None:
        """Waits until it is ``ready``, or waits for something in which these words are; notes its ports by acceptor."""
        self.eventually(
            state, lambda: self.state, lambda said: said == state or (state != "ready" and state in said), wait_s
        )
        self.note_ports()

    def note_ports(self) -> None:
        """Those that it has said by now."""
        self.ports = {match["name"]: int(match["port"]) for match in _LISTENING.finditer(self.said)}
        self.port = self.ports.get("stomp", 0)
        self.url = f"http://{LOOPBACK}:{self.ports.get('http', 0)}"

    def eventually(
        self, what: str, probe: Callable[[], Value], wanted: Callable[[Value], bool], wait_s: float = WAIT_S
    ) -> Value:
        """Like the function of this name; fails at once when the process has ended."""
        return eventually(what, probe, wanted, wait_s, self)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends it in good order; returns its exit code. Fails when it does not end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_S)

    def kill(self) -> None:
        """Ends what is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.code_expected = self.process.wait()
        self.process.wait()
        assert misshapen(self.said) == [], "not as lines of the log are"

    @property
    def memory_bytes(self) -> int:
        """Resident memory, as Linux counts it."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def ask(self, method: str, path: str, body: object = None, /, **headers: str) -> http.Reply:
        """A request to the acceptor named http, on a connection of its own."""
        return http.ask(self.ports["http"], method, path, body, **headers)

    def api(self, path: str, method: str = "GET", body: object = None) -> Any:
        """The JSON that it answers, which must not be an error."""
        reply = self.ask(method, path, body, content_type="application/json")
        assert reply.status < 300, reply.body
        return reply.json if reply.body else None

    def rows(self, kind: str) -> dict[str, dict[str, Any]]:
        """All queues, or addresses, by name, with what they are."""
        return {row["name"]: row for row in self.api(f"/api/{kind}?size=1000")["data"]}

    def metrics(self, name: str, **labels: str) -> list[float]:
        """The values of all series of this name that have these labels."""
        reply = self.ask("GET", "/metrics")
        assert reply.status == 200, reply.body
        return [
            float(sample["value"])
            for sample in _SAMPLE.finditer(reply.body.decode())
            if sample["name"] == name and labels.items() <= dict(_LABEL.findall(sample["labels"] or "")).items()
        ]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of these; 0 when there are none."""
        return sum(self.metrics(name, **labels))

    @property
    def longest_turn_share(self) -> float:
        """The part of the time of all turns that the longest one took: whatever the machine is, and does beside."""
        return self.metric("artemis_turn_duration_seconds_max") / self.metric("artemis_turn_duration_seconds_sum")

    def await_said(self, words: str | re.Pattern[str]) -> str:
        """Waits until it has said this; returns everything it has printed."""
        pattern = re.escape(words) if isinstance(words, str) else words
        return self.eventually(f"said: {words}", lambda: self.said, lambda text: re.search(pattern, text) is not None)

    def await_metric(self, value: float, name: str, **labels: str) -> None:
        """Waits until the metric has this value."""
        self.eventually(f"{name}{labels}", lambda: self.metric(name, **labels), lambda seen: seen == value)

    def count(self, queue: str) -> int:
        """How many messages the queue holds."""
        return int(self.metric("artemis_message_count", queue=queue))

    def await_count(self, queue: str, count: int) -> None:
        """Waits until the queue holds exactly this many messages."""
        self.await_metric(count, "artemis_message_count", queue=queue)


def for_each_test(
    make: Callable[[Path], AbstractContextManager[Any]], scope: Literal["function", "module"] = "function"
) -> Any:
    """A fixture: what this makes in the test's folder, or in one for all tests of a module."""

    @pytest.fixture(scope=scope)
    def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        of_test = scope == "function"
        with make(request.getfixturevalue("tmp_path") if of_test else tmp_path_factory.mktemp(scope)) as one:
            yield one

    return made


for_the_module = partial(for_each_test, scope="module")


@contextmanager
def started(
    file: Path, *arguments: str, log: Path | None = None, ready: bool = True, **options: Any
) -> Iterator[BrokerProcess]:
    """A broker of this file, from its readiness on, or with ``ready=False`` from its start. Its end is up to the test;
    whatever happens, its process is gone then. ``options`` are those of a BrokerProcess.
    """
    broker = BrokerProcess(["run", str(file), *arguments], log or file.with_suffix(".log"), **options)
    try:
        if ready:
            broker.await_state("ready")
        yield broker
        assert "Traceback" not in broker.said, broker.said
    finally:
        broker.kill()


@contextmanager
def running(
    text: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    anew: bool = False,
    beside: Mapping[str, bytes] | None = None,
) -> Iterator[BrokerProcess]:
    """A broker of this configuration, from its readiness to its end in good order; ``anew``: see BrokerProcess.
    ``beside`` are files in its folder.
    """
    for name, content in {"broker.xml": text.encode(), **(beside or {})}.items():
        (folder / name).write_bytes(content)
    with started(folder / "broker.xml", environment=environment, anew=anew) as broker:
        yield broker
        assert broker.stop() == broker.code_expected, broker.said


def storing(folder: Path, **options: Any) -> AbstractContextManager[BrokerProcess]:
    """A broker that runs with everything in this folder; ``options`` are those of ``configuration``."""
    return running(configuration(folder=folder, **options), folder)
