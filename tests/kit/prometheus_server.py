"""A real Prometheus as a process."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, STOP_S, WAIT_S, eventually


@dataclass(frozen=True)
class Server:
    """The process, its port and what it says."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def eventually(self, what: str, probe: Callable[[], object], expected: object) -> None:
        """Asks until the answer is the expected one; fails with the last answer, or when the process has ended."""
        try:
            seen = eventually(what, probe, lambda seen: seen == expected or self.process.poll() is not None)
            assert seen == expected, f"{seen!r}, and it ended with {self.process.poll()}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()}") from None

    def get(self, path: str, **parameters: str) -> Any:
        """What the API says under this path."""
        url = f"http://{LOOPBACK}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples that an expression finds now: ``metric`` are the labels of each."""
        return list(self.get("query", query=expression)["result"])

    def is_ready(self) -> bool:
        """Does it answer?"""
        try:
            return self.query("1") != []
        except OSError:
            return False


@contextmanager
def prometheus_with(program: str, configuration: str, folder: Path, *options: str) -> Iterator[Server]:
    """A Prometheus with its files in ``folder``, from its readiness to its end by SIGTERM."""
    file = folder / "prometheus.yml"
    file.write_text(configuration, "utf-8")
    port = free_port()
    command: Sequence[str] = (
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=warn",
        *options,
    )
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        server = Server(process, port, log)
        server.eventually("ready", server.is_ready, True)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
