"""Messages to send, each beside its model."""

from __future__ import annotations

from dataclasses import dataclass, field

from artemis_py.core.broker import Broker
from artemis_py.message import MESSAGE_OVERHEAD_BYTES, Head, Message, encode_headers
from tests.model.plans import ADDRESS, GROUP, KEY
from tests.model.reader_model import Letter


@dataclass(frozen=True, slots=True)
class Spec:
    """A message to send; ``ttl_ms`` 0: it never expires. Queues that hold back do so for ``held_ms``; it may be the
    last of its group (``closes``).
    """

    color: str = "red"
    priority: int = 4
    persistent: bool = False
    ttl_ms: int = 0
    body_bytes: int = 3
    key: str | None = None
    group: str | None = None
    held_ms: int = 0
    closes: bool = False


@dataclass(slots=True)
class Writer:
    """Writes messages for the address under test. Heads are shared, as a session shares them."""

    _heads: dict[tuple[object, ...], Head] = field(default_factory=dict)

    def write(self, broker: Broker, spec: Spec, origin: int, now_ms: int) -> tuple[Message, Letter]:
        """A message and its model."""
        held_until_ms = now_ms + spec.held_ms if spec.held_ms else 0
        expires_ms = now_ms + spec.ttl_ms if spec.ttl_ms else 0
        key = spec.color, spec.priority, spec.persistent, spec.key, spec.group, spec.closes, held_until_ms
        head = self._heads.get(key)
        if head is None:
            headers = [("destination", ADDRESS), ("color", spec.color)]
            headers += [] if spec.key is None else [(KEY, spec.key)]
            headers += [] if spec.group is None else [(GROUP, spec.group)]
            headers += [("_AMQ_GROUP_SEQUENCE", "-1")] if spec.closes else []
            headers += [("x-qpid-not-valid-before", str(held_until_ms))] if held_until_ms else []
            head = Head(encode_headers(headers), ADDRESS, priority=spec.priority, persistent=spec.persistent)
            self._heads[key] = head
        body = b"x" * spec.body_bytes
        account = broker.addresses[ADDRESS].account
        message = Message(head, body, broker.host.next_message_id(), now_ms, expires_ms, account, origin)
        size = len(head.block) + len(body)
        letter = Letter(
            message.id, spec.priority, spec.color, spec.persistent, size, size + MESSAGE_OVERHEAD_BYTES, expires_ms,
            origin, spec.key, spec.group, spec.closes, held_until_ms, now_ms,
        )  # fmt: skip
        return message, letter
