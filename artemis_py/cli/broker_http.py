"""A running broker, asked over HTTP by a command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPResponse
from typing import IO, Final, final

from artemis_py.cli.logins import TLS_NAMES, Acceptor, asks_people, http_acceptor, typed_login
from artemis_py.client.http_connection import HttpConnection, is_success
from artemis_py.errors import AdviceError, ArtemisError
from artemis_py.security.client_login import NO_USER
from artemis_py.terminal_output import escaped

TIMEOUT_S: Final = 30.0
_NAMES: Final = {**TLS_NAMES, "url": "--url"}
_PIECE_BYTES: Final = 1 << 18
_LINE_BYTES_MAX: Final = 1 << 20


class RefusedError(ArtemisError):
    """What a broker answers with a status that is not 2xx; ``status`` is that, and ``said`` its words."""

    def __init__(self, broker: str, said: str, status: int) -> None:
        super().__init__(f"{broker}: {said}")
        self.said = said
        self.status = status


@final
class BrokerHttp:
    """The HTTP acceptor of a running broker. An answer may take ``timeout_s``. With ``asks``, somebody at a terminal is
    asked for a login if the broker wants one and none is given.
    """

    def __init__(self, acceptor: Acceptor, timeout_s: float = TIMEOUT_S, *, asks: bool = True) -> None:
        self._asks = asks
        self._http = HttpConnection(*acceptor, timeout_s, _NAMES, takes_proxy=True)

    @staticmethod
    def of(args: argparse.Namespace, timeout_s: float = TIMEOUT_S, *, asks: bool = True) -> BrokerHttp:
        """The acceptor that ``--url``, the environment or a context names. Raises ArtemisError."""
        return BrokerHttp(http_acceptor(args, args.url), timeout_s, asks=asks)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._http.url

    @property
    def broker(self) -> str:
        """How errors name it: host:port."""
        return self._http.broker

    def answer(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body, whatever they are. Raises ArtemisError if there is no answer."""
        status, said = self._http.answer(method, path, None, body)
        return self._http.answer(method, path, None, body) if self._logs_in(status) else (status, said)

    def _logs_in(self, status: int) -> bool:
        """Does the broker want a login that somebody has typed now? Then the request may be sent again."""
        if status != HTTPStatus.UNAUTHORIZED or not self._http.login.is_empty or not self._asks or not asks_people():
            return False
        self._http.login = typed_login(self.broker)
        return True

    @contextmanager
    def _opened(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[HTTPResponse]:
        """An answer with status 2xx that is read bit by bit. Raises ArtemisError as ``ask`` does."""
        with self._http.request("GET", path, headers) as answer:
            wants_more = self._logs_in(answer.status)
            if not wants_more:
                self._check(answer)
                yield answer
        if wants_more:
            with self._http.request("GET", path, headers) as answer:
                self._check(answer)
                yield answer

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> bytes:
        """The body of an answer with status 2xx; ``body`` is JSON to send. Raises RefusedError with what the broker
        says otherwise, AdviceError with the problems of a configuration, and ArtemisError if there is no answer.
        """
        status, said = self.answer(path, method, body)
        if is_success(status):
            return said
        raise self._refused(status, said)

    def send(self, path: str, lines: IO[bytes], size_bytes: int) -> bytes:
        """The body of an answer to so many bytes of lines, which are read as they go out. Raises ArtemisError as
        ``ask`` does.
        """
        headers = {"Content-Length": str(size_bytes), "Content-Type": "application/jsonl"}
        start = lines.tell()
        with self._http.request("POST", path, headers, lines) as answer:
            if not self._logs_in(answer.status):
                self._check(answer)
                return answer.read()
        lines.seek(start)
        return self.send(path, lines, size_bytes)

    def fetch(self, path: str, write: Callable[[bytes], object]) -> None:
        """Write the body of an answer with status 2xx, a piece at a time. Raises ArtemisError as ``ask`` does."""
        for piece in self._pieces(path):
            write(piece)

    def _pieces(self, path: str) -> Iterator[bytes]:
        with self._opened(path) as answer:
            while piece := answer.read(_PIECE_BYTES):
                yield piece
            if answer.length:
                raise ArtemisError(f"{self.broker}: the answer broke off; {answer.length} bytes are missing")

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of a response that streams until the broker or the client ends it. Raises ArtemisError with
        what the broker says otherwise, and if there is no answer.
        """
        with self._opened(path, headers) as answer:
            while line := answer.readline(_LINE_BYTES_MAX):
                yield line.decode(errors="replace").rstrip("\r\n")

    def _check(self, answer: HTTPResponse) -> None:
        if not is_success(answer.status):
            raise self._refused(answer.status, answer.read())

    def _refused(self, status: int, body: bytes) -> ArtemisError:
        said, problems = _said(body)
        if problems:
            said = said.removesuffix("; ".join(problems)).rstrip(": ")
            return AdviceError(f"{self.broker}: {said}", "\n".join(escaped(problem) for problem in problems))
        said = said or f"HTTP status {status}"
        login = self._http.login
        if status == HTTPStatus.UNAUTHORIZED and login.is_empty:
            said = NO_USER
        elif status == HTTPStatus.UNAUTHORIZED:
            said = f"the broker refuses {login} (--user, --password-file, --token-file): {said}"
        return RefusedError(self.broker, said, status)


def _said(body: bytes) -> tuple[str, list[str]]:
    """What an answer says is wrong: its text, or the members ``error`` and ``problems`` of its JSON."""
    text = body.decode(errors="replace").strip()
    try:
        found = json.loads(text)
        return str(found["error"]), [str(problem) for problem in found.get("problems", ())]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return text, []
