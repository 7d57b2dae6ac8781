"""What the broker holds in memory for one connection."""

from __future__ import annotations

from typing import Final, NamedTuple, final

LIGHT_BYTES: Final = 1024
"""This much is included in the base cost of every connection (``CONNECTION_BYTES``), so a sender that waits for a
receipt does not change the account.
"""


@final
class Weight(NamedTuple):
    """What the broker holds for one connection, in bytes: unfinished frames, unread frames, and open transactions."""

    input_bytes: int = 0
    output_bytes: int = 0
    transaction_bytes: int = 0


NOTHING: Final = Weight()
