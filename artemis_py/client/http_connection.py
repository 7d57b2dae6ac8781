"""Requests to the HTTP acceptor of a broker: connection, TLS, login, and failures in words."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import IO, Final, final
from urllib.parse import urlsplit

from artemis_py.errors import ArtemisError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls, is_final, why_refused

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class UnansweredError(ArtemisError):
    """There is no answer; ``reason`` says why without the broker. ``is_final``: the next attempt would fail in the same
    way.
    """

    def __init__(self, broker: str, reason: str, *, is_final: bool = False) -> None:
        super().__init__(f"{broker}: {reason}")
        self.reason = reason
        self.is_final = is_final


@final
class HttpConnection:
    """One request at a time. Methods raise UnansweredError."""

    def __init__(
        self,
        url: str,
        login: ClientLogin,
        tls: ClientTls | None,
        timeout_s: float,
        named: Mapping[str, str],
        *,
        stays_open: bool = False,
        takes_proxy: bool = False,
        connect_s: float | None = None,
    ) -> None:
        """``named``: by which names a user knows ``url`` and the files of TLS. ``stays_open``: between requests.
        ``takes_proxy``: the one that the environment names (``http_proxy`` and others). ``connect_s``: how long a
        connection may take; None: as long as an answer.
        """
        self.timeout_s = timeout_s
        self._parts = urlsplit(url)
        self.url = self._parts._replace(query="", fragment="").geturl().rstrip("/")
        self.broker = self._parts.netloc.rpartition("@")[2]
        """How errors name it: host:port."""
        self.login = login
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._named = named
        self._stays_open = stays_open
        self._takes_proxy = takes_proxy
        self._connect_s = connect_s
        self._connection: http.client.HTTPConnection | None = None
        self._target = self._parts.path.rstrip("/")
        """What the target of each request begins with."""

    def answer(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Status and body, whatever they are."""
        with self.request(method, path, headers, body) as answer:
            return answer.status, answer.read()

    @contextmanager
    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | IO[bytes] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, to be read inside of the block. A body is JSON if no header says otherwise."""
        authorization = self.login.authorization
        sent = {} if body is None else {"Content-Type": "application/json"}
        sent |= {} if authorization is None else {"Authorization": authorization}
        try:
            if self._connection is None:
                self._connection = self._opened()
            self._connection.request(method, self._target + path, body, {**sent, **(headers or {})})
            answer = self._connection.getresponse()
            if answer.status in _REDIRECTS:
                self.close()
                raise UnansweredError(self.broker, f"it says to ask at {answer.headers['Location']}", is_final=True)
            yield answer
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._unanswered(error) from None
        finally:
            if not self._stays_open:
                self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> http.client.HTTPConnection:
        host, port, has_tls = self._parts.hostname, self._parts.port, self._parts.scheme == "https"
        assert host is not None
        proxy = self._proxy() if self._takes_proxy else None
        at, at_port = proxy or (host, port)
        connect_s = min(self._connect_s or self.timeout_s, self.timeout_s)
        found: http.client.HTTPConnection
        if has_tls:
            if self._context is None:
                self._context = (self._tls or ClientTls()).context()
            found = http.client.HTTPSConnection(at, at_port, timeout=connect_s, context=self._context)
            if proxy is not None:
                found.set_tunnel(host, port)
        else:
            if proxy is not None:
                self._target = self.url
            found = http.client.HTTPConnection(at, at_port, timeout=connect_s)
        found.connect()
        assert found.sock is not None
        found.sock.settimeout(self.timeout_s)
        return found

    def _proxy(self) -> tuple[str, int | None] | None:
        place = urllib.request.getproxies().get(self._parts.scheme)
        if not place or urllib.request.proxy_bypass(self._parts.netloc):
            return None
        found = urlsplit(place if "://" in place else f"http://{place}")
        return None if found.hostname is None else (found.hostname, found.port)

    def _unanswered(self, error: Exception) -> UnansweredError:
        if isinstance(error, ConnectionRefusedError):
            hint = f" ({self._named['url']} says where the broker's HTTP acceptor is)" if "url" in self._named else ""
            return UnansweredError(self.broker, f"nothing listens there{hint}")
        if isinstance(error, TimeoutError):
            return UnansweredError(self.broker, f"no answer within {self.timeout_s:g} s; it may be busy, or stopped")
        if isinstance(error, ssl.SSLError):
            return UnansweredError(self.broker, why_refused(error, self._named), is_final=is_final(error))
        why = error.strerror if isinstance(error, OSError) else None
        return UnansweredError(self.broker, why or str(error) or type(error).__name__)


def is_http_url(url: str) -> bool:
    """Does it name a host, for HTTP or HTTPS?"""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_success(status: int) -> bool:
    """Is it 2xx?"""
    return HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
