"""STOMP acceptors, as the sink and the consumer of a queue reach them: URLs, sockets, and what refusals mean."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Final, NamedTuple

from artemis_py.errors import PipelineError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import is_final, why_refused
from artemis_py.spark.shared_options import NAMED

NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""What a socket that does not block raises when there is nothing to do."""

_URL: Final = re.compile(
    r"(?:(?P<scheme>[a-z+]+)://)?(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d{1,5})/?", re.IGNORECASE
)
_PLAIN: Final = ("tcp", "stomp")
_SECURE: Final = ("stomps", "stomp+ssl", "ssl")
# ERRORs after which another connection may do: connectionsAllowed, and a connectionTtl in which Spark had no rows.
_PASSING: Final = ("This acceptor allows", "Nothing received for")
_LATER: Final = "try again later"
"""The end of an ERROR after which another connection may do: too many logins wait, or nobody can check them now."""


class LostError(Exception):
    """There is no connection, or it is lost: another one may do."""


class Endpoint(NamedTuple):
    """An acceptor, with TLS or without."""

    host: str
    port: int
    has_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'stomps' if self.has_tls else 'tcp'}://{host}:{self.port}"


def endpoints_of(urls: str, option: str, meaning: str) -> tuple[Endpoint, ...]:
    """The acceptors that an option names, separated by commas. Raises PipelineError with the option and its meaning."""
    return tuple(_endpoint(one.strip(), option, meaning) for one in urls.split(",") if one.strip())


def _endpoint(text: str, option: str, meaning: str) -> Endpoint:
    found = _URL.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise PipelineError(f"Option {option} is {text!r}; allowed: {meaning}")
    scheme = (found["scheme"] or "tcp").lower()
    if scheme in ("http", "https"):
        raise PipelineError(f"Option {option} is {text!r}, name a STOMP acceptor: tcp://host:61613")
    if scheme not in _PLAIN and scheme not in _SECURE:
        raise PipelineError(f"Option {option} is {text!r}: use tcp:// or stomp://, and stomps:// with TLS")
    return Endpoint(found["host"].strip("[]"), int(found["port"]), scheme in _SECURE)


def opened(endpoint: Endpoint, timeout_s: float, context: ssl.SSLContext | None) -> socket.socket:
    """A connected socket that does not block; ``context`` is for TLS. Raises LostError when there is nobody,
    PipelineError when the certificates do not fit.
    """
    try:
        found = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            try:
                found = context.wrap_socket(found, server_hostname=endpoint.host)
            except BaseException:
                found.close()
                raise
    except ssl.SSLError as error:
        if is_final(error):
            raise PipelineError(f"{endpoint}: {why_refused(error, NAMED)}") from None
        raise LostError(f"{endpoint}: {error}") from None
    except OSError as error:
        raise LostError(f"{endpoint}: {error}") from None
    found.setblocking(False)
    return found


def received(connected: socket.socket, endpoint: Endpoint, count_max: int) -> bytes | None:
    """What has come; empty at the end, None when there is nothing now. Raises OSError, and PipelineError when the
    certificates do not fit, which TLS 1.3 tells only now.
    """
    try:
        return connected.recv(count_max)
    except NOT_NOW:
        return None
    except ssl.SSLError as error:
        if is_final(error):
            raise PipelineError(f"{endpoint}: {why_refused(error, NAMED)}") from None
        raise


def has_more(connected: socket.socket) -> bool:
    """Has TLS something that ``select`` does not see?"""
    return isinstance(connected, ssl.SSLSocket) and connected.pending() > 0


def is_passing(reason: str) -> bool:
    """May another connection do?"""
    return reason.startswith(_PASSING) or reason.endswith(_LATER)


def refused_connection(endpoint: Endpoint, login: ClientLogin, reason: str) -> PipelineError:
    """The error for a CONNECT that was refused for good."""
    who = "; options user and passwordFile, or tokenFile, say who connects"
    if not login.is_empty:
        who = f" to {login} of options {'token, tokenFile' if login.token else 'user, password'}"
    return PipelineError(f"{endpoint} refuses the connection{who}: {reason}")
