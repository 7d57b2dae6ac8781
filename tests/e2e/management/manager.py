"""A client that manages a broker by messages over STOMP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.e2e.management.told import Told
from tests.kit.client import StompSocket

WHERE: Final = "activemq.management"
MANAGER: Final = "manager"
"""The client-id of the one in tests, and the queue of its replies. Its rows in lists are known by it."""
_ELSEWHERE: Final = "127.0.0.2"


class Manager:
    """A client that asks and waits for the reply."""

    def __init__(self, client: StompSocket, reply_to: str = "/temp-queue/replies") -> None:
        self.client = client
        self._reply_to = reply_to
        client.subscribe(reply_to, id="replies", ack="auto")

    def ask(self, resource: str, operation: str, *arguments: object, **more: str) -> tuple[bool, Any]:
        """Whether it was done, and the value."""
        return self.reply({"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation, **more}, arguments)

    def read(self, resource: str, attribute: str) -> Any:
        """An attribute."""
        done, value = self.reply({"_AMQ_ResourceName": resource, "_AMQ_Attribute": attribute})
        assert done, value
        return value

    def reply(self, headers: dict[str, str], arguments: object = ()) -> tuple[bool, Any]:
        """The reply to a message with these headers."""
        sent = {"destination": WHERE, "reply-to": self._reply_to, **headers}
        self.client.send("SEND", sent, json.dumps(arguments).encode())
        message = self.client.message()
        succeeded = message.header("_AMQ_OperationSucceeded")
        assert succeeded in ("true", "false")
        values = json.loads(message.body) if message.body else [None]
        assert len(values) == 1
        return succeeded == "true", values[0]


@contextmanager
def manager_of(told: Told) -> Iterator[Manager]:
    """A manager for a while, at another IP address than other clients: it may close the connections from theirs."""
    with StompSocket(told.broker.port, own_address=_ELSEWHERE) as client:
        client.connect(client_id=MANAGER)
        yield Manager(client, f"/queue/{MANAGER}")
