"""Manages a broker by messages over a connection of STOMP, as Artemis has it: asks, and reads the replies."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, Final, final

from artemis_py.cli.data.client import Sender
from artemis_py.errors import ArtemisError
from artemis_py.message import encode_headers

_WHERE: Final = "activemq.management"
_PROBE_S: Final = 10.0
"""So long a broker may be silent before it is taken for one that nobody manages by messages."""
_EXPIRES_MS: Final = 60_000
"""Where this is an ordinary address, nothing of what was asked stays."""
_SUBSCRIPTION: Final = "replies"


class UnmanageableError(ArtemisError):
    """The user may not manage, or the broker does not answer. The connection may be of no use any more."""


@final
class Manager:
    """Replies come to a queue of its own, which management makes: so they come where no client may make queues, too.
    Without its consumer the broker deletes it. Methods raise ArtemisError when the connection ends.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._replies = f"artemis-py.import.{uuid.uuid4().hex}"
        self._asked = 0

    @staticmethod
    async def of(sender: Sender) -> Manager:
        """A manager on a connection. Raises UnmanageableError."""
        manager = Manager(sender)
        try:
            await manager._begin()
        except UnmanageableError:
            raise
        except ArtemisError as error:
            raise UnmanageableError(str(error)) from None
        return manager

    async def _begin(self) -> None:
        name = self._replies
        wanted = {"name": name, "address": name, "routing-type": "ANYCAST", "durable": False}
        wanted |= {"auto-create-address": True, "auto-delete": True, "max-consumers": 1}
        creation = json.dumps(wanted), True
        await self._confirmed("SEND", self._request("broker", "createQueue", None), json.dumps(creation), _PROBE_S)
        subscribe = [("destination", name), ("id", _SUBSCRIPTION), ("ack", "auto"), ("subscription-type", "ANYCAST")]
        await self._confirmed("SUBSCRIBE", subscribe, "", _PROBE_S)
        done, value = await self._ask("broker", "createQueue", creation, _PROBE_S)  # what came of it is told now
        if not done:
            raise UnmanageableError(str(value))

    async def ask(self, resource: str, operation: str, *arguments: object) -> tuple[bool, Any]:
        """Whether an operation was done, and its value or the reason."""
        return await self._ask(resource, operation, arguments, None)

    async def read(self, resource: str, attribute: str) -> Any:
        """An attribute; None if there is no such resource, or nobody may see it."""
        done, value = await self._reply(self._request(resource, None, attribute), "", None)
        return value if done else None

    async def end(self) -> None:
        """Remove the queue of replies."""
        await self._confirmed("UNSUBSCRIBE", [("id", _SUBSCRIPTION)], "")
        removal = json.dumps([self._replies, True, True])
        await self._confirmed("SEND", self._request("broker", "destroyQueue", None), removal)

    async def _ask(
        self, resource: str, operation: str, arguments: tuple[object, ...], wait_s: float | None
    ) -> tuple[bool, Any]:
        return await self._reply(self._request(resource, operation, None), json.dumps(arguments), wait_s)

    def _request(self, resource: str, operation: str | None, attribute: str | None) -> list[tuple[str, str]]:
        asked = ("_AMQ_Attribute", attribute) if operation is None else ("_AMQ_OperationName", operation)
        expires_ms = round(time.time() * 1000) + _EXPIRES_MS
        return [
            ("destination", _WHERE),
            ("expires", str(expires_ms)),
            ("_AMQ_ResourceName", resource),
            (asked[0], asked[1] or ""),
        ]

    async def _confirmed(
        self, command: str, headers: list[tuple[str, str]], body: str, wait_s: float | None = None
    ) -> None:
        receipt = self._sender.next_receipt()
        await self._write(command, [*headers, ("receipt", receipt)], body)
        await self._sender.confirmed(receipt, wait_s)

    async def _reply(self, headers: list[tuple[str, str]], body: str, wait_s: float | None) -> tuple[bool, Any]:
        self._asked += 1
        number = str(self._asked)
        await self._write("SEND", [*headers, ("reply-to", self._replies), ("correlation-id", number)], body)
        while (answer := await self._sender.message(wait_s)).headers.get("correlation-id") != number:
            pass
        try:
            values = json.loads(answer.body or b"[null]")
            return answer.headers.get("_AMQ_OperationSucceeded") == "true", values[0]
        except (ValueError, LookupError, TypeError):
            raise ArtemisError(f"this is no reply of management: {answer.text}") from None

    async def _write(self, command: str, headers: list[tuple[str, str]], body: str) -> None:
        await self._sender.write(f"{command}\n".encode() + encode_headers(headers) + body.encode() + b"\0")
