"""The client of the scenarios: headers have the escapes of its version, and bodies come without their length."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from tests.kit.client import Closed, StompSocket
from tests.kit.frames import escaped_frame

WAIT_S = 10.0


class Client(StompSocket):
    """It says everything that a scenario wants to be said; to Artemis a body without length is a text."""

    def send(self, command: str, headers: Mapping[str, object] | None = None, body: bytes = b"") -> None:
        self.raw(escaped_frame(command, headers or {}, body, self.stream.version))

    def wait_for_end(self) -> None:
        """Returns when the broker has closed the connection, and nothing but messages came before that."""
        with suppress(Closed, ConnectionResetError):
            while True:
                self.message()
