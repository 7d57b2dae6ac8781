"""Writes frames as bytes, for each STOMP version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.leases import Leases
from artemis_py.core.queue.redelivery import DeliveryAttempts
from artemis_py.core.queue_reference import Lifetime
from artemis_py.message import Head, Message, unescape_header
from artemis_py.pending_output import Part
from artemis_py.stomp.wire.dialect import DELIVERY_COUNT
from artemis_py.terminal_output import escaped

_BREAKS: Final = str.maketrans({"\n": " ", "\r": " ", "\0": " "})
_NAME_BREAKS: Final = str.maketrans({"\n": "_", "\r": "_", "\0": "_", ":": "_"})
_NAME_ESCAPES_11: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "_"})
_ESCAPES_11: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c"})
_ESCAPES_12: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"})


END: Final = bytes((0, 10))
"""The end of a frame. STOMP allows line ends after the NUL; ActiveMQ, Artemis and RabbitMQ all write one, and some
clients (PHP's pecl-stomp) drop one byte after each NUL without checking it. In the parts of MESSAGE frames it is
always this object, so the end of a frame is found without a look at bodies.
"""
_DELIVERY_COUNT: Final = DELIVERY_COUNT.encode()
_FIRST_TIME: Final = b"false\n%b:1" % _DELIVERY_COUNT
_STAMP_BYTES: Final = len("\nredelivered:\nexpires:\ntimestamp:\n") + len(_FIRST_TIME)


def escape(text: str, version: str) -> str:
    """Escape a header name or value. STOMP 1.0 has no escapes: there a line feed becomes a blank."""
    if version == "1.2":
        return text.translate(_ESCAPES_12)
    if version == "1.1":
        return text.translate(_ESCAPES_11)
    return text.translate(_BREAKS)


def escape_name(text: str, version: str) -> str:
    """Escape a header's name. Characters that a version cannot write become ``_``: unchanged, or as a blank that many
    clients strip, they would turn it into another name, such as the broker's own ``message-id``.
    """
    if version == "1.2":
        return text.translate(_ESCAPES_12)
    return text.translate(_NAME_ESCAPES_11 if version == "1.1" else _NAME_BREAKS)


def connected(headers: list[tuple[str, str]]) -> bytes:
    """A CONNECTED frame. Its headers are not escaped (STOMP 1.2, "Value Encoding"), so characters that would break a
    line are removed.
    """
    lines = "".join(f"{name}:{value.translate(_BREAKS)}\n" for name, value in headers)
    return f"CONNECTED\n{lines}\n\0\n".encode()


def receipt(receipt_id: str, version: str, extra: Sequence[tuple[str, str]] = ()) -> bytes:
    """A RECEIPT frame."""
    shown = receipt_id if receipt_id.isalnum() else escape(receipt_id, version)
    more = "".join([f"{name}:{value}\n" for name, value in extra]) if extra else ""
    return f"RECEIPT\nreceipt-id:{shown}\n{more}\n\0\n".encode()


def error(
    message: str, version: str, receipt_id: str | None = None, extra: list[tuple[str, str]] | None = None
) -> bytes:
    """An ERROR frame. Its body repeats the message for people who read it raw, without terminal control characters."""
    message = escaped(message)
    headers = [("message", message[:500]), ("content-type", "text/plain")]
    if receipt_id is not None:
        headers.append(("receipt-id", receipt_id))
    headers.extend(extra or [])
    body = message.encode()
    lines = "".join(f"{name}:{escape(value, version)}\n" for name, value in headers)
    return f"ERROR\n{lines}content-length:{len(body)}\n\n".encode() + body + END


def head_block(head: Head, version: str) -> bytes:
    """A message's header block in the form of ``version``. Only blocks with escapes differ from the stored 1.2 form."""
    if version == "1.2" or b"\\" not in head.block:
        return head.block
    lines: list[str] = []
    for line in head.block[:-2].decode().split("\n"):
        name, _, value = line.partition(":")
        lines.append(f"{escape_name(unescape_header(name), version)}:{escape(unescape_header(value), version)}\n")
    return ("".join(lines) + "\n").encode()


def redelivered_lines(entry: Entry) -> bytes:
    """What follows ``redelivered:``: whether the message was sent before, and how often it is now, as
    ``JMSXDeliveryCount``, the name that Artemis has for it.
    """
    return b"true\n%b:%d" % (_DELIVERY_COUNT, entry.returned + 1) if entry.returned else _FIRST_TIME


class MessageWriter:
    """Writes one subscription's MESSAGE frames. The constant parts are made once."""

    __slots__ = (
        "_ack", "_first_line", "_firsts", "_like_body_bytes", "_like_bytes", "_like_head", "_like_id_bytes", "_prefix",
        "_sized_only", "_tag", "_version", "amq_message_id", "ingress_timestamp",
        "leases", "lifetime", "tells_bookmarks", "delivery_attempts",
    )  # fmt: skip

    def __init__(self, subscription: str | None, consumer_id: int, version: str, *, settles: bool) -> None:
        self._version = version
        self._tag = f"{consumer_id}-".encode()
        subscription_line = "" if subscription is None else f"subscription:{escape(subscription, version)}\n"
        self._prefix = f"MESSAGE\n{subscription_line}message-id:".encode() + self._tag
        self._ack = b"" if settles or version != "1.2" else b"\nack:" + self._tag
        self._sized_only = version == "1.0"
        """In 1.0 only messages sent with a content-length get one: there its presence distinguishes bytes from text."""
        self.amq_message_id = False
        self.ingress_timestamp = False
        self.lifetime: Lifetime | None = None
        """The queue's limits on expiration: the header expires shows the effective value."""
        self.delivery_attempts: DeliveryAttempts | None = None
        """The queue's counts of deliveries: the header delivery-count shows them."""
        self.leases: Leases | None = None
        """The queue's leases: the header lease-expires shows when that of a message ends."""
        self.tells_bookmarks = False
        """Does the header bookmark say where in the log a message is?"""
        self._firsts: set[int] | None = None
        self._first_line = b""
        self._like_head: Head | None = None
        """The last measured frame without special headers: a similar message makes a frame of the same size."""
        self._like_body_bytes = self._like_id_bytes = self._like_bytes = 0

    def mark_firsts(self, header: str, firsts: set[int]) -> None:
        """Give the next frame of each message in ``firsts`` this header with the value ``true``
        (``group-first-key``).
        """
        self._firsts = firsts
        self._first_line = f"{escape_name(header, self._version)}:true\n".encode()

    def frame_bytes(self, message: Message) -> int:
        """The size of a message's frame when it is sent for the first time; later the count may have more digits."""
        if (
            message.head is self._like_head
            and len(message.body) == self._like_body_bytes
            and not message.expires_ms
            and self.lifetime is None
            and len(str(message.id)) == self._like_id_bytes
            and not self._firsts
        ):
            return self._like_bytes
        size = self._measured(message)
        if not message.expires_ms and not self._firsts:
            self._like_head = message.head
            self._like_body_bytes = len(message.body)
            self._like_id_bytes = len(str(message.id))
            self._like_bytes = size
        return size

    def _measured(self, message: Message) -> int:
        number = len(str(message.id))
        body_bytes = len(message.body)
        expires_ms = message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)
        size = len(self._prefix) + number + _STAMP_BYTES + len(str(expires_ms)) + len(str(message.timestamp_ms))
        size += len(head_block(message.head, self._version)) + body_bytes + len(END)
        if self._ack:
            size += len(self._ack) + number
        if message.head.sized or (body_bytes and not self._sized_only):
            size += len("content-length:\n") + len(str(body_bytes))
        if self._has_extras or self._firsts:
            size += len(self._extras(message))
        return size

    @property
    def _has_extras(self) -> bool:
        return (
            self.amq_message_id or self.ingress_timestamp or self.tells_bookmarks or self.delivery_attempts is not None
        )

    def write(self, entries: list[Entry], out: list[Part], *, is_settled: bool = False) -> None:
        """Append the frames of ``entries`` to ``out``, in parts; a large body is a part that is not bytes.
        ``is_settled``: they need no acknowledgement, whatever the subscription says.
        """
        prefix = self._prefix
        ack, end = b"" if is_settled else self._ack, END
        sized_only = self._sized_only
        verbatim = self._version == "1.2"
        lifetime = self.lifetime
        has_extras = self._has_extras
        last_timestamp_ms = -1
        last_length = -1
        fresh = again = length_line = b""
        for entry in entries:
            message = entry.message
            head = message.head
            body = message.body
            number = b"%d" % message.id
            if message.timestamp_ms != last_timestamp_ms:
                last_timestamp_ms = message.timestamp_ms
                fresh = b"\nredelivered:%b\nexpires:0\ntimestamp:%d\n" % (_FIRST_TIME, last_timestamp_ms)
            stamp = fresh
            expires_ms = message.expires_ms if lifetime is None else lifetime.expires_ms(message)
            if entry.returned or expires_ms:
                again = redelivered_lines(entry)
                stamp = b"\nredelivered:%b\nexpires:%d\ntimestamp:%d\n" % (again, expires_ms, last_timestamp_ms)
            if has_extras or self._firsts:
                stamp += self._extras(message, is_leased=not is_settled)
            if body and (head.sized or not sized_only):
                length = len(body)
                if length != last_length:
                    last_length = length
                    length_line = b"content-length:%d\n" % length
            elif head.sized:
                length_line = b"content-length:0\n"
                last_length = 0
            else:
                length_line = b""
                last_length = -1
            block = head.block if verbatim or b"\\" not in head.block else head_block(head, self._version)
            if self._firsts:
                self._firsts.discard(message.id)
            if ack:
                out += (prefix, number, ack, number, stamp, length_line, block, body, end)
            else:
                out += (prefix, number, stamp, length_line, block, body, end)

    def _extras(self, message: Message, *, is_leased: bool = True) -> bytes:
        message_id = message.id
        lines = b""
        if self.amq_message_id:
            lines += b"amqMessageId:STOMP%d\n" % message_id
        if self.ingress_timestamp:
            lines += b"ingress-timestamp:%d\n" % message.timestamp_ms
        if self.tells_bookmarks and message.lsn:
            lines += b"bookmark:%d\n" % message.lsn
        if self.delivery_attempts is not None:
            lines += b"delivery-count:%d\n" % (self.delivery_attempts.count_of(message_id) + 1)
            if is_leased and self.leases is not None and self.leases.period_ms:
                lines += b"lease-expires:%b\n" % self.leases.end_in_words().encode()
        if self._firsts and message_id in self._firsts:
            lines += self._first_line
        return lines


