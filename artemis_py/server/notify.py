"""Tells the supervisor that started the process how it is: systemd's notifications, a datagram each.

``$NOTIFY_SOCKET`` names the socket. Without it nothing is sent, and a supervisor that does not listen is no failure of
the broker. The watchdog is fed by the event loop, so a turn that hangs is noticed.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, final

_EXTEND_US: Final = 60_000_000
"""How long a step of a start or a stop may take, whatever the supervisor's own limit is."""


def _address_of(environ: Mapping[str, str]) -> str | None:
    """The address of the supervisor's socket; None if there is none of a kind that is known."""
    text = environ.get("NOTIFY_SOCKET", "")
    if text.startswith("@"):  # a name that is in no directory
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _watchdog_s_of(environ: Mapping[str, str]) -> float | None:
    """How often the watchdog must be fed; None if there is none for this process."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environ.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isascii() and text.isdigit() and int(text) > 0 else None


@final
class Notifier:
    """The notifications of one process. ``environ`` is the environment that the supervisor gave."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        known = os.environ if environ is None else environ
        self._address = _address_of(known)
        self._watchdog_s = None if self._address is None else _watchdog_s_of(known)
        self._socket: socket.socket | None = None
        self._is_ready = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Feed the watchdog from the event loop from now on, twice as often as it must be."""
        if self._watchdog_s is not None:
            self._send("WATCHDOG=1")
            loop.call_later(self._watchdog_s / 2, self.watch, loop)

    def status(self, text: str) -> None:
        """What the process does now, for ``systemctl status``."""
        self._send(f"STATUS={text}")

    def ready(self, status: str) -> None:
        """The start is over."""
        self._is_ready = True
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, status: str, wait_ms: int = 0) -> None:
        """The stop has begun, and may wait for clients for ``wait_ms``."""
        self._send("STOPPING=1", f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={wait_ms * 1000 + _EXTEND_US}")

    def progress(self, status: str) -> None:
        """A step of something that keeps the event loop busy is done."""
        parts = [f"STATUS={status}"]
        if not self._is_ready:
            parts.append(f"EXTEND_TIMEOUT_USEC={_EXTEND_US}")
        if self._watchdog_s is not None:
            parts.append("WATCHDOG=1")
        self._send(*parts)

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        data = "\n".join(line.replace("\n", " ") for line in assignments).encode("utf-8", "replace")
        with suppress(OSError):
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._socket.setblocking(False)
            self._socket.sendto(data, self._address)

    def close(self) -> None:
        """Send nothing more."""
        self._address = self._watchdog_s = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
