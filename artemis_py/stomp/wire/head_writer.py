"""MESSAGE frames without bodies, for consumers that read the bodies elsewhere (``headers-only`` of SUBSCRIBE)."""

from __future__ import annotations

from typing import final

from artemis_py.core.order.entry import Entry
from artemis_py.message import Message
from artemis_py.stomp.wire.outbound import Part
from artemis_py.stomp.wire.writer import END, MessageWriter, head_block, redelivered_lines


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
