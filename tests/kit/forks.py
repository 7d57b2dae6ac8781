"""Processes of the program that start in a tenth of the time: a server that has imported it forks each of them.

They are processes of their own, with the same arguments, sockets, files, environment and signals as ``python -m
artemis_py``; only what Python does before the command begins is done once for all of them. That makes it cheap to give
a broker of its own to each of hundreds of tests. Tests of the start itself use a new Python.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = (sys.executable, "-m", "artemis_py")
"""The program in a new Python."""

_IMPORTED: Final = (
    "artemis_py.cli.broker_http",
    "artemis_py.cli.main",
    "artemis_py.cli.operations",
    "artemis_py.cli.options",
    "artemis_py.cli.run",
    "artemis_py.server.http.connection",
    "artemis_py.server.http.log_routes",
    "artemis_py.server.journal_store",
    "artemis_py.server.lifecycle",
    "concurrent.futures.thread",
    "ctypes.util",
    "encodings.idna",
    "prometheus_client",
    "rich.table",
    "uvloop",
    "watchdog.observers",
    __name__,
    "tests.kit.fork_server",
)
"""In the server; it passes over what is not installed."""
_READ_AT_THE_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
"""How variables begin that a process reads before the command begins."""
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(list(_IMPORTED))
_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def starts_alike(environment: Mapping[str, str] | None) -> bool:
    """Would a new Python in this environment begin as this one did?"""
    if environment is None:
        return True
    names = {name for name in environment.keys() | os.environ.keys() if name.startswith(_READ_AT_THE_START)}
    if environment.get("PYTHONPATH") == str(ROOT):
        names.discard("PYTHONPATH")
    return all(environment.get(name) == os.environ.get(name) for name in names)


class Forked:
    """A forked process, with what tests use of ``subprocess.Popen``. The three descriptors become its own."""

    def __init__(
        self,
        arguments: Sequence[str],
        stdin: int,
        stdout: int,
        stderr: int,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        streams = tuple(Connection(os.dup(number)) for number in (stdin, stdout, stderr))  # as such they can travel
        variables = dict(os.environ if environment is None else environment)
        given = ([*map(str, arguments)], streams, variables, str(folder or Path.cwd()))
        self._process = _FORKS.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """To the process, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def run_command(
    words: Sequence[str],
    *,
    typed: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """The program with these arguments, from its start to its end: like ``subprocess.run([*COMMAND, …],
    capture_output=True)``, from a fork where that starts alike. Raises subprocess.TimeoutExpired, and
    CalledProcessError with ``check``.
    """
    if not starts_alike(environment):
        return subprocess.run(
            [*COMMAND, *words],
            input=typed, capture_output=True, timeout=timeout, check=check, cwd=folder, env=environment,
        )  # fmt: skip
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained:
        reads, writes = os.pipe()
        with os.fdopen(writes, "wb", buffering=0) as keyboard:
            try:
                files = (printed.fileno(), complained.fileno())
                process = Forked(words, reads, *files, environment=environment, folder=folder)
            finally:
                os.close(reads)
            with suppress(BrokenPipeError):
                keyboard.write(typed)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        printed.seek(0)
        complained.seek(0)
        done = subprocess.CompletedProcess([*COMMAND, *words], code, printed.read(), complained.read())
    if check:
        done.check_returncode()
    return done


def run_text(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """The same, with text."""
    done = run_command(words, **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def program(*words: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The program with these arguments, in a new Python that is gone in the end. ``options`` are those of Popen."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *map(str, words)], text=True, **{**pipes, **options}) as process:
        try:
            yield process
        finally:
            process.kill()


def said_by(*command: object, **options: Any) -> str:
    """What another program prints, which must end well. ``options`` are those of subprocess.run."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return str(done.stdout)


def _run(arguments: list[str], streams: Sequence[Connection], environment: dict[str, str], folder: str) -> None:
    """What the process does: what Python does between its start and its end."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor.fileno(), number)
        descriptor.close()
        name, mode = _STREAMS[number]
        first = getattr(sys, f"__{name}__")
        buffering = 1 if name == "stderr" else -1
        setattr(sys, name, os.fdopen(number, mode, buffering, first.encoding, first.errors, closefd=False))
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["artemis-py", *arguments]
    from artemis_py.__main__ import main

    try:
        sys.exit(main())
    finally:
        atexit._run_exitfuncs()
