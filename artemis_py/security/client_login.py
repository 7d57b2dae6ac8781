"""How programs log in at a broker: Spark jobs, commands and the load generator. Secrets are in no ``repr``."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from artemis_py.errors import ArtemisError

USER: Final = "ARTEMIS_PY_USER"
PASSWORD: Final = "ARTEMIS_PY_PASSWORD"
TOKEN: Final = "ARTEMIS_PY_TOKEN"
"""Variables of the environment."""

_SECRET_BYTES_MAX: Final = 64 * 1024


NO_USER: Final = f"no user given: --user or {USER}, with --password-file or {PASSWORD}; or --token-file or {TOKEN}"
"""What a command says when a broker wants a login and there is none."""


@final
@dataclass(frozen=True, slots=True)
class ClientLogin:
    """A user with a password, or a token, or neither."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def is_empty(self) -> bool:
        """Is there nothing to log in with?"""
        return self.user is None and self.token is None

    @property
    def authorization(self) -> str | None:
        """The header of this name of an HTTP request; None without a login."""
        if self.token is not None:
            return f"Bearer {self.token}"
        if self.user is None:
            return None
        pair = f"{self.user}:{self.password or ''}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    @property
    def passcode(self) -> str | None:
        """The header of this name of a CONNECT frame."""
        return self.password if self.token is None else self.token

    def __str__(self) -> str:
        if self.token is not None:
            return "the given token"
        return "nobody" if self.user is None else f"user {self.user!r}"


def completed(given: Mapping[str, str], environment: Mapping[str, str], named: Mapping[str, str]) -> ClientLogin:
    """The login that ``given`` says by ``user``, ``password``, ``passwordFile``, ``token`` and ``tokenFile``; what is
    missing comes from the environment. ``named`` are the names by which a user knows these, for errors. Raises
    ArtemisError.
    """
    for secret in ("password", "token"):
        if given.get(secret) is not None and given.get(f"{secret}File") is not None:
            raise ArtemisError(f"{named[secret]} and {named[secret + 'File']} both give the {secret}; use one of them")
    password, token = _secret(given, "password", named), _secret(given, "token", named)
    user = given.get("user") or None
    if token is not None and (user is not None or password is not None):
        raise ArtemisError(f"a token is the whole login; leave out {named['user']} and {named['password']}")
    if token is None and user is None:
        user, token = environment.get(USER) or None, environment.get(TOKEN) or None
        if user is not None and token is not None:
            raise ArtemisError(f"{USER} and {TOKEN} are both set; unset one of them, or give {named['user']}")
    if user is not None and password is None:
        password = environment.get(PASSWORD)
    if password is not None and user is None:
        raise ArtemisError(f"a password needs a user: give {named['user']}")
    for what, text in (("user", user), ("password", password), ("token", token)):
        if text is not None and any(character in text for character in "\0\r\n"):
            raise ArtemisError(f"the {what} has a line break or NUL in it")
    return ClientLogin(user, password, token)


def _secret(given: Mapping[str, str], what: str, named: Mapping[str, str]) -> str | None:
    path = given.get(f"{what}File")
    return given.get(what) if path is None else secret_in(path, named[f"{what}File"])


def secret_in(path: str, name: str) -> str:
    """The first line of a file. Raises ArtemisError with the file and ``name``, the option that names it."""
    try:
        with Path(path).open("rb") as file:
            found = file.read(_SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise ArtemisError(f"{name}: {path} cannot be read: {error.strerror}") from None
    first = found.split(b"\n", 1)[0].rstrip(b"\r")
    if not first or len(first) > _SECRET_BYTES_MAX:
        raise ArtemisError(f"{name}: the first line of {path} is {'too long' if first else 'empty'}")
    try:
        return first.decode("utf-8")
    except UnicodeDecodeError:
        raise ArtemisError(f"{name}: the first line of {path} is not UTF-8") from None
