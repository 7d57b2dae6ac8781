"""Manages a broker by messages over a connection of STOMP, as Artemis has it: asks, and reads the replies."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final, final

from artemis_py.cli.data.client import Sender
from artemis_py.errors import ArtemisError
from artemis_py.message import encode_headers
from artemis_py.perf.reader import ServerFrame

_WHERE: Final = "activemq.management"
_PROBE_S: Final = 10.0
"""So long a broker may be silent before it is taken for one that nobody manages by messages."""
_EXPIRES_MS: Final = 60_000
"""Where this is an ordinary address, nothing of what was asked stays."""
_SUBSCRIPTION: Final = "replies"
_AT_ONCE: Final = 64
"""So many requests go out before their replies are read. Each is small: both sides have room for them."""
Reply = tuple[bool, Any]
"""Whether something was done, and its value or the reason why not."""
Request = tuple[list[tuple[str, str]], str]
"""Headers and body."""


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
        asked = self._request("broker", "createQueue", None), json.dumps(creation)
        ((done, value),) = await self._replies_to([asked], _PROBE_S)  # what came of it is told now
        if not done:
            raise UnmanageableError(str(value))

    async def ask_all(self, operation: str, wanted: Sequence[tuple[str, Sequence[object]]]) -> list[Reply]:
        """What came of an operation on each of these resources, with these arguments, in order."""
        return await self._replies_to(
            [(self._request(resource, operation, None), json.dumps(arguments)) for resource, arguments in wanted]
        )

    async def read_all(self, attribute: str, resources: Sequence[str]) -> list[Any]:
        """An attribute of each; None if there is no such resource, or nobody may see it."""
        replies = await self._replies_to([(self._request(one, None, attribute), "") for one in resources])
        return [value if done else None for done, value in replies]

    async def end(self) -> None:
        """Remove the queue of replies."""
        await self._confirmed("UNSUBSCRIBE", [("id", _SUBSCRIPTION)], "")
        removal = json.dumps([self._replies, True, True])
        await self._confirmed("SEND", self._request("broker", "destroyQueue", None), removal)

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

    async def _replies_to(self, requests: Sequence[Request], wait_s: float | None = None) -> list[Reply]:
        found: list[Reply] = []
        for begin in range(0, len(requests), _AT_ONCE):
            found += await self._some_replies(requests[begin : begin + _AT_ONCE], wait_s)
        return found

    async def _some_replies(self, requests: Sequence[Request], wait_s: float | None) -> list[Reply]:
        replies: dict[str, Reply | None] = {}
        for headers, body in requests:
            self._asked += 1
            number = str(self._asked)
            replies[number] = None
            await self._write("SEND", [*headers, ("reply-to", self._replies), ("correlation-id", number)], body)
        missing = len(replies)
        while missing:
            answer = await self._sender.message(wait_s)
            number = answer.headers.get("correlation-id", "")
            if number in replies:
                missing -= replies[number] is None
                replies[number] = _reply_in(answer)
        return [reply for reply in replies.values() if reply is not None]

    async def _write(self, command: str, headers: list[tuple[str, str]], body: str) -> None:
        await self._sender.write(f"{command}\n".encode() + encode_headers(headers) + body.encode() + b"\0")


def _reply_in(answer: ServerFrame) -> Reply:
    """Raises ArtemisError."""
    try:
        values = json.loads(answer.body or b"[null]")
        return answer.headers.get("_AMQ_OperationSucceeded") == "true", values[0]
    except (ValueError, LookupError, TypeError):
        raise ArtemisError(f"this is no reply of management: {answer.text}") from None
