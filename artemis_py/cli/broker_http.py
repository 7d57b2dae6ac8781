"""A running broker, asked over HTTP by a command."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, final

from artemis_py.cli import logins
from artemis_py.errors import ArtemisError
from artemis_py.security.client_tls import why_refused

TIMEOUT_S: Final = 30.0
_PIECE_BYTES: Final = 1 << 18


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments about logins and TLS."""
    running = parser.add_argument_group("a running broker")
    logins.add_login(running)
    logins.add_tls(running)


@final
class BrokerHttp:
    """The HTTP acceptor at a URL, ``http://host:port`` or ``https://…``, and the login that the arguments give.

    Raises ArtemisError for a URL that is none, or arguments that do not fit together.
    """

    def __init__(self, args: argparse.Namespace, where: str, timeout_s: float = TIMEOUT_S) -> None:
        url, user = logins.without_user(where)
        if not url.startswith(("http://", "https://")):
            raise ArtemisError(f"{url} is not the URL of an HTTP acceptor; write http://host:port")
        self._url = url.rstrip("/")
        self._login = logins.login_of(args, user)
        self._context = logins.tls_of(args).context() if url.startswith("https://") else None
        self._timeout_s = timeout_s

    def ask(self, path: str, method: str = "GET") -> bytes:
        """The body of an answer with status 2xx. Raises ArtemisError with what the broker says otherwise, and if there
        is no answer.
        """
        status, body = self.answer(path, method)
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._refusal(path, status, body)
        return body

    def fetch(self, path: str, write: Callable[[bytes], object]) -> None:
        """Write the body of an answer with status 2xx, a piece at a time. Raises ArtemisError as ``ask`` does."""
        status, body = self._exchange(path, "GET", write)
        if status >= HTTPStatus.BAD_REQUEST:
            raise self._refusal(path, status, body)

    def _refusal(self, path: str, status: int, body: bytes) -> ArtemisError:
        said = _said(body) or f"HTTP status {status}"
        if status == HTTPStatus.UNAUTHORIZED:
            url = self._url + path
            said = f"{url}: the broker refuses {self._login} (--user, --password-file, --token-file): {said}"
        return ArtemisError(said)

    def answer(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Status and body, whatever they are. Raises ArtemisError if there is no answer."""
        whole = bytearray()
        status, refusal = self._exchange(path, method, whole.extend)
        return status, refusal or bytes(whole)

    def _exchange(self, path: str, method: str, take: Callable[[bytes], object]) -> tuple[int, bytes]:
        """The status of an answer, and what a refusal says. Any other body goes to ``take`` in pieces."""
        url = self._url + path
        request = urllib.request.Request(url, method=method)
        if self._login.authorization is not None:
            request.add_unredirected_header("Authorization", self._login.authorization)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s, context=self._context) as answer:
                while piece := answer.read(_PIECE_BYTES):
                    take(piece)
                if answer.length:
                    raise ArtemisError(f"{url}: the answer broke off; {answer.length} bytes are missing")
                return answer.status, b""
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ConnectionRefusedError):
                reason = "nothing listens there"
            elif isinstance(reason, ssl.SSLError):
                reason = why_refused(reason, logins.TLS_NAMES)
            raise ArtemisError(f"{url}: {reason}") from None


def _said(body: bytes) -> str:
    """What an answer says is wrong: its text, or the member ``error`` of its JSON."""
    text = body.decode(errors="replace").strip()
    try:
        return str(json.loads(text)["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
