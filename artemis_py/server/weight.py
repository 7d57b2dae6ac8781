"""What one connection makes the broker hold in memory."""

from __future__ import annotations

from typing import Final, NamedTuple, final

LIGHT_BYTES: Final = 1024
"""Up to this much is part of what every connection counts for (``CONNECTION_BYTES``): a sender that waits for a receipt
moves nothing in the account.
"""


@final
class Weight(NamedTuple):
    """What one connection makes the broker hold: frames that are not finished, frames that it does not read, and open
    transactions. In bytes.
    """

    input_bytes: int = 0
    output_bytes: int = 0
    transaction_bytes: int = 0


NOTHING: Final = Weight()
