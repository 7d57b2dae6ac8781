"""``python -m bench.http_servers``: the broker's HTTP server beside those of well-kept libraries.

Each serves the same two things from a process of its own: a page of 100 rows as JSON, and a file of 200 MiB. Told are
requests in a second on one connection, and their 99th percentile, alone and while somebody reads the file; how fast the
file is, and what it costs; and the memory of idle connections. A library that is not installed is skipped by name:
``pip install aiohttp uvicorn httptools``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from artemis_py.server.clocks import steady_clock_ms
from artemis_py.server.http.messages import FileBody, HttpLimits, Request, Response, json_response
from artemis_py.server.http.ports import HttpService
from artemis_py.server.http.routing import Route
from artemis_py.shown import say

_HOST: Final = "127.0.0.1"
_MIB: Final = 1 << 20
_CHUNK: Final = 256 * 1024
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_WAIT_S: Final = 30.0
_COLUMNS: Final = (
    "req/s",
    "us of CPU each",
    "p99, ms",
    "file, MiB/s",
    "ms of CPU per MiB",
    "p99 beside a file, ms",
    "KiB per idle connection",
)
ROWS: Final = {"count": 100, "data": [{"name": f"orders.{n}", "messageCount": n, "paused": False} for n in range(100)]}


# ---- the servers -----------------------------------------------------------------------------------


async def _ours(path: str) -> None:
    loop = asyncio.get_running_loop()

    def file(_request: Request) -> Response:
        descriptor = os.open(path, os.O_RDONLY)
        return Response(HTTPStatus.OK, "application/octet-stream", FileBody(descriptor, 0, os.path.getsize(path)))

    def rows(_request: Request) -> Response:
        return json_response(HTTPStatus.OK, ROWS)

    service = HttpService(
        [Route("/rows", {"GET": rows}), Route("/file", {"GET": file})],
        now_ms=steady_clock_ms,
        call_soon=loop.call_soon,
        call_threadsafe=loop.call_soon_threadsafe,
        limits=HttpLimits(connections_max=10_000),
    )
    server = await loop.create_server(service.connect, _HOST, 0, backlog=1024)
    _tell(server.sockets[0])
    await server.serve_forever()


async def _aiohttp(path: str) -> None:
    from aiohttp import web  # type: ignore[import-not-found]

    async def rows(_request: Any) -> Any:
        return web.json_response(ROWS)

    async def file(_request: Any) -> Any:
        return web.FileResponse(path)

    application = web.Application()
    application.router.add_get("/rows", rows)
    application.router.add_get("/file", file)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    listening = _listening()
    await web.SockSite(runner, listening).start()
    _tell(listening)
    await asyncio.Event().wait()


async def _uvicorn(http: str, path: str) -> None:
    import uvicorn  # type: ignore[import-not-found]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/rows":
            body = json.dumps(ROWS).encode()
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": body})
            return
        head = [(b"content-length", str(os.path.getsize(path)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        with Path(path).open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    listening = _listening()
    config = uvicorn.Config(
        application, loop="asyncio", http=http, lifespan="off", access_log=False, log_level="error", ws="none"
    )
    _tell(listening)
    await uvicorn.Server(config).serve([listening])


def _listening() -> socket.socket:
    listening = socket.create_server((_HOST, 0), backlog=1024)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _tell(listening: Any) -> None:
    say(str(listening.getsockname()[1]))
    sys.stdout.flush()


SERVERS: Final[dict[str, tuple[tuple[str, ...], Callable[[str], Any]]]] = {
    "ours, on h11": ((), _ours),
    "aiohttp": (("aiohttp",), _aiohttp),
    "uvicorn, on h11": (("uvicorn",), partial(_uvicorn, "h11")),
    "uvicorn, on httptools": (("uvicorn", "httptools"), partial(_uvicorn, "httptools")),
}


# ---- the client ------------------------------------------------------------------------------------


class Served:
    """A server that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.port = int(process.stdout.readline())

    def connect(self) -> socket.socket:
        """A connection."""
        connection = socket.create_connection((_HOST, self.port), timeout=_WAIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def cpu_s(self) -> float:
        """CPU time of the process, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def memory_bytes(self) -> int:
        """Memory that the process alone uses."""
        return int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(name: str, path: Path) -> Iterator[Served]:
    """A server, which ends with the block."""
    command = [sys.executable, "-m", "bench.http_servers", "--serve", name, "--file", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield Served(process)
    finally:
        process.terminate()
        process.wait(_WAIT_S)


def ask(connection: socket.socket, path: str) -> float:
    """A request and its whole answer; returns the time in ms."""
    began_s = time.perf_counter()
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {_HOST}\r\n\r\n".encode())
    data = connection.recv(_CHUNK)
    while b"\r\n\r\n" not in data:
        data += connection.recv(_CHUNK)
    head, _, rest = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].split()[0]) - len(rest)
    room = memoryview(bytearray(_CHUNK))
    while left > 0:
        left -= connection.recv_into(room)
    return (time.perf_counter() - began_s) * 1e3


def _p99(times_ms: list[float]) -> float:
    return sorted(times_ms)[len(times_ms) * 99 // 100]


def measure(name: str, path: Path, seconds: float, idle_count: int) -> list[str]:
    """A row of the table."""
    with serving(name, path) as served, served.connect() as connection:
        for _ in range(200):
            ask(connection, "/rows")
        cpu_s, until_s, alone = served.cpu_s(), time.monotonic() + seconds, list[float]()
        while time.monotonic() < until_s:
            alone.append(ask(connection, "/rows"))
        cpu_us = (served.cpu_s() - cpu_s) / len(alone) * 1e6

        with served.connect() as reader:
            size_mib = path.stat().st_size / _MIB
            cpu_s, count = served.cpu_s(), 5
            took_ms = sum(ask(reader, "/file") for _ in range(count))
            cpu_ms_per_mib = (served.cpu_s() - cpu_s) * 1e3 / (count * size_mib)
            ended = threading.Event()

            def read_on() -> None:
                while not ended.is_set():
                    ask(reader, "/file")

            thread = threading.Thread(target=read_on)
            thread.start()
            until_s, beside = time.monotonic() + seconds, list[float]()
            while time.monotonic() < until_s:
                beside.append(ask(connection, "/rows"))
            ended.set()
            thread.join()

        memory_bytes = served.memory_bytes()
        idle = [served.connect() for _ in range(idle_count)]
        for one in idle:
            ask(one, "/rows")
        each_kib = (served.memory_bytes() - memory_bytes) / 1024 / idle_count
        for one in idle:
            one.close()
    return [
        f"{len(alone) / seconds:,.0f}",
        f"{cpu_us:.0f}",
        f"{_p99(alone):.2f}",
        f"{count * size_mib * 1e3 / took_ms:,.0f}",
        f"{cpu_ms_per_mib:.2f}",
        f"{_p99(beside):.2f}",
        f"{each_kib:.1f}",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.http_servers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--idle", type=int, default=800)
    parser.add_argument("--serve", choices=list(SERVERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        asyncio.run(SERVERS[options.serve][1](options.file))
        return 0
    say(f"| server | {' | '.join(_COLUMNS)} |")
    say(f"| :-- | {' | '.join(['--:'] * len(_COLUMNS))} |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        with path.open("wb") as file:
            for _ in range(200):
                file.write(os.urandom(_MIB))
        for name, (modules, _) in SERVERS.items():
            missing = [module for module in modules if importlib.util.find_spec(module) is None]
            if missing:
                say(f"| {name} | skipped: {' and '.join(missing)} not installed |")
                continue
            say(f"| {name} | " + " | ".join(measure(name, path, options.seconds, options.idle)) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
