"""Who has logged in to the console: a cookie that only the pages of this broker send, and scripts cannot read."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final, final

from artemis_py.security.identity import Identity

BASE: Final = "/console"
IDLE_MS_MAX: Final = 30 * 60 * 1000
LIFETIME_MS_MAX: Final = 8 * 60 * 60 * 1000
SESSIONS_MAX: Final = 1_000
"""Beyond it the one ends that was idle for longest."""
_COOKIE: Final = "artemis_console"
_READING: Final = frozenset({"GET", "HEAD"})


@dataclass(slots=True)
class _Session:
    identity: Identity
    begun_ms: int
    used_ms: int


@final
class Sessions:
    """The sessions of a broker. ``steady_ms`` never goes back; ``date_ms`` is the date, for logins that end at one."""

    def __init__(self, steady_ms: Callable[[], int], date_ms: Callable[[], int]) -> None:
        self._steady_ms = steady_ms
        self._date_ms = date_ms
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, identity: Identity) -> str:
        """Returns what the cookie has."""
        now_ms = self._steady_ms()
        token = secrets.token_urlsafe(32)
        self._sessions[token] = _Session(identity, now_ms, now_ms)
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return token

    def identity_of(self, method: str, path: str, headers: Mapping[str, str]) -> Identity | None:
        """Who sends a request by its cookie; None: nobody, or not from a page of this broker. A browser says with each
        change which page wants it, and somebody has checked that already.
        """
        if not path.startswith(f"{BASE}/"):
            return None
        is_own = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
        if method not in _READING and not is_own:
            return None
        token = _token(headers)
        session = self._sessions.get(token)
        if session is None:
            return None
        now_ms = self._steady_ms()
        is_over = now_ms - session.used_ms > IDLE_MS_MAX or now_ms - session.begun_ms > LIFETIME_MS_MAX
        if is_over or 0 < session.identity.expires_ms <= self._date_ms():
            del self._sessions[token]
            return None
        session.used_ms = now_ms
        self._sessions.move_to_end(token)
        return session.identity

    def end_of(self, users: Container[str]) -> int:
        """The sessions of these users end. Returns how many they were."""
        ended = [token for token, session in self._sessions.items() if session.identity.user in users]
        for token in ended:
            del self._sessions[token]
        return len(ended)

    def end(self, headers: Mapping[str, str]) -> bool:
        """The session of a request with these headers ends. Returns whether there was one. A browser names the site of
        the page: one beside the broker's, on another port, sends the cookie, too, and ends nothing.
        """
        is_other = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        return not is_other and self._sessions.pop(_token(headers), None) is not None


def cookie(token: str, *, is_secure: bool) -> tuple[str, str]:
    """The header that gives a browser the cookie, or takes it away if ``token`` is empty."""
    end = "" if token else "; Max-Age=0"
    secure = "; Secure" if is_secure else ""
    return "Set-Cookie", f"{_COOKIE}={token}; Path={BASE}/; HttpOnly; SameSite=Strict{secure}{end}"


def _token(headers: Mapping[str, str]) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get("cookie", ""))
    except CookieError:
        return ""
    found = cookies.get(_COOKIE)
    return "" if found is None else found.value
