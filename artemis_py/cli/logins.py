"""How a command finds a running broker, and logs in there: by its arguments, the environment, or a context. No argument
takes a password: other users of the machine would see it in the list of processes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from artemis_py.cli.context import CONTEXT_NAME, LOGIN, SECRETS, TLS, Contexts, check_private, without_user
from artemis_py.errors import AdviceError, ArtemisError, UsageError
from artemis_py.terminal_output import warn_made

if TYPE_CHECKING:
    from artemis_py.client.stomp_connection import StompConnection
    from artemis_py.security.client_login import ClientLogin
    from artemis_py.security.client_tls import ClientTls
    from artemis_py.stomp.client import Headers

URL: Final = "http://127.0.0.1:8161"
STOMP_URL: Final = "stomp://127.0.0.1:61613"
URL_NAME: Final = "ARTEMIS_PY_URL"
_STOMP_URL_NAME: Final = "ARTEMIS_PY_STOMP_URL"
HTTP_HELP: Final = f"HTTP acceptor (else {URL_NAME}, else that of the context, else {URL})"
_LOGIN_VARIABLES: Final = ("ARTEMIS_PY_USER", "ARTEMIS_PY_TOKEN")
_LOGIN: Final = {
    "user": "--user", "password": "ARTEMIS_PY_PASSWORD", "passwordFile": "--password-file",
    "token": "ARTEMIS_PY_TOKEN", "tokenFile": "--token-file",
}  # fmt: skip
TLS_NAMES: Final = {"caFile": "--ca-file", "certificateFile": "--certificate-file", "keyFile": "--key-file"}
_STOMP_NAMES: Final = {**TLS_NAMES, "url": "--stomp URL", "timeout": "--timeout"}
_CONNECT_S: Final = 10.0
_NO_USER_TOLD: Final = "User name [null]"
"""In the ERROR of Artemis, and in ours, for a CONNECT without a login."""


class Acceptor(NamedTuple):
    """Where a running broker listens, and how to log in there. ``tls`` is None where the URL has none."""

    url: str
    login: ClientLogin
    tls: ClientTls | None


def add_http(parser: argparse.ArgumentParser) -> None:
    """Adds ``--url``, ``--context``, and the arguments about logins and TLS."""
    running = parser.add_argument_group("a running broker")
    running.add_argument("--url", help=f"its {HTTP_HELP}")
    add_access(running)


def add_stomp(parser: argparse.ArgumentParser) -> None:
    """Adds ``--stomp``, ``--context``, and the arguments about logins and TLS."""
    running = parser.add_argument_group("a running broker")
    running.add_argument(
        "--stomp",
        metavar="URL",
        help=f"its STOMP acceptor, stomp://host:port or stomp+ssl://host:port (else {_STOMP_URL_NAME}, else that of "
        f"the context, else {STOMP_URL})",
    )
    add_access(running)


def add_access(group: argparse._ActionsContainer) -> None:
    """Adds ``--context``, and the arguments about logins and TLS."""
    group.add_argument(
        "--context",
        metavar="NAME",
        help=f"the broker and login of this name (else {CONTEXT_NAME}, else the one in use; artemis-py context ls)",
    )
    add_login(group)
    add_tls(group)


def add_login(group: argparse._ActionsContainer) -> None:
    """Adds ``--user``, ``--password-file`` and ``--token-file``."""
    group.add_argument("--user", metavar="NAME", help="login (else ARTEMIS_PY_USER)")
    group.add_argument(
        "--password-file", metavar="FILE", help="the password, in its first line (else from ARTEMIS_PY_PASSWORD)"
    )
    group.add_argument("--token-file", metavar="FILE", help="a token instead of both (else from ARTEMIS_PY_TOKEN)")


def add_tls(group: argparse._ActionsContainer) -> None:
    """Adds ``--ca-file``, ``--certificate-file``, ``--key-file`` and ``--no-verify``."""
    group.add_argument("--ca-file", metavar="FILE", help="certificates to trust, in PEM (else the system's)")
    group.add_argument("--certificate-file", metavar="FILE", help="the client's certificate, and its key, in PEM")
    group.add_argument("--key-file", metavar="FILE", help="the client's key, in PEM, if it is not in that file")
    group.add_argument("--no-verify", action="store_true", help="accept any certificate of the broker: no protection")


def http_acceptor(args: argparse.Namespace, given: str | None) -> Acceptor:
    """The HTTP acceptor to ask, by ``url_for``. Raises ArtemisError, also for an invalid URL."""
    from artemis_py.client.http_connection import is_http_url

    url, user = without_user(url_for(args, given))
    if not is_http_url(url):
        raise UsageError(f"{url} is not the URL of an HTTP acceptor; write http://host:port")
    return Acceptor(url.rstrip("/"), login_of(args, user), tls_of(args) if url.startswith("https://") else None)


def stomp_connection(args: argparse.Namespace, timeout_s: float, more: Headers = ()) -> StompConnection:
    """A connection to the STOMP acceptor that ``stomp_url_for`` gives, logged in; ``more`` are headers of CONNECT.
    Without a user, somebody at a terminal is asked for one if the broker wants it. Raises ArtemisError.
    """
    from artemis_py.client.endpoint import Endpoint
    from artemis_py.client.stomp_connection import RefusedError, StompConnection
    from artemis_py.security.client_login import NO_USER

    url, user = without_user(stomp_url_for(args, args.stomp))
    endpoint = Endpoint.of(url)
    if endpoint is None:
        raise UsageError(f"{url} is not the URL of a STOMP acceptor; write stomp://host:port")
    login = login_of(args, user)
    context = tls_of(args).context() if endpoint.has_tls else None
    while True:
        try:
            return StompConnection.open(
                endpoint, login, context, connect_s=_CONNECT_S, timeout_s=timeout_s, named=_STOMP_NAMES, more=more
            )
        except RefusedError as refused:
            if not login.is_empty or _NO_USER_TOLD not in refused.reason:
                raise
            if not asks_people():
                raise ArtemisError(f"{endpoint.place}: {NO_USER}") from None
        login = typed_login(endpoint.place)


def asks_people() -> bool:
    """Is somebody at a terminal, who can be asked?"""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))  # None: it was closed


def typed_login(broker: str) -> ClientLogin:
    """The login that somebody types at a terminal. Raises ArtemisError for none."""
    from getpass import getpass

    from artemis_py.security.client_login import NO_USER, ClientLogin

    warn_made(f"{broker} requires a login\nUser: ", end="")
    user = sys.stdin.readline().strip()
    if not user:
        raise ArtemisError(f"{broker}: {NO_USER}")
    try:
        return ClientLogin(user, getpass())
    except EOFError:
        raise ArtemisError(f"{broker}: no password given") from None


def url_for(args: argparse.Namespace, given: str | None) -> str:
    """The HTTP acceptor to ask, and ``args`` completed with the login and the files that its context names.

    What is given on the command line counts first, then ``--context``, then the variables of the environment, then the
    context that the environment names or that is in use. A login and the files of TLS belong to their context: nothing
    of it goes to a URL from elsewhere. Raises ContextError.
    """
    return _complete(args, given, "url", URL_NAME, URL)


def stomp_url_for(args: argparse.Namespace, given: str | None) -> str:
    """As ``url_for``, for the STOMP acceptor."""
    return _complete(args, given, "stomp-url", _STOMP_URL_NAME, STOMP_URL)


def _complete(args: argparse.Namespace, given: str | None, which: str, variable: str, default: str) -> str:
    named = getattr(args, "context", None)
    chosen = given or (None if named else os.environ.get(variable))
    if chosen and not named:
        return chosen
    contexts = Contexts.read()
    name = named or os.environ.get(CONTEXT_NAME) or contexts.current
    if not name:
        return default
    fields = contexts.get(name)
    _fill_in(args, fields, contexts.path.parent, is_named=bool(named))
    if chosen is None and which not in fields:
        raise AdviceError(
            f"the context {name} has no {which}",
            f"add it:  artemis-py context add {name} --{which} {default}",
        )
    return chosen or fields[which]


def _fill_in(args: argparse.Namespace, fields: Mapping[str, str], folder: Path, *, is_named: bool) -> None:
    login_is_given = any(_value(args, name) for name in LOGIN)
    from_environment = not is_named and any(os.environ.get(name) for name in _LOGIN_VARIABLES)
    for names, is_taken in ((LOGIN, not login_is_given and not from_environment), (TLS, True)):
        for name in names:
            if is_taken and name in fields and not _value(args, name):
                value = fields[name] if name == "user" else str(folder / Path(fields[name]).expanduser())
                if name in SECRETS:
                    check_private(Path(value), name)
                setattr(args, name.replace("-", "_"), value)


def _value(args: argparse.Namespace, name: str) -> str | None:
    value: str | None = getattr(args, name.replace("-", "_"), None)
    return value


def login_of(args: argparse.Namespace, url_user: str | None = None) -> ClientLogin:
    """The login that the arguments, the user in the URL and the environment give. Raises ArtemisError."""
    from artemis_py.security.client_login import completed

    given = {"user": args.user or url_user, "passwordFile": args.password_file, "tokenFile": args.token_file}
    return completed({name: text for name, text in given.items() if text}, os.environ, _LOGIN)


def tls_of(args: argparse.Namespace) -> ClientTls:
    """What the arguments say about TLS. Raises ArtemisError."""
    from artemis_py.security import client_tls

    given = {name: getattr(args, option[2:].replace("-", "_")) for name, option in TLS_NAMES.items()}
    given = {name: text for name, text in given.items() if text}
    return client_tls.tls_of(given, verifies=not args.no_verify, named=TLS_NAMES)


def spark_options(args: argparse.Namespace) -> dict[str, str]:
    """The arguments as options of the data source, which reads the files and the environment itself."""
    names = {"user": "user", "passwordFile": "password_file", "tokenFile": "token_file"}
    names |= {name: option[2:].replace("-", "_") for name, option in TLS_NAMES.items()}
    found = {name: getattr(args, given) for name, given in names.items() if getattr(args, given)}
    return found | ({"verify": "false"} if args.no_verify else {})
