"""Starts and stops a broker. How long it takes from the start command to the first CONNECTED (scenario 10), also with a
journal full of messages (scenario ``recovery``).
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, Final

from artemis_py.errors import PerfError
from artemis_py.perf.durable import GROUP, fill
from artemis_py.perf.link import Link, Target
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.pump import Pump, Receiver, body_of, marker_of
from artemis_py.perf.scenario import Run, Scenario

POLL_S: Final = 0.002
STOP_S: Final = 20.0
SILENCE_S: Final = 5.0
LAST_LINES: Final = 5


class Startup(Scenario):
    """Starts the broker itself, asks for a connection every 2 ms, and stops the broker with SIGTERM."""

    id = "10"
    title = "start to first CONNECTED"
    headline = "start_ms"
    needs_broker = False

    def run(self, run: Run) -> dict[str, float]:
        """Milliseconds from the process's start, and its memory then. Raises PerfError if it does not start."""
        if not run.options.start_command:
            raise PerfError("scenario 10 needs --start-command, the command that starts the broker in the foreground")
        command = shlex.split(run.options.start_command)
        with running(command, run.target, run.options.limit_s, run.progress.show) as broker:
            metrics = {"start_ms": broker.start_s * 1000}
            metrics |= replace(run, process=ProcessTree(broker.pid)).resident_mb()
        return metrics


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that has sent CONNECTED; ``start_s`` is how long that took."""

    pid: int
    start_s: float


@contextmanager
def running(
    command: Sequence[str],
    target: Target,
    limit_s: float,
    show: Callable[[Callable[[], str]], None],
    link: type[Link] = Link,
) -> Iterator[RunningBroker]:
    """Starts a broker in its own process group and stops the whole group at the end of the block. ``link`` logs in.

    Raises PerfError if the address is in use, the command ends, or no CONNECTED arrives within ``limit_s`` seconds.
    """
    if _listening(target):
        raise PerfError(f"another process already listens on {target.url}")
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)
        except OSError as error:
            raise PerfError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            _await_connected(process, target, limit_s, output, show, link)
            yield RunningBroker(process.pid, time.perf_counter() - started)
        finally:
            _stop_group(process)
            _await_silence(target)


def _listening(target: Target) -> bool:
    try:
        socket.create_connection((target.host, target.port), timeout=1).close()
    except OSError:
        return False
    return True


def _await_connected(
    process: subprocess.Popen[bytes],
    target: Target,
    limit_s: float,
    output: IO[bytes],
    show: Callable[[Callable[[], str]], None],
    link: type[Link],
) -> None:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if process.poll() is not None:
            raise PerfError(f"the start command ended with exit code {process.returncode}: {_last_lines(output)}")
        if _listening(target):
            link(target).close()
            return
        show(lambda: "waiting for CONNECTED")
        time.sleep(POLL_S)
    raise PerfError(f"no CONNECTED within {limit_s:g} s of the start: {_last_lines(output)}")


def _last_lines(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()
    return " | ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip()) or "(no output)"


def _stop_group(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the process group, and SIGKILL to the rest after 20 seconds."""
    _signal_group(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _await_silence(target: Target) -> None:
    """Wait until the port is free: a killed process may hold it a moment longer than its parent lives."""
    until = time.monotonic() + SILENCE_S
    while _listening(target) and time.monotonic() < until:
        time.sleep(POLL_S)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


# ---- recovery --------------------------------------------------------------------------------------------------------


MESSAGES: Final = 300_000


class Recovery(Scenario):
    """Starts the broker, fills a queue with durable messages, stops the broker and starts it again.

    The time of the first start, with an empty journal, is subtracted.
    """

    id = "recovery"
    title = "start with a full journal"
    headline = "records_per_second"
    needs_broker = False

    def run(self, run: Run) -> dict[str, float]:
        """Recovered messages per second. Raises PerfError if a message is missing afterwards."""
        if not run.options.start_command:
            raise PerfError("scenario recovery needs --start-command, the command that starts the broker")
        command = shlex.split(run.options.start_command)
        count = -(-(run.options.messages or MESSAGES) // GROUP) * GROUP
        body = body_of(run.options.size or 100)
        queue = run.queue()
        limit_s = run.options.limit_s
        with running(command, run.target, limit_s, run.progress.show) as empty:
            fill(run, queue, body, count)
        with running(command, run.target, limit_s, run.progress.show) as full:
            metrics = {"messages": float(count), "start_ms": full.start_s * 1000}
            metrics |= replace(run, process=ProcessTree(full.pid)).resident_mb()
            self._count(run, queue, body, count)
        metrics["records_per_second"] = count / max(full.start_s - empty.start_s, 0.001)
        return metrics

    def _count(self, run: Run, queue: str, body: bytes, count: int) -> None:
        with Link(run.target) as link:
            link.subscribe(queue, confirm=False)
            receiver = Receiver(link, marker_of(body), count)
            Pump([], [receiver], frame_bytes=1, limit_s=run.options.limit_s, progress=run.progress).run()
            surplus = link.goodbye()
        if surplus:
            raise PerfError(f"{surplus:,} more messages came back than were sent")
