"""A running broker, asked over HTTP by a command."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import IO, Final, final

from artemis_py.cli.logins import TLS_NAMES, Acceptor, http_acceptor
from artemis_py.errors import ArtemisError
from artemis_py.security.client_tls import why_refused

TIMEOUT_S: Final = 30.0
_PIECE_BYTES: Final = 1 << 18
_LINE_BYTES_MAX: Final = 1 << 20


class RefusedError(ArtemisError):
    """What a broker answers with a status that is not 2xx; ``status`` is that."""

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


@final
class BrokerHttp:
    """The HTTP acceptor of a running broker. An answer may take ``timeout_s``."""

    def __init__(self, acceptor: Acceptor, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._login, tls = acceptor
        self._context = None if tls is None else tls.context()
        self._timeout_s = timeout_s

    @staticmethod
    def of(args: argparse.Namespace, timeout_s: float = TIMEOUT_S) -> BrokerHttp:
        """The acceptor that ``--url``, the environment or a context names. Raises ArtemisError."""
        return BrokerHttp(http_acceptor(args, args.url), timeout_s)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> bytes:
        """The body of an answer with status 2xx; ``body`` is JSON to send. Raises RefusedError with what the broker
        says otherwise, and ArtemisError if there is no answer.
        """
        status, said = self.answer(path, method, body)
        if status < HTTPStatus.BAD_REQUEST:
            return said
        raise self._refused(status, said)

    def send(self, path: str, lines: IO[bytes], size_bytes: int) -> bytes:
        """The body of an answer to so many bytes of lines, which are read as they go out. Raises ArtemisError as
        ``ask`` does.
        """
        headers = {"Content-Length": str(size_bytes), "Content-Type": "application/jsonl"}
        try:
            with self._open(path, "POST", headers, lines) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise self._refused(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            raise self._unanswered(error) from None

    def fetch(self, path: str, write: Callable[[bytes], object]) -> None:
        """Write the body of an answer with status 2xx, a piece at a time. Raises ArtemisError as ``ask`` does."""
        try:
            with self._open(path, "GET", {}) as answer:
                while piece := answer.read(_PIECE_BYTES):
                    write(piece)
                if answer.length:
                    raise ArtemisError(f"{self._url}{path}: the answer broke off; {answer.length} bytes are missing")
        except urllib.error.HTTPError as error:
            raise self._refused(error.code, error.read()) from None
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            raise self._unanswered(error) from None

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of a response that streams until the broker or the client ends it. Raises ArtemisError with
        what the broker says otherwise, and if there is no answer.
        """
        try:
            with self._open(path, "GET", headers) as answer:
                while line := answer.readline(_LINE_BYTES_MAX):
                    yield line.decode(errors="replace").rstrip("\r\n")
        except urllib.error.HTTPError as error:
            raise self._refused(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            raise self._unanswered(error) from None

    def _refused(self, status: int, body: bytes) -> RefusedError:
        said = _said(body) or f"HTTP status {status}"
        if status == HTTPStatus.UNAUTHORIZED:
            said = f"{self._url}: the broker refuses {self._login} (--user, --password-file, --token-file): {said}"
        return RefusedError(said, status)

    def answer(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body, whatever they are. Raises ArtemisError if there is no answer."""
        try:
            with self._open(path, method, {}, body) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except (OSError, HTTPException) as error:
            raise self._unanswered(error) from None

    def _open(
        self, path: str, method: str, headers: Mapping[str, str], body: bytes | IO[bytes] | None = None
    ) -> HTTPResponse:
        of_body = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, body, method=method, headers={**of_body, **headers})
        if self._login.authorization is not None:
            request.add_unredirected_header("Authorization", self._login.authorization)
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=self._timeout_s, context=self._context)
        return answer

    def _unanswered(self, error: Exception) -> ArtemisError:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ConnectionRefusedError):
            reason = "nothing listens there (--url says where the broker's HTTP acceptor is)"
        elif isinstance(reason, ssl.SSLError):
            reason = why_refused(reason, TLS_NAMES)
        return ArtemisError(f"{self._url}: {reason}")


def _said(body: bytes) -> str:
    """What an answer says is wrong: its text, or the member ``error`` of its JSON."""
    text = body.decode(errors="replace").strip()
    try:
        return str(json.loads(text)["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
