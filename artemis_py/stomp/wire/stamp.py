"""The sender's name in each message (``populate-validated-user``), so that consumers know who sent it."""

from __future__ import annotations

from typing import Final

from artemis_py.message import Head, encode_headers
from artemis_py.security.rights import USER_HEADER
from artemis_py.stomp.wire.dialect import BLANKS

_NAME: Final = USER_HEADER.encode()


def stamped(head: Head, line: bytes) -> Head:
    """Return the same head with the header line ``line`` (``Rights.stamp``), in the place of whatever the client wrote
    there itself.
    """
    block = head.block
    if _NAME in block:
        if block.startswith(line) and block.count(_NAME) == 1:
            return head
        kept = [(name, value) for name, value in head.headers() if name.strip(BLANKS) != USER_HEADER]
        block = encode_headers(kept)
    return Head(
        line + block, head.address, head.priority, head.persistent, head.sized, head.routing_type, head.duplicate_id
    )
