"""The arguments with which commands log in at a running broker. No argument takes a password: other users of the
machine would see it in the list of processes.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from artemis_py.errors import ArtemisError

if TYPE_CHECKING:
    from artemis_py.security.client_login import ClientLogin
    from artemis_py.security.client_tls import ClientTls

_LOGIN: Final = {
    "user": "--user", "password": "ARTEMIS_PY_PASSWORD", "passwordFile": "--password-file",
    "token": "ARTEMIS_PY_TOKEN", "tokenFile": "--token-file",
}  # fmt: skip
TLS_NAMES: Final = {"caFile": "--ca-file", "certificateFile": "--certificate-file", "keyFile": "--key-file"}


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


def without_user(url: str) -> tuple[str, str | None]:
    """The URL without its user, and the user. Raises ArtemisError for a URL with a password."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ArtemisError(f"this is no URL: {error}") from None
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, None
    if ":" in user:
        raise ArtemisError("a URL must not contain a password; write it to a file, and give --password-file FILE")
    return urlunsplit(parts._replace(netloc=place)), unquote(user)
