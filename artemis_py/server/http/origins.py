"""The web pages that may use Jolokia, as ``jolokia-access.xml`` says.

``*`` stands for any text, as in Jolokia, but for one place: at the end of a host without a port it stands for a port.
Artemis writes ``*://localhost*`` into each instance and means its own pages; pages of ``localhost.evil.example`` are
others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final
from urllib.parse import urlsplit

from artemis_py.config.tables.web_access import WebAccess
from artemis_py.server.http.messages import Request

_ANY: Final = "*"
_PORT: Final = r"(?::\d{1,5})?"


@final
class Origins:
    """What a ``WebAccess`` lets in."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._patterns = [_compiled(one) for one in access.origins]

    def allows(self, origin: str) -> bool:
        """May pages of this origin use Jolokia?"""
        return any(pattern.fullmatch(origin.lower()) for pattern in self._patterns)

    def refusal(self, request: Request) -> str | None:
        """Why a request is refused although its ``Origin`` may be right, or None: with ``strict-checking`` each request
        says by which page it was sent.
        """
        headers = request.headers
        if not self._access.is_strict or "origin" in headers:
            return None
        page = headers.get("referer")
        place = self._access.origin
        if page is None:
            return (
                f"strict-checking in {place.file} (line {place.line}) wants the header Origin or Referer in each "
                "request; send that of an allow-origin, or take strict-checking away"
            )
        origin, host = _origin_of(page)
        if host == headers.get("host", "").lower() or self.allows(origin):
            return None
        return f"pages of {origin[:100]!r} may not use Jolokia; allow-origin in {place.file} names those that may"


def _origin_of(page: str) -> tuple[str, str]:
    """The origin of a page, and its host and port."""
    try:
        parts = urlsplit(page)
    except ValueError:
        return "", ""
    return f"{parts.scheme}://{parts.netloc}".lower(), parts.netloc.lower()


def _compiled(pattern: str) -> re.Pattern[str]:
    scheme, separator, authority = pattern.partition("://")
    ends_in_host = separator and len(authority) > 1 and authority.endswith(_ANY) and ":" not in authority
    if ends_in_host:
        return re.compile(_text(f"{scheme}://{authority.removesuffix(_ANY)}") + _PORT)
    return re.compile(_text(pattern))


def _text(pattern: str) -> str:
    return ".*".join(map(re.escape, _parts(pattern)))


def _parts(pattern: str) -> Iterable[str]:
    return pattern.split(_ANY)
