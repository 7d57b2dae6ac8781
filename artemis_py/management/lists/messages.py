"""The fields of a message: as a row of a list, and as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from artemis_py.core.dead_letters import (
    Origin,
    origin_of,
    original_number,
    retried_count,
)
from artemis_py.core.operations.scan import BEHIND, DELIVERING, PAGED, SCHEDULED, LocatedMessage
from artemis_py.core.queue.queue import Queue
from artemis_py.management.lists.field import EPOCH_MS, FLAG, MAP, NUMBER, TEXT, Field, Kind, Value
from artemis_py.message import HeaderName, LargeBody, Message

TEXT_MAX: Final = 65_536
"""So many characters of a header or body are shown where the settings name no limit."""
BODY_SHOWN_MAX: Final = 100_000
"""A body of more bytes is not shown with its message; it can be fetched by itself."""
_HEADERS_SHOWN_MAX: Final = 65_536
_TEXT_TYPE: Final = 3
_BYTES_TYPE: Final = 4
"""Artemis' numbers for text messages and bytes messages."""
_USER: Final = HeaderName("JMSXUserID")
_CONTENT_TYPE: Final = HeaderName("content-type")

Seen = Mapping[str, Value]
"""A message as it was when it was looked at: its fields by name."""


def failed_count(queue: Queue, located: LocatedMessage) -> int:
    """How many deliveries of a message have failed."""
    delivery_attempts = queue.contents.delivery_attempts
    return (
        located.entry.attempts
        if delivery_attempts is None
        else max(located.entry.attempts, delivery_attempts.count_of(located.message.id))
    )


