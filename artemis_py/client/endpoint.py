"""Where a broker listens for STOMP, as clients name it by a URL."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

PORT: Final = 61613
PLAIN_SCHEMES: Final = ("stomp", "tcp")
TLS_SCHEMES: Final = ("stomp+ssl", "ssl", "stomps")
_URL: Final = re.compile(
    r"(?P<scheme>[a-z+]+)://(?P<host>\[[^\]/@]+\]|[^:/?#@\[\]]+)(?::(?P<port>\d{1,5}))?(?:[/?#].*)?", re.IGNORECASE
)


class Endpoint(NamedTuple):
    """Where a broker listens. As a text it is a URL with nothing but this in it."""

    host: str
    port: int = PORT
    scheme: str = "tcp"

    @staticmethod
    def of(url: str) -> Endpoint | None:
        """The endpoint in a URL; None if it has none, or another scheme."""
        found = _URL.fullmatch(url)
        if found is None or (found["port"] and not 0 < int(found["port"]) < 65536):
            return None
        scheme = found["scheme"].lower()
        if scheme not in PLAIN_SCHEMES and scheme not in TLS_SCHEMES:
            return None
        return Endpoint(found["host"].strip("[]"), int(found["port"] or PORT), scheme)

    @property
    def has_tls(self) -> bool:
        """Does it speak TLS?"""
        return self.scheme in TLS_SCHEMES

    @property
    def place(self) -> str:
        """How errors name it: host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}"
