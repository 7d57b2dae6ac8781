"""The way of a message, counted: which functions one exchange enters, in which files, with how many system calls.

`python tools/way.py` prints a table of all exchanges; `--guide EXCHANGE` prints the way of one message as a reader's
guide: file by file, in order, with what each function does. `--write` stores the counts in `tests/way/figures.json`,
which `tests/way` compares with. Counts depend neither on the machine nor on its load, as times do.

A broker of its own runs on loopback. While a profiler counts there, a client exchanges messages with it, one at a time,
after some that warm it up. With compiled modules only interpreted functions are seen, and the system calls that they
make: on the way of a message there are none of ours, and asyncio's calls.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from artemis_py.version import IS_COMPILED
from bench.certificate import write_certificate, write_pem

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "tests" / "way" / "figures.json"
WARM: Final = 300
MESSAGES: Final = 400
BUILD: Final = "compiled" if IS_COMPILED else "interpreted"
"""Which figures count: those of compiled modules are of what is interpreted all the same."""
OFTEN: Final = 0.1
"""What happens less often than once in ten messages belongs to a timer or to a thread, and does not count."""
_WAIT_S: Final = 60.0
_CLIENTS: Final = 100
_BODY: Final = b"x" * 100
_HOST: Final = "127.0.0.1"
_SYSTEM_MODULES: Final = ("posix", "select", "_socket", "socket")
_SYSTEM_CALLS: Final = frozenset((
    "accept", "close", "fdatasync", "fstat", "fsync", "ftruncate", "open", "poll", "pread", "pwrite", "read", "readv",
    "recv", "recv_into", "rename", "send", "sendall", "sendmsg", "shutdown", "stat", "unlink", "write", "writev",
))  # fmt: skip
_CONFIGURATION: Final = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<name>way</name><persistence-enabled>true</persistence-enabled>{security}
<journal-directory>{folder}/journal</journal-directory><paging-directory>{folder}/paging</paging-directory>
<large-messages-directory>{folder}/large</large-messages-directory>
<acceptors><acceptor name="stomp">{url}</acceptor></acceptors>
</core></configuration>"""
_PARAMS: Final = "protocols=STOMP;anycastPrefix=/queue/;multicastPrefix=/topic/"
_OPEN: Final = "<security-enabled>false</security-enabled>"
_SECURED: Final = """<populate-validated-user>true</populate-validated-user>
<security-settings><security-setting match="#">
<permission type="send" roles="senders"/><permission type="createAddress" roles="senders"/>
<permission type="createDurableQueue" roles="senders"/>
</security-setting></security-settings>"""
_USER: Final = "way"


# ---- in the broker's process -----------------------------------------------------------------------------------------


class Counted:
    """What a profiler saw between two signals. It runs in the thread of the event loop, so no other thread counts."""

    def __init__(self, result: Path) -> None:
        self._result = result
        self._places: dict[CodeType, tuple[str, str]] = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._system: Counter[str] = Counter()
        self._order: list[tuple[str, str, int, str]] = []
        signal.signal(signal.SIGUSR1, self._begin)
        signal.signal(signal.SIGUSR2, self._end)

    def _begin(self, number: int, frame: FrameType | None) -> None:
        sys.setprofile(self._see)

    def _end(self, number: int, frame: FrameType | None) -> None:
        sys.setprofile(None)
        calls = [[file, name, count] for (file, name), count in self._calls.items()]
        unfinished = self._result.with_suffix(".part")
        unfinished.write_text(json.dumps({"calls": calls, "system": self._system, "order": self._order}))
        unfinished.rename(self._result)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            place = self._places.get(code) or self._place(code)
            if place[0]:
                self._calls[place] += 1
                if len(self._order) < 100_000:
                    self._order.append((*place, code.co_firstlineno, _first_sentence(code)))
        elif event in {"c_call", "c_exception"} and argument.__name__ in _SYSTEM_CALLS:
            owner = argument.__module__ or type(argument.__self__).__module__
            if owner in _SYSTEM_MODULES:  # one that fails only polled, as often as time allowed
                self._system[argument.__name__] += 1 if event == "c_call" else -1

    def _place(self, code: CodeType) -> tuple[str, str]:
        _, found, file = code.co_filename.rpartition("artemis_py/")
        place = self._places[code] = (file if found else "", getattr(code, "co_qualname", code.co_name))
        return place


def _first_sentence(code: CodeType) -> str:
    """What a function's docstring says first; empty if it has none."""
    text = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else ""
    return " ".join(text.split()).partition(". ")[0].rstrip(".") if " " in text else ""


def _run_broker(result: str, configuration: str) -> None:
    from artemis_py.cli.main import main

    Counted(Path(result))
    sys.exit(main(["run", configuration]))


# ---- the client ------------------------------------------------------------------------------------------------------