@dataclass(frozen=True, slots=True)
class Looks:
    """How messages of a queue are looked at: ``limit`` characters of each header and body, at ``now_ms``."""

    queue: Queue
    limit: int
    now_ms: int

    @staticmethod
    def at(queue: Queue, now_ms: int) -> Looks:
        """With the limit that the settings of its address name (``management-message-attribute-size-limit``)."""
        limit = queue.address.settings.management_message_attribute_size_limit
        return Looks(queue, min(limit, TEXT_MAX) if limit >= 0 else TEXT_MAX, now_ms)

    def row(self, located: LocatedMessage) -> dict[str, Any]:
        """The fields of ``MESSAGES``."""
        message, entry, head, holder = located.message, located.entry, located.message.head, located.holder
        origin = origin_of(head) if b"_AMQ_ORIG_ADDRESS:" in head.block else Origin(None, None, None)
        waits_until_ms, held_by = self._held_by(located)
        return {
            "messageID": message.id,
            "address": head.address,
            "type": _BYTES_TYPE if head.sized else _TEXT_TYPE,
            "priority": head.priority,
            "durable": head.persistent,
            "timestamp": message.timestamp_ms,
            "expiration": message.expires_ms,
            "redelivered": entry.redelivered,
            "deliveryCount": self._delivery_count(located),
            "persistentSize": message.size_bytes,
            "largeMessage": isinstance(message.body, LargeBody),
            "state": located.state,
            "waitsUntil": waits_until_ms,
            "heldBy": held_by,
            "consumer": 0 if holder is None else holder.id,
            "connection": 0 if holder is None else holder.reader.connection,
            "group": self._group_of(message),
            "sentBy": message.origin,
            "validatedUser": head.first(_USER),
            "contentType": head.first(_CONTENT_TYPE),
            "originalAddress": origin.address,
            "originalQueue": origin.queue,
            "originalMessageID": 0 if origin.address is None else original_number(head),
            "cause": origin.cause,
            "retried": retried_count(head),
            "PropertiesText": self._properties(message),
            "BodyPreview": self._preview(message),
        }

    def whole(self, located: LocatedMessage) -> dict[str, Any]:
        """The fields of ``WHOLE``: nothing is cut, and what is too long for that is not shown."""
        message = located.message
        shown = Looks(self.queue, TEXT_MAX, self.now_ms).row(located)
        body = _text_of(message)
        headers = message.head.properties if message.head.size_bytes <= BODY_SHOWN_MAX else {}
        return {**shown, "bodySize": len(message.body), "body": body, "headers": headers}

    def _delivery_count(self, located: LocatedMessage) -> int:
        returned = max(located.entry.returned, failed_count(self.queue, located))
        return returned + (located.state == DELIVERING)

    def _held_by(self, located: LocatedMessage) -> tuple[int, str | None]:
        """Until when (epoch ms; 0: nobody knows) and for what the message waits."""
        contents, entry, holder = self.queue.contents, located.entry, located.holder
        if holder is not None:
            return self._with_holder(located, f"consumer {holder.id} of connection {holder.reader.connection}")
        if located.state == SCHEDULED:
            why = "redelivery delay" if entry.attempts else "its schedule"
            if not entry.attempts and contents.holds and entry.message.id in contents.held_back:
                why = "hold-on-publish"
            return contents.waits_until.of(entry.message.id), why
        if located.state == PAGED and located.backlog is not None and located.found is not None:
            due_ms = located.backlog.due_ms(located.found)
            return (due_ms, "its schedule") if due_ms > self.now_ms else (0, None)
        if located.state == BEHIND and contents.pending is not None:
            barriers = contents.pending.threshold.makes_barriers
            return 0, "barrier-expression" if barriers else "target-queue-depth"
        return 0, self._group_block(located.message)

    def _with_holder(self, located: LocatedMessage, held_by: str) -> tuple[int, str]:
        leases = self.queue.contents.leases
        begun_ms = -1 if leases is None else leases.begun_ms(located.message.id)
        if leases is None or begun_ms < 0 or not leases.period_ms:
            return 0, held_by
        ends_ms = self.queue.host.clock.date_ms(begun_ms + leases.period_ms)
        ends = datetime.fromtimestamp(ends_ms // 1000, UTC)
        return ends_ms, f"{held_by}, under a lease until {ends:%Y-%m-%dT%H:%M:%SZ}"

    def _group_of(self, message: Message) -> str | None:
        groups = self.queue.grouping.groups
        return None if groups is None else groups.rule.group_of(message)

    def _group_block(self, message: Message) -> str | None:
        groups = self.queue.grouping.groups
        key = None if groups is None else groups.rule.group_of(message)
        group = None if groups is None or key is None else groups.table.groups.get(key)
        if group is None:
            return None
        if group.aside:
            return "its group, of which a message waits for another attempt"
        return None if group.owner is None else f"its group, which belongs to consumer {group.owner.id}"

    def headers(self, message: Message) -> dict[str, str]:
        """The headers, each cut at the limit; none if they are very large."""
        head = message.head
        if head.size_bytes > _HEADERS_SHOWN_MAX:
            return {}
        return {name: cut(value, self.limit) for name, value in head.properties.items()}

    def _properties(self, message: Message) -> str:
        if message.head.size_bytes > _HEADERS_SHOWN_MAX:
            return f"{message.head.size_bytes} bytes of headers"
        parts = [f"{name}={value}" for name, value in self.headers(message).items()]
        return cut("{" + ", ".join(parts) + "}", TEXT_MAX)

    def _preview(self, message: Message) -> str | None:
        body = message.body
        if isinstance(body, LargeBody):
            return None
        text = body[: 4 * self.limit + 4].decode(errors="replace")
        return cut(text, self.limit)


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and a sign that there is more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def content_type_of(message: Message) -> str | None:
    """The content-type that the sender has named."""
    return message.head.first(_CONTENT_TYPE)


def _text_of(message: Message) -> str | None:
    """The body, if it is a text and not too long."""
    body = message.body
    if isinstance(body, LargeBody) or len(body) > BODY_SHOWN_MAX:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _field(name: str, type: str, sentence: str, unit: str = "", *, is_brief: bool = False) -> Field[Seen]:
    return Field(name, type, sentence, lambda seen: seen[name], unit, is_brief)


MESSAGES: Final[Kind[Seen]] = Kind(
    "message",
    "messages",
    [
        _field("messageID", NUMBER, "The message's number", is_brief=True),
        _field("address", TEXT, "The address to which it was sent"),
        _field("type", NUMBER, "3: text; 4: bytes, because the sender gave a content-length"),
        _field("priority", NUMBER, "Its priority, 0 to 9", is_brief=True),
        _field("durable", FLAG, "Does it survive a restart?", is_brief=True),
        _field("timestamp", NUMBER, "When it came to the broker", EPOCH_MS, is_brief=True),
        _field("expiration", NUMBER, "When it expires; 0: never", EPOCH_MS),
        _field("redelivered", FLAG, "Was it sent to a consumer before?"),
        _field(
            "deliveryCount", NUMBER, "How often it was sent to a consumer, as JMSXDeliveryCount says", is_brief=True
        ),
        _field("persistentSize", NUMBER, "Headers and body", "bytes", is_brief=True),
        _field("largeMessage", FLAG, "Has its body a file of its own?"),
        _field(
            "state",
            TEXT,
            "delivering (a consumer has it), ready, behind (not active yet), paged, or scheduled",
            is_brief=True,
        ),
        _field("waitsUntil", NUMBER, "Until when it waits for its time or its lease ends; 0: it does not", EPOCH_MS),
        _field("heldBy", TEXT, "What it waits for, or who has it; null: a consumer may have it", is_brief=True),
        _field("consumer", NUMBER, "The number of the consumer that has it; 0: none"),
        _field("connection", NUMBER, "The number of that consumer's connection; 0: none"),
        _field("group", TEXT, "The group that it is in"),
        _field("sentBy", NUMBER, "The number of the connection that sent it; 0: not known, or the broker itself"),
        _field("validatedUser", TEXT, "The sender's login, where populate-validated-user notes it"),
        _field("contentType", TEXT, "The content-type that the sender named"),
        _field("originalAddress", TEXT, "Of a copy: the address of the original"),
        _field("originalQueue", TEXT, "Of a copy: the queue of the original"),
        _field("originalMessageID", NUMBER, "Of a copy: the number of the original; 0: it is none"),
        _field("cause", TEXT, "Of a dead or expired message: why its original is gone"),
        _field("retried", NUMBER, "How often an operator sent it back to where it came from"),
        _field("PropertiesText", TEXT, "Its headers, each cut at management-message-attribute-size-limit"),
        _field("BodyPreview", TEXT, "The beginning of its body, cut likewise; null: the body is in a file"),
    ],
)

WHOLE: Final[Kind[Seen]] = Kind(
    "message",
    "messages",
    [
        *MESSAGES.fields.values(),
        _field("bodySize", NUMBER, "The size of its body", "bytes"),
        _field("body", TEXT, "Its body; null: it is no UTF-8, or larger than 100,000 bytes, and must be fetched"),
        _field("headers", MAP, "Its headers by name; empty if they are larger than 100,000 bytes"),
    ],
)
