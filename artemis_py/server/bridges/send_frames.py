"""From a message on a queue here to the SEND frame for another broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final
from urllib.parse import quote

from artemis_py.config.settings import BridgeConfig
from artemis_py.core.dead_letters import RETRIED_HEADER, retried_count
from artemis_py.core.order.entry import Entry
from artemis_py.core.publish.copies import HOPS_HEADER
from artemis_py.core.recurrence import DELAY, SCHEDULED, TIME
from artemis_py.core.recurrence import NAMES as RECURRENCE_NAMES
from artemis_py.message import Head, HeaderName, LargeBody, encode_headers
from artemis_py.pending_output import Part
from artemis_py.stomp.wire.writer import END

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
BRIDGES_HEADER: Final = "_ART_BRIDGES"
"""The header with the bridges that have forwarded a message, with commas between, the first one first. Artemis and
RabbitMQ hand it through.
"""
BRIDGES_MAX: Final = 16
"""So many bridges may forward a message; beyond that it is taken for a loop."""
_BRIDGES: Final = HeaderName(BRIDGES_HEADER)
_ROUTING_TYPE: Final = "destination-type"
_OF_THIS_BROKER: Final = frozenset({HOPS_HEADER, RETRIED_HEADER, SCHEDULED})
_DONE_WITH: Final = frozenset({TIME, DELAY, *RECURRENCE_NAMES})
"""The message was delivered at its time, and would wait once more."""


@final
class SendWriter:
    """Writes the SEND frames of a bridge. The receipt that each asks for is the number of the message here.

    ``log_id`` and ``queue_id`` are part of the id by which the other broker knows a message that comes twice: a message
    may be on two queues here, and be forwarded from both. So is its date: the numbers of messages that are not
    persistent, of which no record knows, come again after a restart.

    A message says by which bridges it came. One that this bridge has forwarded before is not written again, unless an
    operator has sent it back from the dead letters.
    """

    def __init__(self, config: BridgeConfig, log_id: str, queue_id: int) -> None:
        self._destination = config.forwarding_address
        self._routing_type = config.routing_type
        self._duplicate_id = b""
        if config.use_duplicate_detection:
            self._duplicate_id = f"{DUPLICATE_ID}:{log_id}-{queue_id}-".encode()
        self._id = f"{quote(config.name, safe='')}@{log_id}"
        self._last_head: Head | None = None
        self._last_block = b""
        """The headers of the last message: the next one often has the same. Empty: it is not to be sent."""

    def write(self, entries: Iterable[Entry], out: list[Part]) -> list[Entry]:
        """Append the frames of ``entries`` to ``out``, in parts; a large body is a part that is not bytes. Returns
        those that go in a loop, which are left out.
        """
        looping: list[Entry] = []
        for entry in entries:
            message = entry.message
            head, body = message.head, message.body
            if head is not self._last_head:
                self._last_block = self._block(head)
                self._last_head = head
            if not self._last_block:
                looping.append(entry)
                continue
            lines = b"SEND\nreceipt:%d\n" % message.id
            if self._duplicate_id:
                lines += b"%b%d-%d\n" % (self._duplicate_id, message.id, message.timestamp_ms)
            if message.expires_ms:
                lines += b"expires:%d\n" % message.expires_ms
            # Without it the other broker takes the body for a text (Artemis), and reads it up to the first NUL.
            if head.sized or (not isinstance(body, LargeBody) and b"\0" in body):
                lines += b"content-length:%d\n" % len(body)
            out += (lines, self._last_block, body, END)
        return looping

    def _block(self, head: Head) -> bytes:
        """The headers that are the same for all messages with this head; empty if they go in a loop."""
        bridges = (head.first(_BRIDGES) or "").split(",")
        if (self._id in bridges or len(bridges) >= BRIDGES_MAX) and not retried_count(head):
            return b""
        passed = [bridge for bridge in bridges if bridge not in ("", self._id)]
        return encode_headers([*self._headers(head), (BRIDGES_HEADER, ",".join([*passed, self._id]))])

    def _headers(self, head: Head) -> list[tuple[str, str]]:
        sent = list(head.headers())
        left_out = {"destination", _ROUTING_TYPE, BRIDGES_HEADER, *_OF_THIS_BROKER, *_DONE_WITH}
        if self._duplicate_id:
            left_out.add(DUPLICATE_ID)
        if any(name == "JMSXGroupID" for name, _ in sent):
            left_out.add("_AMQ_GROUP_ID")  # the same once more
        headers = [("destination", self._destination or head.address)]
        routing_type = head.routing_type if self._routing_type == "PASS" else self._routing_type
        if routing_type is not None and routing_type != "STRIP":
            headers.append((_ROUTING_TYPE, routing_type))
        return headers + [(name, value) for name, value in sent if name not in left_out]