class Client:
    """One connection, which asks and waits."""

    def __init__(self, port: int, login: str, trusting: ssl.SSLContext | None) -> None:
        """``login`` is headers of CONNECT. With ``trusting`` the client speaks TLS."""
        self.socket = socket.create_connection((_HOST, port), timeout=_WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if trusting is not None:
            self.socket = trusting.wrap_socket(self.socket, server_hostname=_HOST)
        self._got = b""
        self.ask(f"CONNECT\naccept-version:1.2\nhost:way\n{login}\n\0".encode())

    def ask(self, frame: bytes) -> bytes:
        """Send a frame, and return the next one that comes."""
        self.socket.sendall(frame)
        return self.next_frame()

    def next_frame(self) -> bytes:
        """Raises RuntimeError for an ERROR and at the end of the connection."""
        while b"\0" not in self._got:
            more = self.socket.recv(65536)
            if not more:
                raise RuntimeError(f"the broker closed the connection: {self._got[:300]!r}")
            self._got += more
        frame, _, self._got = self._got.partition(b"\0")
        self._got = self._got.lstrip(b"\n")
        if frame.startswith(b"ERROR"):
            raise RuntimeError(frame[:300].decode("utf-8", "replace"))
        return frame

    def subscribe(self, queue: str, ack: str) -> None:
        """Subscribe, and wait until that is done."""
        self.ask(f"SUBSCRIBE\nid:1\ndestination:/queue/{queue}\nack:{ack}\nreceipt:s\n\n\0".encode())


Connect = Callable[[], Client]


def _send(queue: str, *, durable: bool = False, receipt: bool = True) -> bytes:
    more = ("persistent:true\n" if durable else "") + ("receipt:r\n" if receipt else "")
    head = f"SEND\ndestination:/queue/{queue}\n{more}content-length:{len(_BODY)}\n\n"
    return head.encode() + _BODY + b"\0"


def _publish(connect: Connect) -> Iterator[None]:
    client = connect()
    while True:
        client.ask(_send("publish"))
        yield


def _durable(connect: Connect) -> Iterator[None]:
    client = connect()
    while True:
        client.ask(_send("durable", durable=True))
        yield


def _deliver(connect: Connect) -> Iterator[None]:
    sender, consumer = connect(), connect()
    consumer.subscribe("deliver", "auto")
    while True:
        sender.socket.sendall(_send("deliver", receipt=False))
        consumer.next_frame()
        yield


def _work(connect: Connect) -> Iterator[None]:
    sender, consumer = connect(), connect()
    consumer.subscribe("work", "client-individual")
    while True:
        sender.ask(_send("work", durable=True))
        message = consumer.next_frame()
        number = next(line for line in message.split(b"\n") if line.startswith(b"ack:"))[4:]
        consumer.ask(b"ACK\nid:" + number + b"\nreceipt:a\n\n\0")
        yield


def _hundred(connect: Connect) -> Iterator[None]:
    clients = [connect() for _ in range(_CLIENTS)]
    waiting = {client.socket.fileno(): client for client in clients}
    ready = select.epoll()
    for number in waiting:
        ready.register(number, select.EPOLLIN)
    while True:
        for place, client in enumerate(clients):
            client.socket.sendall(_send(f"hundred{place}", durable=True))
        left = len(clients)
        while left:
            for number, _ in ready.poll(_WAIT_S):
                waiting[number].next_frame()
                left -= 1
        for _ in clients:
            yield


class Exchange(NamedTuple):
    """``what`` it is, in words. Each of the ``steps`` is a message of it."""

    what: str
    steps: Callable[[Connect], Iterator[None]]
    is_tls: bool = False
    is_secured: bool = False
    """Do clients log in, with the right to send, and get their names into their messages?"""


EXCHANGES: Final = {
    "publish": Exchange("A transient SEND with a receipt.", _publish),
    "durable": Exchange("A SEND with a receipt that must be on the disk.", _durable),
    "deliver": Exchange("A transient SEND without a receipt, to a consumer that acknowledges nothing.", _deliver),
    "work": Exchange("A durable SEND, its MESSAGE, and the ACK, with two receipts.", _work),
    "hundred": Exchange("A durable SEND with a receipt of each of a hundred clients, all at once.", _hundred),
    "tls": Exchange("A transient SEND with a receipt, over TLS.", _publish, is_tls=True),
    "secured": Exchange(
        "A transient SEND with a receipt, of a user with the right to send, whose name goes into the message.",
        _publish,
        is_secured=True,
    ),
}


class Way:
    """What one message of an exchange costs: calls of functions by file and name, and system calls by name."""

    def __init__(self, counted: dict[str, Any], messages: int) -> None:
        self.functions = {
            f"{file}:{name}": round(count / messages, 1)
            for file, name, count in counted["calls"]
            if count >= OFTEN * messages
        }
        self.system = {name: round(count / messages, 1) for name, count in counted["system"].items() if count > 0}
        self.order: list[tuple[str, str, int, str]] = [tuple(one) for one in counted["order"]]

    @property
    def calls(self) -> float:
        """How many functions are entered."""
        return float(round(sum(self.functions.values()), 1))

    @property
    def files(self) -> int:
        """How many files they are in."""
        return len({place.partition(":")[0] for place in self.functions})

    @property
    def system_calls(self) -> float:
        """How many system calls the event loop's thread makes."""
        return float(round(sum(self.system.values()), 1))

    def figures(self) -> dict[str, Any]:
        """What is stored."""
        functions = dict(sorted(self.functions.items()))
        return {"calls": self.calls, "files": self.files, "system_calls": self.system_calls, "functions": functions}


def count(name: str, messages: int = MESSAGES, warm: int = WARM) -> Way:
    """Run an exchange. Raises RuntimeError if the broker does not start or refuses something."""
    exchange = EXCHANGES[name]
    with TemporaryDirectory(prefix="way-") as path:
        folder = Path(path)
        configuration, result, log = folder / "broker.xml", folder / "result.json", folder / "log"
        with socket.create_server((_HOST, 0)) as free:
            port = free.getsockname()[1]
        tls, trusting = "", None
        if exchange.is_tls:
            tls = f";sslEnabled=true;keyStorePath={write_pem(folder)}"
            trusting = ssl.create_default_context(cafile=write_certificate(folder))
        login = ""
        if exchange.is_secured:
            login = f"login:{_USER}\npasscode:{_USER}\n"
            (folder / "artemis-users.properties").write_text(f"{_USER}={_USER}\n")
            (folder / "artemis-roles.properties").write_text(f"senders={_USER}\n")
        url = f"tcp://{_HOST}:{port}?{_PARAMS}{tls}"
        configuration.write_text(
            _CONFIGURATION.format(folder=folder, url=url, security=_SECURED if exchange.is_secured else _OPEN)
        )
        command = [sys.executable, __file__, "--broker", str(result), str(configuration)]
        # uvloop makes its system calls where nobody counts them
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "ARTEMIS_PY_LOOP": "asyncio"}
        with log.open("wb") as out:
            broker = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            try:
                _wait_until(lambda: b"is ready" in log.read_bytes() or broker.poll() is not None)
                if broker.poll() is not None:
                    raise RuntimeError(log.read_text())
                steps = exchange.steps(partial(Client, port, login, trusting))
                _take(steps, warm)
                broker.send_signal(signal.SIGUSR1)
                _take(steps, messages)
                broker.send_signal(signal.SIGUSR2)
                _wait_until(result.exists)
                return Way(json.loads(result.read_text()), messages)
            finally:
                broker.terminate()
                broker.wait(_WAIT_S)