# ---- head writer -----------------------------------------------------------------------------------------------------
#
# MESSAGE frames without bodies, for consumers that read the bodies elsewhere (``headers-only`` of SUBSCRIBE).


@final
class HeadWriter(MessageWriter):
    """Writes all of a frame but the body. The header ``body-size`` says how many bytes that has; it is the last of the
    broker's own headers, so a client that reads up to it reads nothing that a sender wrote.
    """

    __slots__ = ()

    def _measured(self, message: Message) -> int:
        return len(self._lines(Entry(message))) + len(head_block(message.head, self._version)) + len(END)

    def write(self, entries: list[Entry], out: list[Part], *, is_settled: bool = False) -> None:
        for entry in entries:
            message = entry.message
            lines = self._lines(entry, is_settled=is_settled)
            out += (lines, head_block(message.head, self._version), END)
            if self._firsts:
                self._firsts.discard(message.id)

    def _lines(self, entry: Entry, *, is_settled: bool = False) -> bytes:
        message = entry.message
        number = b"%d" % message.id
        expires_ms = message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)
        return b"%b%b%b\nredelivered:%b\nexpires:%d\ntimestamp:%d\n%bbody-size:%d\n" % (
            self._prefix,
            number,
            self._ack + number if self._ack and not is_settled else b"",
            redelivered_lines(entry),
            expires_ms,
            message.timestamp_ms,
            self._extras(message, is_leased=not is_settled),
            len(message.body),
        )
