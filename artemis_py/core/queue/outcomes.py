"""What a client wants to become of a message that it settles."""

from __future__ import annotations

from typing import Final

ACCEPT: Final = ""
"""It is done."""
CANCEL: Final = "cancel"
"""It goes back to its queue."""
EXPIRE: Final = "expire"
"""It goes to the expiry address."""
