"""``artemis-py test-broker``: a broker for the tests of any language, which ends with the program that started it."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import stat
import sys
import threading
from typing import TYPE_CHECKING, Final

from artemis_py.terminal_output import say_made

if TYPE_CHECKING:
    from artemis_py.testing.broker import ArtemisBroker

HELP = "start a broker for the tests of a program in any language, on a free port"
_PORT_MAX: Final = 65535
_STDIN: Final = 0
_ANYBODY: Final = "admin"
_READ_BYTES: Final = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``test-broker``."""
    parser.add_argument("--port", type=_port, default=0, help="the port for STOMP (0, the default: a free one)")
    parser.add_argument("--config", metavar="FILE", help="a broker.xml; its other ports are free ones of this machine")
    parser.add_argument(
        "--queue", action="append", default=[], metavar="NAME", help="a queue to begin with; repeatable"
    )
    parser.add_argument("--journal", metavar="DIRECTORY", help="keep durable messages here (default: all in memory)")
    parser.add_argument("--json", action="store_true", help="print the line as JSON: it always is")
    parser.epilog = (
        "When it is ready it prints one line of JSON on standard output: host, port, url, ws_url, http_url, user, "
        "password, pid. It ends with the program that started it, when its standard input, if that is a pipe, a "
        "socket or a terminal, is closed, and on SIGTERM."
    )


def _port(text: str) -> int:
    """A port, as a number. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) <= _PORT_MAX):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {_PORT_MAX}, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Runs the broker until its parent is done with it. Raises ArtemisError if it cannot start."""
    from artemis_py.testing.broker import ArtemisBroker

    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    broker = ArtemisBroker(args.config, queues=args.queue, persistence=args.journal or False, port=args.port, http=True)
    parent = _opened(os.getppid())
    with broker:
        say_made(json.dumps(_told(broker)))
        sys.stdout.flush()
        if parent is not None:
            threading.Thread(target=_await_end, args=(parent, over), name="parent", daemon=True).start()
        if _is_lifeline():
            threading.Thread(target=_read_to_the_end, args=(over,), name="standard input", daemon=True).start()
        over.wait()
    return 0


def _told(broker: ArtemisBroker) -> dict[str, str | int | None]:
    """What the parent has to know. A login is there for clients that insist on one; where the configuration asks for
    logins, it says which.
    """
    login = None if broker.asks_for_logins else _ANYBODY
    return {
        "host": broker.host,
        "port": broker.port,
        "url": broker.url,
        "ws_url": broker.ws_url,
        "http_url": broker.http_url,
        "user": login,
        "password": login,
        "pid": os.getpid(),
    }


def _opened(process: int) -> int | None:
    """A descriptor of the parent; None if that has ended, or is the first process, which adopts all others."""
    if process <= 1:
        return None
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):  # Linux alone has it; elsewhere standard input is what ends
        return None


def _await_end(process: int, over: threading.Event) -> None:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll()
    over.set()


def _is_lifeline() -> bool:
    """Does standard input end when the parent does? Not if it is a file, or nothing at all."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(_STDIN)


def _read_to_the_end(over: threading.Event) -> None:
    try:
        while os.read(_STDIN, _READ_BYTES):
            pass
    except OSError:
        pass
    over.set()
