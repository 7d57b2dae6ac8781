"""The names of the addresses behind temporary destinations (``stomp/temporaries.py``)."""

from __future__ import annotations

import re
from typing import Final

_TEMPORARY: Final = re.compile(r"temp-(?:queue|topic)\.[0-9a-f]{32}(?:\..*)?", re.ASCII | re.DOTALL)


def names_temporary(address: str) -> bool:
    """Is this the address of a temporary destination? Nobody can guess one, and none comes back when its client has
    gone.
    """
    return address.startswith("temp-") and _TEMPORARY.fullmatch(address) is not None