def _take(steps: Iterator[None], number: int) -> None:
    for _ in range(number):
        next(steps)


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the broker has not answered within {_WAIT_S:g} s")
        time.sleep(0.01)


# ---- what people see -------------------------------------------------------------------------------------------------


def guide(way: Way) -> str:
    """The way of one message: each file once for each time the way comes to it, with the functions entered there."""
    message = _one_message(way.order)
    lines: list[str] = []
    before = ""
    for file, name, line, what in message:
        if file != before:
            lines.append(f"\n{file}  {_about(file)}")
            before = file
        lines.append(f"  {line:5}  {name}{': ' if what else ''}{what}")
    return "\n".join(lines).strip("\n")


def _one_message(order: list[tuple[str, str, int, str]]) -> list[tuple[str, str, int, str]]:
    """From one arrival of input to the next one of the same kind, somewhere in the middle."""
    starts = [place for place, (_, name, _, _) in enumerate(order) if name.endswith(("get_buffer", ".receive"))]
    names = [order[place][1] for place in starts]
    if len(starts) < 8:
        return order
    first = starts[len(starts) // 2]
    kind = order[first][1]
    following = [place for place, name in zip(starts, names, strict=True) if place > first and name == kind]
    return order[first : following[0]] if following else order[first:]


def _about(file: str) -> str:
    """The first sentence of a module's docstring."""
    path = ROOT / "artemis_py" / file
    text = path.read_text() if path.is_file() else ""
    return " ".join(text.split('"""')[1].split()).partition(". ")[0].rstrip(".") if text.startswith('"""') else ""


def main() -> int:
    """The exit code: 0, or 1 when an exchange does not work."""
    if sys.argv[1:2] == ["--broker"]:
        _run_broker(*sys.argv[2:4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exchanges", nargs="*", metavar="EXCHANGE", help=f"{', '.join(EXCHANGES)}; none: all of them")
    parser.add_argument("--guide", action="store_true", help="print the way of one message, file by file")
    parser.add_argument("--write", action="store_true", help=f"store the counts in {FIGURES.relative_to(ROOT)}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.exchanges if name not in EXCHANGES]
    if unknown:
        parser.error(f"no exchange {unknown[0]!r}; there are {', '.join(EXCHANGES)}")
    figures: dict[str, Any] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    of_build = figures.setdefault(BUILD, {})
    for name in arguments.exchanges or EXCHANGES:
        try:
            way = count(name)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        if arguments.guide:
            print(f"{name}: {EXCHANGES[name].what}\n\n{guide(way)}\n")
        else:
            numbers = f"{way.calls:6} calls in {way.files:3} files, {way.system_calls:5} system calls"
            print(f"{name:8} {numbers}  {EXCHANGES[name].what}", flush=True)
        of_build[name] = way.figures()
    if arguments.write:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
