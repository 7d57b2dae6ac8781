"""Why a WebSocket is closed (RFC 6455, section 7.4.1)."""

from __future__ import annotations

from typing import Final

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
INVALID: Final = 1007
POLICY: Final = 1008
TOO_BIG: Final = 1009
INTERNAL: Final = 1011
