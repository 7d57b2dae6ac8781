"""Cursors with which clients go on behind a page of messages. A cursor has all that is needed, so the broker keeps
nothing for a client that reads slowly or not at all.
"""

from __future__ import annotations

import binascii
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, final

from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.scan import QueueScan, ScanCursor
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BadRequestError

_SEAL_BYTES: Final = 12
_CURSOR_MAX: Final = 8192
_ANEW: Final = "; begin without after"


@final
class Cursors:
    """Makes and reads cursors. Each is sealed with a secret of this run: places in memory mean nothing to the next one,
    and a place that a client made up could lie anywhere in a page.
    """

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        """A name for this run."""
        self._secret = secrets.token_bytes(16)

    def text_of(self, queue: Queue, states: Sequence[str], scan_cursor: ScanCursor) -> str:
        """The text of a cursor with which a scan of this queue goes on."""
        data = json.dumps([queue.id, list(states), list(scan_cursor)], separators=(",", ":")).encode()
        return urlsafe_b64encode(self._seal(data) + data).decode().rstrip("=")

    def scan(self, queue: Queue, states: Sequence[str], message_filter: MessageFilter, after: str) -> QueueScan:
        """A scan of a queue behind this cursor; empty: from the beginning. Raises BadRequestError."""
        if not after:
            return QueueScan(queue, states, message_filter.ids or ())
        try:
            return QueueScan(queue, states, message_filter.ids or (), self._scan_cursor(after, queue, states))
        except ValueError:
            raise BadRequestError(f"the order of queue {queue.name} is another one than when it began{_ANEW}") from None

    def _scan_cursor(self, text: str, queue: Queue, states: Sequence[str]) -> ScanCursor:
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) <= _CURSOR_MAX else b""
        except (ValueError, binascii.Error):
            sealed = b""
        data = sealed[_SEAL_BYTES:]
        if not data or not secrets.compare_digest(sealed[:_SEAL_BYTES], self._seal(data)):
            raise BadRequestError(
                f"after is no cursor of this broker, or of an earlier run of it: give next of a page{_ANEW}"
            )
        queue_id, its_states, values = json.loads(data)
        if queue_id != queue.id:
            raise BadRequestError(f"after is a cursor of another queue than {queue.name}{_ANEW}")
        if its_states != list(states):
            raise BadRequestError(f"after is a cursor of messages that are {','.join(its_states)}: give the same which")
        return ScanCursor.of(values)

    def _seal(self, data: bytes) -> bytes:
        return blake2b(data, digest_size=_SEAL_BYTES, key=self._secret).digest()
