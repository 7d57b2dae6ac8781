"""A client of ``/api/events``, which reads one event after the other."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess


@dataclass(frozen=True)
class Event:
    """One event as it came."""

    kind: str
    data: dict[str, Any]
    id: str


class EventStream(closing["EventStream"]):
    """A response that goes on."""

    def __init__(self, broker: BrokerProcess, *watch: str, type: tuple[str, ...] = (), **headers: str) -> None:
        super().__init__(self)
        query = urlencode([("watch", one) for one in watch] + [("type", one) for one in type])
        self._connection = http.client.HTTPConnection(LOOPBACK, broker.ports["http"], timeout=WAIT_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", f"/api/events?{query}", headers=named)
        self.socket: socket.socket = self._connection.sock
        self.response = self._connection.getresponse()
        self.status = self.response.status

    def next(self) -> Event:
        """The next event."""
        fields: dict[str, str] = {}
        line = ""
        while "data" not in fields or line:
            raw = self.response.readline()
            assert raw, "the stream has ended"
            line = raw.decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name and not line.startswith(":"):
                assert name not in fields, f"{name} twice in one event"
                fields[name] = value
        return Event(fields["event"], json.loads(fields["data"]), fields.get("id", ""))

    def until(self, kind: str, holds: Callable[[dict[str, Any]], bool] = lambda _: True) -> Event:
        """The next event of a kind that holds; others are dropped."""
        while True:
            event = self.next()
            if event.kind == kind and holds(event.data):
                return event

    def notification(self, type: str) -> dict[str, Any]:
        """The next notification of a type."""
        return self.until("notification", lambda data: data["type"] == type).data

    def close(self) -> None:
        """Leaves."""
        self.response.close()
        self._connection.close()
